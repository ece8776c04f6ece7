"""A job from its creation to its end."""

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, SERVICES, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob, without
from tests.support.waiting import until


async def test_a_job_runs_and_succeeds_and_its_workers_are_cleaned_up(shared: Jobs) -> None:
    await shared.submit(mpijob("success", runPolicy={"cleanPodPolicy": "Running"}))
    launcher = await shared.start("success", workers=2)
    status = await shared.status("success")
    assert status["replicaStatuses"]["Launcher"]["active"] == 1
    assert status["replicaStatuses"]["Worker"]["active"] == 2
    await shared.succeed(launcher)
    await shared.becomes("success", "Succeeded")
    await until(lambda: shared.has_workers("success", 0))
    status = await shared.status("success")
    assert status["replicaStatuses"] == {
        "Launcher": {"active": 0, "failed": 0, "succeeded": 1},
        "Worker": {"active": 0, "failed": 0, "succeeded": 0},
    }
    reasons = {reason for reason, _ in await shared.events("success")}
    assert {"MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"} <= reasons


async def test_everything_that_pods_need_is_there_and_belongs_to_the_job(shared: Jobs) -> None:
    job = await shared.submit(mpijob("needs"))
    await until(lambda: shared.has_workers("needs", 2))
    for resource, name in (
        (SERVICES, "needs"),
        (CONFIG_MAPS, "needs-config"),
        (SECRETS, "needs-ssh"),
    ):
        found = await shared.client.get(resource, name, shared.namespace)
        [owner] = found["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "name": "needs",
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }


async def test_pods_find_each_other_and_have_the_keys_and_the_list_of_hosts(shared: Jobs) -> None:
    await shared.submit(mpijob("equipped"))
    await shared.start("equipped", workers=2)
    pods = await shared.pods("equipped")
    service = await shared.client.get(SERVICES, "equipped", shared.namespace)
    for pod in pods:
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["subdomain"] == "equipped"
        assert _sources(pod, "secret", "secretName") == ["equipped-ssh"]
    [launcher] = await shared.pods("equipped", "launcher")
    assert _sources(launcher, "configMap", "name") == ["equipped-config"]
    assert launcher["spec"]["hostname"] == "equipped-launcher"


def _sources(pod: Manifest, kind: str, name: str) -> list[str]:
    return [volume[kind][name] for volume in pod["spec"]["volumes"] if kind in volume]


async def test_a_job_without_workers_is_its_launcher(shared: Jobs) -> None:
    job = without(mpijob("alone", runLauncherAsWorker=True), "spec.mpiReplicaSpecs.Worker")
    await shared.submit(job)
    await shared.finish("alone", workers=0)
    assert await shared.hosts("alone") == ["alone-launcher:1"]
    assert set((await shared.status("alone"))["replicaStatuses"]) == {"Launcher"}
