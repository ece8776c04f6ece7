"""Jobs that are in the cluster although our rules forbid them: from a time of other rules."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import errors
from mpi_operator.kube.resources import Manifest
from tests.support import mpijobs
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, changed, mpijob
from tests.support.operator import Operator, operator
from tests.support.waiting import until

_WRONG_FIELDS = (
    "spec.mpiReplicaSpecs[Launcher].replicas: ",
    "spec.mpiReplicaSpecs[Worker].template.spec.containers: ",
)
_MISNAMED = "0-is-no-letter"


def _broken() -> Manifest:
    job = changed(mpijob("broken"), "spec.mpiReplicaSpecs.Launcher.replicas", 2)
    return changed(job, "spec.mpiReplicaSpecs.Worker.template", {"spec": {"containers": []}})


@pytest.fixture
async def late_operator(
    spare_jobs: Jobs, spare_control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[Operator]:
    """An operator that finds two jobs which were stored when there were no rules."""
    client, namespace = spare_jobs.client, spare_jobs.namespace
    await mpijobs.install_without_rules(client)
    for job in (_broken(), mpijob(_MISNAMED)):
        await until(lambda job=job: _is_taken(spare_jobs, job))  # type: ignore[misc]
    await mpijobs.install(client)
    probe = mpijob("0-probe")
    await until(lambda: _is_refused(spare_jobs, probe))
    admin = spare_control_plane.kubeconfig()
    async with operator(client, admin, namespace, tmp_path) as process:
        yield process


async def _is_taken(jobs: Jobs, job: Manifest) -> bool:
    """Definitions take effect a little after they are stored."""
    try:
        await jobs.submit(job)
    except errors.Invalid:
        return False
    return True


async def _is_refused(jobs: Jobs, job: Manifest) -> bool:
    if await _is_taken(jobs, job):
        await jobs.client.delete(MPIJOBS, job["metadata"]["name"], jobs.namespace)
        return False
    return True


@pytest.mark.usefixtures("late_operator")
async def test_an_invalid_job_says_everything_that_is_wrong_and_runs_once_it_is_mended(
    spare_jobs: Jobs,
) -> None:
    await spare_jobs.becomes("broken", "Running", "False", "ValidationError")
    condition = await spare_jobs.condition("broken", "Running")
    assert condition is not None
    assert all(field in condition["message"] for field in _WRONG_FIELDS), condition
    [message] = await spare_jobs.event_messages("broken", "ValidationError")
    assert message.endswith(condition["message"])
    assert await spare_jobs.pods("broken") == []

    good = mpijob()["spec"]["mpiReplicaSpecs"]
    good["Launcher"]["replicas"] = 1
    await spare_jobs.change("broken", mpiReplicaSpecs=good)
    await spare_jobs.finish("broken", workers=2)


@pytest.mark.usefixtures("late_operator")
async def test_a_job_whose_name_is_wrong_says_so_and_harms_no_other(spare_jobs: Jobs) -> None:
    """The rule about names is one about the whole object, but only for new ones."""
    await spare_jobs.becomes(_MISNAMED, "Running", "False", "ValidationError")
    condition = await spare_jobs.condition(_MISNAMED, "Running")
    assert condition is not None
    assert "start with a letter" in condition["message"]
    await spare_jobs.submit(mpijob("pi"))
    await spare_jobs.finish("pi", workers=2)
    assert await spare_jobs.pods(_MISNAMED) == []
