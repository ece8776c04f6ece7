"""Jobs that are in the cluster although our rules forbid them: from a time of other rules."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import errors
from mpi_operator.kube.resources import Manifest
from tests.support import mpijobs
from tests.support.hands import Hands
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
    spare_hands: Hands, spare_control_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[Operator]:
    """An operator that finds two jobs which were stored when there were no rules."""
    client, namespace = spare_hands.client, spare_hands.namespace
    await mpijobs.install_without_rules(client)
    for job in (_broken(), mpijob(_MISNAMED)):
        await until(lambda job=job: _is_taken(spare_hands, job))  # type: ignore[misc]
    await mpijobs.install(client)
    probe = mpijob("0-probe")
    await until(lambda: _is_refused(spare_hands, probe))
    admin = spare_control_plane.kubeconfig()
    async with operator(client, admin, namespace, tmp_path) as process:
        yield process


async def _is_taken(hands: Hands, job: Manifest) -> bool:
    """Definitions take effect a little after they are stored."""
    try:
        await hands.submit(job)
    except errors.Invalid:
        return False
    return True


async def _is_refused(hands: Hands, job: Manifest) -> bool:
    if await _is_taken(hands, job):
        await hands.client.delete(MPIJOBS, job["metadata"]["name"], hands.namespace)
        return False
    return True


@pytest.mark.usefixtures("late_operator")
async def test_an_invalid_job_says_everything_that_is_wrong_and_runs_once_it_is_mended(
    spare_hands: Hands,
) -> None:
    await spare_hands.becomes("broken", "Running", "False", "ValidationError")
    condition = await spare_hands.condition("broken", "Running")
    assert condition is not None
    assert all(field in condition["message"] for field in _WRONG_FIELDS), condition
    [message] = await spare_hands.told("broken", "ValidationError")
    assert message.endswith(condition["message"])
    assert await spare_hands.pods("broken") == []

    good = mpijob()["spec"]["mpiReplicaSpecs"]
    good["Launcher"]["replicas"] = 1
    await spare_hands.change("broken", mpiReplicaSpecs=good)
    await spare_hands.finish("broken", workers=2)


@pytest.mark.usefixtures("late_operator")
async def test_a_job_whose_status_cannot_be_written_is_told_and_harms_nobody(
    spare_hands: Hands,
) -> None:
    """The rule about names is one about the whole object, and the status is a part of that."""
    [words] = await spare_hands.told(_MISNAMED, "StatusRefused")
    assert "start with a letter" in words
    await spare_hands.submit(mpijob("pi"))
    await spare_hands.finish("pi", workers=2)
    assert await spare_hands.pods(_MISNAMED) == []
    assert "status" not in await spare_hands.job(_MISNAMED)
