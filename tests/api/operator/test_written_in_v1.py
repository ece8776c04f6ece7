"""Jobs that were written in v1, as the conversion stores them: success, failure, clean-up, TTL.

The Job controller is that of Kubernetes, so this also checks the rules that we give it for exit
codes.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.waiting import until

_PREFIX = "mpi-operator.kubeflow.org/"


def _v1(name: str, *, annotations: Manifest | None = None, **policy: Any) -> Manifest:
    never = {"restartPolicy": "Never"}
    job = mpijob(name, launcher=never, worker=never, runPolicy={"backoffLimit": 0, **policy})
    job["metadata"]["annotations"] = {f"{_PREFIX}written-in": "v1", **(annotations or {})}
    return job


async def _is_gone(jobs: Jobs, job: str) -> bool:
    return await jobs.all_pods(job) == []


async def test_a_job_that_succeeds_is_found_by_the_labels_and_conditions_of_v1(
    shared: Jobs,
) -> None:
    await shared.submit(_v1("v1-success", cleanPodPolicy="None"))
    launcher = await shared.start("v1-success", workers=2)
    [pod] = await shared.pods("v1-success", "launcher")
    assert pod["metadata"]["labels"]["training.kubeflow.org/job-role"] == "master"
    stored = await shared.client.get(CONFIG_MAPS, "v1-success-config", shared.namespace)
    assert stored["metadata"]["annotations"][f"{_PREFIX}profile"] == "v1"
    await shared.succeed(launcher)
    await shared.becomes("v1-success", "Succeeded")
    status = await shared.status("v1-success")
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("Created", "True"),
        ("Running", "False"),
        ("Succeeded", "True"),
    ]
    assert await shared.find(JOBS, "v1-success-launcher") is not None


@pytest.mark.parametrize("policy", ["None", "All"])
async def test_a_worker_that_fails_ends_the_job_and_its_launcher(shared: Jobs, policy: str) -> None:
    job = f"v1-worker-{policy.lower()}"
    await shared.submit(_v1(job, cleanPodPolicy=policy))
    await shared.start(job, workers=2)
    await shared.fail(f"{job}-worker-1", exit_code=3, message="no such module")
    await shared.becomes(job, "Failed", reason="WorkerFailed")
    failed = await shared.condition(job, "Failed")
    assert failed is not None
    assert failed["message"] == (
        f"Worker {job}-worker-1 failed: container mpi ended with exit code 3: no such module"
    )
    assert await shared.event_messages(job, "WorkerFailed") == [failed["message"]]

    async def is_stopped() -> bool:
        # No node confirms that the pod of the launcher has ended.
        pods = await shared.pods(job, "launcher")
        left = await shared.pod_names(job, "worker")
        return not pods and left == ([] if policy == "All" else _workers(job))

    await until(is_stopped)
    if policy == "All":
        await shared.gone(JOBS, f"{job}-launcher")
    await shared.submit(_v1(f"{job}-next"))
    await shared.finish(f"{job}-next", workers=2)  # time enough to make a mistake
    assert await is_stopped()


def _workers(job: str) -> list[str]:
    return [f"{job}-worker-{index}" for index in range(2)]


async def test_a_worker_that_is_deleted_is_made_again(shared: Jobs) -> None:
    await shared.submit(_v1("v1-drained"))
    await shared.start("v1-drained", workers=2)
    before = await shared.client.get(PODS, "v1-drained-worker-0", shared.namespace)
    await shared.delete_now("v1-drained-worker-0")

    async def is_another() -> bool:
        found = await shared.find(PODS, "v1-drained-worker-0")
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    await until(is_another)
    assert await shared.condition("v1-drained", "Failed") is None


async def test_clean_up_takes_the_launcher_with_it_and_makes_nothing_again(shared: Jobs) -> None:
    await shared.submit(_v1("v1-clean", cleanPodPolicy="All"))
    await shared.finish("v1-clean", workers=2)
    await shared.gone(JOBS, "v1-clean-launcher")
    await until(lambda: _is_gone(shared, "v1-clean"))
    ended = await shared.job("v1-clean")
    await shared.submit(_v1("v1-clean-next"))
    await shared.finish("v1-clean-next", workers=2)
    assert await shared.job("v1-clean") == ended
    assert await _is_gone(shared, "v1-clean")
    assert await shared.find(JOBS, "v1-clean-launcher") is None


async def test_the_ttl_is_that_of_the_job(shared: Jobs) -> None:
    # Long enough to be seen as finished, even by a test on a busy machine.
    await shared.submit(_v1("v1-ttl", ttlSecondsAfterFinished=4))
    await shared.finish("v1-ttl", workers=2)
    await shared.gone(MPIJOBS, "v1-ttl")
    await until(lambda: _is_gone(shared, "v1-ttl"))


# --- ExitCode ---------------------------------------------------------------------------------

_EXIT_CODE = {f"{_PREFIX}launcher-restart-policy": "ExitCode"}


async def test_a_launcher_with_a_final_exit_code_fails_the_job_at_once(shared: Jobs) -> None:
    await shared.submit(_v1("v1-final", annotations=_EXIT_CODE, backoffLimit=6))
    launcher = await shared.start("v1-final", workers=2)
    await shared.fail(launcher, exit_code=2, message="usage: pi")
    await shared.becomes("v1-final", "Failed", reason="PodFailurePolicy")
    failed = await shared.condition("v1-final", "Failed")
    assert failed is not None
    assert failed["message"] == (
        "Launcher failed and is not retried: with the restart policy ExitCode, exit codes below "
        "128 are final (exit code 2): usage: pi"
    )
    assert await shared.pod_names("v1-final", "launcher") in ([], [launcher])


async def test_a_launcher_that_was_killed_is_restarted(shared: Jobs) -> None:
    await shared.submit(_v1("v1-killed", annotations=_EXIT_CODE, backoffLimit=1))
    first = await shared.start("v1-killed", workers=2)
    await shared.fail(first, exit_code=137)
    await shared.becomes("v1-killed", "Restarting", reason="MPIJobRestarting")
    assert await shared.condition("v1-killed", "Running") is None

    async def has_another() -> bool:
        return await shared.pod_names("v1-killed", "launcher") not in ([], [first])

    await until(has_another)  # Kubernetes waits ten seconds
    [second] = set(await shared.pod_names("v1-killed", "launcher")) - {first}
    await shared.run(second)
    await shared.becomes("v1-killed", "Running")
    assert await shared.condition("v1-killed", "Restarting") is None
    await shared.fail(second, exit_code=137)
    await shared.becomes("v1-killed", "Failed", reason="BackoffLimitExceeded")


async def test_a_launcher_that_was_disrupted_does_not_count(shared: Jobs) -> None:
    await shared.submit(_v1("v1-disrupted", annotations=_EXIT_CODE, backoffLimit=0))
    first = await shared.start("v1-disrupted", workers=2)
    # With its time: Kubernetes takes back a disruption that seems to be long ago.
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    ended = {"exitCode": 1, "reason": "Error"}
    state = {"name": "mpi", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [state | {"state": {"terminated": ended}}]
    await shared.set_status(
        first, conditions=[condition], phase="Failed", containerStatuses=statuses
    )

    async def has_another() -> bool:
        return await shared.pod_names("v1-disrupted", "launcher") not in ([], [first])

    await until(has_another)
    assert await shared.condition("v1-disrupted", "Failed") is None
    launcher = await shared.launcher_job("v1-disrupted")
    assert launcher["status"].get("failed", 0) == 0
