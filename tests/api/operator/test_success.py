"""A job from its creation to its end."""

import pytest

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, SERVICES
from tests.support.hands import Hands
from tests.support.mpijobs import mpijob
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("running_operator")


async def test_a_job_runs_and_succeeds_and_its_workers_are_cleaned_up(hands: Hands) -> None:
    await hands.submit(mpijob("pi", runPolicy={"cleanPodPolicy": "Running"}))
    launcher = await hands.start("pi", workers=2)
    status = (await hands.job("pi"))["status"]
    assert status["replicaStatuses"]["Launcher"]["active"] == 1
    assert status["replicaStatuses"]["Worker"]["active"] == 2
    await hands.succeed(launcher)
    await hands.becomes("pi", "Succeeded")
    await until(lambda: hands.has_workers("pi", 0))
    status = (await hands.job("pi"))["status"]
    assert status["replicaStatuses"] == {
        "Launcher": {"active": 0, "failed": 0, "succeeded": 1},
        "Worker": {"active": 0, "failed": 0, "succeeded": 0},
    }
    reasons = {reason for reason, _ in await hands.events("pi")}
    assert {"MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"} <= reasons


async def test_everything_that_pods_need_is_there_and_belongs_to_the_job(hands: Hands) -> None:
    job = await hands.submit(mpijob("pi"))
    await until(lambda: hands.has_workers("pi", 2))
    for resource, name in ((SERVICES, "pi"), (CONFIG_MAPS, "pi-config"), (SECRETS, "pi-ssh")):
        found = await hands.client.get(resource, name, hands.namespace)
        [owner] = found["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "name": "pi",
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
