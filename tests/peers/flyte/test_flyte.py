"""Tasks of Flyte: its SDK writes them, its back end creates their MPIJobs and reads the status."""

from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.peers.flyte.executions import (
    ANNOTATIONS,
    FINALIZER,
    LABELS,
    PERMANENT,
    QUEUED,
    RETRYABLE,
    RUNNING,
    V1,
    Execution,
    Flyte,
)
from tests.support.waiting import until


async def test_what_flyte_writes_stays_and_reaches_the_pods(lab: Lab, flyte: Flyte) -> None:
    async with flyte.executing(lab, "lasts") as execution:
        await execution.reaches(RUNNING)

        job = await execution.job()
        assert job["metadata"]["labels"] == LABELS
        assert ANNOTATIONS.items() <= job["metadata"]["annotations"].items()
        assert job["metadata"]["finalizers"] == [FINALIZER]
        [owner] = job["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("flyteworkflow", True)
        worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        assert "command" not in worker
        assert worker["args"][0] == "mpirun"
        for pod in await lab.pods(execution.name):
            assert LABELS.items() <= pod["metadata"]["labels"].items()
            assert ANNOTATIONS.items() <= pod["metadata"]["annotations"].items()
        for pod in await lab.pods(execution.name, "worker"):
            [container] = pod["spec"]["containers"]
            assert container["command"][-1:] + container["args"] == ["sleep", "365d"]


async def test_a_suspended_task_is_queued_and_continues(lab: Lab, flyte: Flyte) -> None:
    async with flyte.executing(lab, "lasts") as execution:
        await execution.reaches(RUNNING)

        await _suspend(lab, execution)
        await execution.reaches(QUEUED, "Suspended")
        await lab.comes_true(execution.name, _has_no_active_pods, 60)

        await _suspend(lab, execution, suspend=False)
        await execution.reaches(RUNNING)


async def test_an_aborted_task_ends_when_flyte_has_removed_its_finalizer(
    lab: Lab, flyte: Flyte
) -> None:
    async with flyte.executing(lab, "lasts") as execution:
        await execution.reaches(RUNNING)

        await execution.do("abort")
        assert (await execution.job())["metadata"]["deletionTimestamp"]
        await execution.reaches(RETRYABLE)
        assert (await execution.do("handle"))["code"] == "UnexpectedObjectDeletion"
        assert len(await lab.pods(execution.name)) == 3

        await execution.do("finalize")
        await until(lambda: _is_gone(lab, execution), 60)
        await until(lambda: _is_missed(execution), 30)


async def test_a_task_whose_job_is_refused_fails_for_good_and_says_why(
    lab: Lab, flyte: Flyte
) -> None:
    async with flyte.executing(lab, "is_wrong") as execution:
        answer = await execution.do("handle")

        assert (answer["phase"], answer["code"]) == (PERMANENT, "BadTaskFormat")
        assert "spec.runPolicy.ttlSecondsAfterFinished" in answer["error"]


async def _suspend(lab: Lab, execution: Execution, suspend: bool = True) -> None:
    """As an administrator does, or a queue."""
    change = {"spec": {"runPolicy": {"suspend": suspend}}}
    await lab.client.patch(V1, execution.name, change, lab.namespace)


def _has_no_active_pods(job: Manifest) -> bool:
    return not any(each.get("active") for each in job["status"]["replicaStatuses"].values())


async def _is_gone(lab: Lab, execution: Execution) -> bool:
    return not await lab.find(V1, execution.name) and not await lab.all_pods(execution.name)


async def _is_missed(execution: Execution) -> bool:
    return bool((await execution.do("handle")).get("code") == "ResourceDeletedExternally")
