"""A real API server for the tests below, and clients for it.

By default one of ours, started once per run. With `MPI_OPERATOR_TEST_CLUSTER=yes` the cluster that
`KUBECONFIG` points to is used instead; tests that break the API server are skipped then.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from devcluster.binaries import CannotBuild
from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES
from tests.support import permissions

USE_MINE = os.environ.get("MPI_OPERATOR_TEST_CLUSTER") == "yes"

StartControlPlane = Callable[..., ControlPlane]

# It deletes pods without a node, as all of these are, and does so by name: at times it hits the
# next pod of that name.
_NO_POD_COLLECTOR = "--controllers=*,-pod-garbage-collector-controller"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/api" in item.path.as_posix():
            item.add_marker(pytest.mark.api)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The control plane that tests share. They must not break it."""
    with started_control_plane(controller_manager=True) as shared:
        yield shared


@pytest.fixture
def start_control_plane() -> Iterator[StartControlPlane]:
    """Starts control planes that a test may break."""
    with ExitStack() as stack:

        def start(**options: Any) -> ControlPlane:
            return stack.enter_context(started_control_plane(**options))

        yield start


@contextmanager
def started_control_plane(**options: Any) -> Iterator[ControlPlane]:
    if USE_MINE:
        pytest.skip("needs a control plane of its own, and MPI_OPERATOR_TEST_CLUSTER=yes was given")
    options |= permissions.options()
    control_plane = ControlPlane(controller_manager_args=[_NO_POD_COLLECTOR], **options)
    try:
        control_plane.start()
    except CannotBuild as error:
        pytest.skip(str(error))
    try:
        yield control_plane
        permissions.save(control_plane, "api")
    finally:
        control_plane.stop()


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path | None:
    """An administrator's kubeconfig; None means the one that kubectl would use."""
    if USE_MINE:
        if not os.environ.get("KUBECONFIG"):
            pytest.exit("MPI_OPERATOR_TEST_CLUSTER=yes: say with KUBECONFIG which cluster", 2)
        return None
    shared: ControlPlane = request.getfixturevalue("control_plane")
    return shared.kubeconfig()


@pytest.fixture
async def client(kubeconfig: Path | None) -> AsyncIterator[HttpClient]:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: HttpClient) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    created = await client.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    name = created["metadata"]["name"]
    yield name
    if USE_MINE:  # what is ours ends soon, and every deletion costs it a quarter of a second
        await client.delete(NAMESPACES, name)
