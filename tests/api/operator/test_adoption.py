"""Jobs that the Go operator began are taken over where they are, and lose nothing on the way."""

from typing import Any

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Manifest
from tests.api.operator.conftest import StartOperator
from tests.support.go_operator import GoOperator
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.waiting import until

_RUNNING = (("Created", "True", "MPIJobCreated"), ("Running", "True", "MPIJobRunning"))
_ONE_LAUNCHER = {"Launcher": {"active": 1}, "Worker": {"active": 2}}
_CHILDREN = (
    (SERVICES, "pi"),
    (CONFIG_MAPS, "pi-config"),
    (SECRETS, "pi-ssh"),
    (JOBS, "pi-launcher"),
    (PODS, "pi-worker-0"),
    (PODS, "pi-worker-1"),
)


@pytest.fixture
async def ready_namespace(jobs: Jobs) -> None:
    """Pods can be made in it."""
    pod = {
        "metadata": {"name": "probe", "namespace": jobs.namespace},
        "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]},
    }
    await until(lambda: _is_taken(jobs, pod))
    await jobs.delete_now("probe")


async def _is_taken(jobs: Jobs, pod: Manifest) -> bool:
    try:
        await jobs.client.create(PODS, pod)
    except errors.Forbidden:
        return False
    return True


async def _running_go_job(jobs: Jobs, **spec: Any) -> str:
    """A job as the Go operator leaves it while it runs; the name of the launcher's pod."""
    job = await jobs.submit(mpijob("pi", **spec))
    go = GoOperator(jobs, job)
    await go.make_children(2, ttlSecondsAfterFinished=0)
    await until(lambda: _has_launcher_pod(jobs))
    [launcher] = await jobs.pod_names("pi", "launcher")
    await jobs.run(launcher, "pi-worker-0", "pi-worker-1")
    await go.list_hosts(0, 1)
    await go.write_status(*_RUNNING, replicaStatuses=_ONE_LAUNCHER)
    return launcher


async def _has_launcher_pod(jobs: Jobs) -> bool:
    return len(await jobs.pods("pi", "launcher")) == 1


async def _uids(jobs: Jobs) -> dict[str, str]:
    found = [await jobs.client.get(kind, name, jobs.namespace) for kind, name in _CHILDREN]
    found += await jobs.pods("pi")
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


async def _is_launcher_adopted(jobs: Jobs) -> bool:
    launcher = await jobs.launcher_job("pi")
    return "training.kubeflow.org/job-name" in launcher["metadata"]["labels"]


@pytest.mark.usefixtures("ready_namespace")
async def test_a_running_job_of_the_go_operator_is_taken_over_and_brought_to_its_end(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    launcher = await _running_go_job(jobs, runPolicy={"cleanPodPolicy": "All"})
    before = await _uids(jobs)
    await start_operator()
    await until(lambda: _is_launcher_adopted(jobs))
    assert "ttlSecondsAfterFinished" not in (await jobs.launcher_job("pi"))["spec"]
    await until(lambda: _has_slots(jobs))
    assert await _uids(jobs) == before
    await jobs.becomes("pi", "Running")
    await jobs.succeed(launcher)
    await jobs.becomes("pi", "Succeeded")
    await until(lambda: jobs.has_workers("pi", 0))
    assert (await jobs.job("pi"))["status"]["replicaStatuses"] == {
        "Launcher": {"active": 0, "succeeded": 1, "failed": 0},
        "Worker": {"active": 0, "succeeded": 0, "failed": 0},
    }
    assert (await jobs.launcher_job("pi"))["metadata"]["uid"] == before["pi-launcher"]


async def _has_slots(jobs: Jobs) -> bool:
    """Whether the list of hosts is one of ours."""
    hosts = await jobs.hosts("pi")
    return len(hosts) == 2 and all(host.endswith(":1") for host in hosts)


@pytest.mark.usefixtures("ready_namespace")
async def test_a_launcher_of_the_go_operator_is_taken_over_while_a_worker_is_not_ready(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    launcher = await _running_go_job(jobs, launcherCreationPolicy="WaitForWorkersReady")
    await jobs.run("pi-worker-1", ready=False)
    await start_operator()
    await until(lambda: _is_launcher_adopted(jobs))
    await jobs.succeed(launcher)
    await jobs.becomes("pi", "Succeeded")


@pytest.mark.usefixtures("ready_namespace")
async def test_a_job_of_which_the_go_operator_missed_the_end_does_not_run_again(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    job = await jobs.submit(mpijob("pi"))
    go = GoOperator(jobs, job)
    await go.make_children(2)
    await until(lambda: _has_launcher_pod(jobs))
    [launcher] = await jobs.pod_names("pi", "launcher")
    await jobs.run("pi-worker-0", "pi-worker-1")
    await go.write_status(*_RUNNING, replicaStatuses=_ONE_LAUNCHER)
    await jobs.succeed(launcher)
    await until(lambda: _is_complete(jobs))
    uid = (await jobs.launcher_job("pi"))["metadata"]["uid"]
    await start_operator()
    await jobs.becomes("pi", "Succeeded")
    assert (await jobs.launcher_job("pi"))["metadata"]["uid"] == uid
    assert len(await jobs.pods("pi", "launcher")) == 1


async def _is_complete(jobs: Jobs) -> bool:
    conditions = (await jobs.launcher_job("pi")).get("status", {}).get("conditions", [])
    return "Complete" in [each["type"] for each in conditions]


@pytest.mark.usefixtures("ready_namespace")
async def test_a_job_that_the_go_operator_left_half_failed_is_brought_to_its_end(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    """Evicted workers make a job there Failed, without an end: its launcher and workers go on."""
    await _running_go_job(jobs, runPolicy={"cleanPodPolicy": "Running"})
    await jobs.evict("pi-worker-1")
    evicted = ("Failed", "True", "MPIJobEvicted")
    stored = GoOperator(jobs, await jobs.job("pi"))
    await stored.write_status(*_RUNNING[:1], ("Running", "False", "MPIJobRunning"), evicted)
    await start_operator()
    await until(lambda: _has_completion_time(jobs))
    # The one that was evicted is kept, for its logs.
    await until(lambda: _has_pods(jobs, ["pi-worker-1"]))
    assert await jobs.has_condition("pi", "Failed", "True", "MPIJobEvicted")
    assert (await jobs.launcher_job("pi"))["spec"]["suspend"] is True


async def _has_completion_time(jobs: Jobs) -> bool:
    return "completionTime" in (await jobs.job("pi"))["status"]


async def _has_pods(jobs: Jobs, names: list[str]) -> bool:
    return await jobs.pod_names("pi") == names


@pytest.mark.usefixtures("ready_namespace")
async def test_a_suspended_job_of_the_go_operator_can_be_resumed(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    job = await jobs.submit(mpijob("pi", runPolicy={"suspend": True}))
    go = GoOperator(jobs, job)
    await go.make_children(0, suspend=True)
    suspended = (("Created", "True", "MPIJobCreated"), ("Suspended", "True", "MPIJobSuspended"))
    await go.write_status(*suspended)
    uid = (await jobs.launcher_job("pi"))["metadata"]["uid"]
    await start_operator()
    await until(lambda: _is_launcher_adopted(jobs))
    change = {"spec": {"runPolicy": {"suspend": False}}}
    await jobs.client.patch(MPIJOBS, "pi", change, jobs.namespace)
    launcher = await jobs.start("pi", workers=2)
    assert (await jobs.launcher_job("pi"))["metadata"]["uid"] == uid
    await jobs.succeed(launcher)
    await jobs.becomes("pi", "Succeeded")
