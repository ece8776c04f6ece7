"""One job of one author must not keep others from reading and writing theirs in old versions."""

from collections.abc import AsyncIterator

import pytest

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.api.annotations import CONVERTED_FIELDS
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from mpi_operator.operator import webhook_thread
from mpi_operator.operator.options import Options
from tests.support.mpijobs import MPIJOBS, changed, mpijob
from tests.support.waiting import until
from tests.support.webhook_replica import V1, Replica, crd

LIMIT = 256 * 1024


@pytest.fixture
async def replica(
    admin: HttpClient, webhook_plane: ControlPlane, home: str
) -> AsyncIterator[Replica]:
    """The webhook of the operator, in use for conversion; admission could be out of reach."""
    decisions = webhook_thread.decisions(Options())
    replica = Replica(webhook_plane.kubeconfig(), home, free_port(), decisions=decisions)
    async with replica.running():
        await admin.create(CUSTOM_RESOURCE_DEFINITIONS, crd(replica.url))
        await until(lambda: can_create(admin, home))
        yield replica


async def can_create(admin: HttpClient, home: str) -> bool:
    """Whether a v1 job of somebody else can be stored."""
    try:
        await admin.create(V1, mpijob("other", home) | {"apiVersion": "kubeflow.org/v1"})
    except errors.AlreadyExists:
        return True
    except errors.ApiError:
        return False
    return True


def books(value: str) -> str:
    return '{"v1": [["/spec/x", null, ' + value + "]]}"


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"a": "x" * (LIMIT - 1)}, id="no room for our annotations"),
        pytest.param({"a": "x" * (LIMIT - 100)}, id="room for one of them"),
        pytest.param(
            {"a": "x" * (LIMIT - 200), CONVERTED_FIELDS: "y" * 100}, id="no room for books"
        ),
        pytest.param({CONVERTED_FIELDS: books("1" + "0" * 400)}, id="a huge number"),
        pytest.param({CONVERTED_FIELDS: books("[" * 20_000 + "]" * 20_000)}, id="great depth"),
        pytest.param({CONVERTED_FIELDS: books("[" * 900 + "]" * 900)}, id="some depth"),
    ],
)
async def test_jobs_can_be_listed_beside_one_with(admin, home, replica, annotations):
    job = changed(mpijob("hostile", home), "metadata.annotations", annotations)
    await admin.create(MPIJOBS, job)
    found = {each["metadata"]["name"]: each for each in (await admin.list(V1, home)).items}
    assert set(found) == {"hostile", "other"}
    assert "x" not in found["hostile"]["spec"]
    await admin.delete(MPIJOBS, "hostile", home)


async def test_a_v1_job_that_leaves_no_room_is_refused_with_a_sentence(admin, home, replica):
    job = mpijob("full", home) | {"apiVersion": "kubeflow.org/v1"}
    job["metadata"]["annotations"] = {"a": "x" * (LIMIT - 1)}
    with pytest.raises(errors.ApiError, match="too much of it has no field in v2beta1"):
        await admin.create(V1, job)
