"""A control plane that tests may stop, freeze and compact, whole again after each of them."""

from collections.abc import AsyncIterator, Iterator

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.transport import Timeouts
from tests.api.conftest import started_control_plane

# Short enough to see them run out, long enough for a busy machine.
IMPATIENT = Timeouts(connect=2, read=2, write=3, deadline=45, silence=3)


@pytest.fixture(scope="module")
def fragile_control_plane() -> Iterator[ControlPlane]:
    with started_control_plane(audit=True) as control_plane:
        yield control_plane


@pytest.fixture
def fragile(fragile_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """May be broken by the test."""
    yield fragile_control_plane
    fragile_control_plane.resume_apiserver()
    fragile_control_plane.start_apiserver()


@pytest.fixture
async def fragile_client(fragile: ControlPlane) -> AsyncIterator[HttpClient]:
    """An impatient client of the fragile control plane."""
    settings = config.load(kubeconfig=fragile.kubeconfig())
    async with HttpClient(settings, timeouts=IMPATIENT) as client:
        yield client


@pytest.fixture
async def patient_client(fragile: ControlPlane) -> AsyncIterator[HttpClient]:
    """A client of the fragile control plane for thousands of writes at once, which take a while."""
    async with HttpClient(config.load(kubeconfig=fragile.kubeconfig())) as client:
        yield client
