"""Tasks of Flyte: its SDK writes them, its back end creates their MPIJobs and reads the status."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

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
    SUCCESS,
    V1,
    Execution,
    Flyte,
)
from tests.support.waiting import until

PATIENCE = 5  # seconds of Flyte


async def test_ranks_run_on_their_workers_and_the_task_succeeds(lab: Lab, flyte: Flyte) -> None:
    async def ranks(task: str) -> list[tuple[int, str]]:
        async with flyte.executing(lab, task) as execution:
            assert await execution.reaches(SUCCESS) == [QUEUED, RUNNING, SUCCESS]
            await _has_logs_of_its_workers(lab, execution)
            found = await lab.ranks(execution.name)
            return [(rank, host.rpartition("-")[2]) for rank, host in sorted(found.items())]

    two, four, elastic = await asyncio.gather(*map(ranks, ("two_ranks", "two_slots", "elastic")))

    assert two == [(0, "0"), (1, "1")]
    # Elastic Horovod numbers its hosts in the order in which it discovers them.
    assert elastic in ([(0, "0"), (1, "1")], [(0, "1"), (1, "0")])
    # Flyte asks for four ranks, and writes one slot for each worker.
    assert [rank for rank, _ in four] == [0, 1, 2, 3]
    assert sorted(worker for _, worker in four) == ["0", "0", "1", "1"]


async def test_a_task_fails_when_its_launcher_does_and_flyte_may_repeat_it(
    lab: Lab, flyte: Flyte
) -> None:
    async with flyte.executing(lab, "fails") as execution:
        assert await execution.reaches(RETRYABLE) == [QUEUED, RUNNING, RETRYABLE]

        failure = await execution.do("handle")
        assert failure["code"] == "DownstreamSystemError"
        assert "exit code 1" in failure["error"]
        assert await lab.restarts(execution.name) == 0


async def test_a_launcher_that_is_restarted_is_no_failure(lab: Lab, flyte: Flyte) -> None:
    async with flyte.executing(lab, "fails_once") as execution:
        assert (await execution.reaches(SUCCESS))[-2:] == [RUNNING, SUCCESS]

        assert await lab.restarts(execution.name) == 1


@pytest.mark.parametrize(("task", "end"), [("ends_at_once", SUCCESS), ("fails_at_once", RETRYABLE)])
async def test_flyte_sees_the_end_of_the_shortest_task(
    lab: Lab, flyte: Flyte, task: str, end: str
) -> None:
    async with flyte.executing(lab, task) as execution:
        await execution.reaches(end)

        *others, last = (await execution.job())["status"]["conditions"]
        # Flyte takes the newest, and of two of the same second the first.
        assert all(each["lastTransitionTime"] < last["lastTransitionTime"] for each in others)


async def test_a_task_that_cannot_run_yet_stays_queued_however_long(lab: Lab, flyte: Flyte) -> None:
    async with flyte.executing(lab, "fits_nowhere", timeout=f"{PATIENCE}s") as execution:
        await execution.reaches(QUEUED, "JobCreated")
        # Flyte gives up on a job without a startTime: after a minute, unless told otherwise.
        await until(lambda: _is_older(execution, PATIENCE), 3 * PATIENCE)

        assert (await execution.do("handle"))["phase"] == QUEUED


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


async def _has_logs_of_its_workers(lab: Lab, execution: Execution) -> None:
    """Whether the logs that Flyte links to are those of containers that ran."""
    linked = [each["uri"] for each in (await execution.do("handle"))["logs"]]
    workers = await lab.pods(execution.name, "worker")
    assert linked == [
        f"{pod['metadata']['name']}/{container['name']}"
        for pod in workers
        for container in pod["spec"]["containers"]
    ]
    assert len(linked) == 2


async def _is_older(execution: Execution, seconds: float) -> bool:
    created = (await execution.job())["metadata"]["creationTimestamp"]
    age = datetime.now(UTC) - datetime.fromisoformat(created)
    return age > timedelta(seconds=seconds + 1)  # times are whole seconds


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
