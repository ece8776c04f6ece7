"""Kueue queues, starts, preempts and finishes MPIJobs, with real pods."""

import re
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from mpi_operator.api.labels import REPLICA_INDEX
from mpi_operator.kube.resources import Manifest, Resource
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each
from tests.peers.flyte.executions import LABELS, PATIENCE, QUEUED, RUNNING, Execution, Flyte
from tests.peers.kueue.queues import (
    HOST,
    PODSET,
    POOL,
    Queue,
    on_one_host,
    waiting,
    with_pod_metadata,
)
from tests.support.waiting import until

VERSIONS = ("v2beta1", "v1")
V1 = Resource("kubeflow.org", "v1", "mpijobs", "MPIJob")
HOW_TO = Path(__file__).parents[3] / "docs/how-to/use-kueue.md"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_job_waits_in_its_queue_and_runs_on_the_nodes_of_its_flavor(
    lab: Lab, queue: Queue, version: str
) -> None:
    await queue.stop("Hold")
    await queue.submit(waiting("pi", version))
    await lab.becomes("pi", "Suspended")
    assert await lab.all_pods("pi") == []

    await queue.stop("None")
    await lab.runs("pi")

    pods = await lab.pods("pi")
    assert len(pods) == 3
    for pod in pods:
        assert pod["spec"]["nodeSelector"] == POOL
        assert pod["spec"]["nodeName"] == "node-1"
    await queue.finish("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_job_gives_way_to_a_higher_priority_and_comes_back(
    lab: Lab, queue: Queue, version: str
) -> None:
    await queue.submit(waiting("low", version))
    await lab.runs("low")

    await queue.submit(waiting("high", version), priority="high")
    await lab.runs("high")

    await _is_suspended(lab, "low")
    await queue.reports("low", "Evicted", reason="Preempted")
    await queue.finish("high")
    await queue.finish("low")
    assert await lab.ranks("low") == one_rank_each("low")


async def test_a_queue_that_is_drained_suspends_its_jobs(lab: Lab, queue: Queue) -> None:
    await queue.submit(waiting("pi"))
    await lab.runs("pi")

    await queue.stop("HoldAndDrain")

    await _is_suspended(lab, "pi")
    await queue.stop("None")
    await queue.finish("pi")


async def test_a_job_that_is_scaled_is_admitted_again_with_its_new_size(
    lab: Lab, queue: Queue
) -> None:
    await queue.submit(waiting("pi"))
    await lab.runs("pi")

    await lab.scale("pi", 1)
    await lab.eventually("pi", lambda: _runs_in_its_pool(lab, "pi", workers=1), 90)

    await lab.scale("pi", 2)
    await queue.stop("HoldAndDrain")
    await _is_suspended(lab, "pi")
    await queue.stop("None")
    await lab.eventually("pi", lambda: _runs_in_its_pool(lab, "pi", workers=2), 90)
    await queue.finish("pi")
    assert await lab.ranks("pi") == one_rank_each("pi")


async def _runs_in_its_pool(lab: Lab, name: str, *, workers: int) -> bool:
    """Whether a job runs with so many workers, all pods on the nodes of its flavor."""
    job, pods = await lab.job(name), await lab.all_pods(name)
    active = [each.get("active") for each in job["status"]["replicaStatuses"].values()]
    is_running = await lab.has_condition(name, "Running")
    are_placed = all(pod["spec"].get("nodeSelector") == POOL for pod in pods)
    return is_running and are_placed and active == [1, workers] and len(pods) == 1 + workers


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_job_that_has_to_be_on_one_host_is(
    lab: Lab, host_queue: Queue, version: str
) -> None:
    await host_queue.submit(on_one_host(waiting("pi", version)))
    await lab.runs("pi")
    await _is_on_one_host(lab, "pi")

    await host_queue.stop("HoldAndDrain")
    await _is_suspended(lab, "pi")
    await host_queue.stop("None")
    await lab.runs("pi")

    await _is_on_one_host(lab, "pi")
    await host_queue.finish("pi")


async def _is_on_one_host(lab: Lab, name: str) -> None:
    """Check that every pod is on the host that Kueue chose, and has the labels it goes by."""
    pods = await lab.pods(name)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    assert all(pod["spec"]["nodeSelector"][HOST] == pod["spec"]["nodeName"] for pod in pods)
    labels = [pod["metadata"]["labels"] for pod in pods]
    assert sorted((each[PODSET], each.get(REPLICA_INDEX)) for each in labels) == [
        ("launcher", None),
        ("worker", "0"),
        ("worker", "1"),
    ]


async def test_a_v1_job_reads_as_it_was_written_and_shows_what_kueue_changed(
    lab: Lab, queue: Queue
) -> None:
    # Kueue would add empty metadata, which changes nothing.
    written = with_pod_metadata(waiting("pi", "v1"), labels={"team": "a"})
    suspended = {**written["spec"], "runPolicy": {"suspend": True}}
    await queue.stop("Hold")
    await queue.submit(written)
    await lab.becomes("pi", "Suspended")
    read = await lab.client.get(V1, "pi", lab.namespace)
    assert read["spec"] == suspended
    assert read["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "queue"

    await queue.stop("None")
    await lab.runs("pi")
    read = await lab.client.get(V1, "pi", lab.namespace)
    assert not read["spec"]["runPolicy"].get("suspend")
    for role, replica in read["spec"]["mpiReplicaSpecs"].items():
        template = replica["template"]
        assert template["spec"]["nodeSelector"] == POOL
        assert template["metadata"]["labels"][PODSET] == role.lower()

    await queue.stop("HoldAndDrain")
    await _is_suspended(lab, "pi")
    assert (await lab.client.get(V1, "pi", lab.namespace))["spec"] == suspended


async def test_a_task_of_flyte_is_queued_until_its_job_is_admitted(
    lab: Lab, queue: Queue, flyte: Flyte
) -> None:
    labels = LABELS | queue.labels()
    await queue.stop("Hold")
    async with flyte.executing(lab, "lasts", labels=labels, timeout=f"{PATIENCE}s") as execution:
        await execution.reaches(QUEUED, "Suspended")
        # Flyte gives up on a job without a startTime, unless it is suspended.
        await until(lambda: execution.is_older(PATIENCE), 3 * PATIENCE)
        assert "startTime" not in (await execution.job())["status"]
        assert (await execution.do("handle"))["phase"] == QUEUED

        await queue.stop("None")
        # Between the write of Kueue and ours, Flyte would report an error, and ask again.
        await until(lambda: _has_start_time(execution), 60)
        await execution.reaches(RUNNING)

        await queue.stop("HoldAndDrain")
        await execution.reaches(QUEUED, "Suspended")


async def test_the_manifests_of_the_how_to_page_work(
    lab: Lab, cluster: Cluster, queue: Queue
) -> None:
    for manifests in _manifests(HOW_TO)[:2]:
        cluster.kubectl("apply", "-n", lab.namespace, "-f", "-", stdin=manifests)

    await lab.succeeds("pi")

    await queue.reports("pi", "Finished", reason="Succeeded")


def _manifests(page: Path) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


async def _has_start_time(execution: Execution) -> bool:
    return "startTime" in (await execution.job())["status"]


async def _is_suspended(lab: Lab, name: str) -> None:
    """Wait until a job has no pods, says so, and has its own templates back."""

    async def has_no_pods() -> bool:
        return not await lab.all_pods(name)

    await lab.comes_true(name, _says_suspended, 60)
    await lab.eventually(name, has_no_pods)


def _says_suspended(job: Manifest) -> bool:
    conditions = {each["type"]: each["status"] for each in job["status"]["conditions"]}
    replicas = job["status"]["replicaStatuses"].values()
    roles = job["spec"]["mpiReplicaSpecs"].values()
    return (
        conditions.get("Suspended") == "True"
        and conditions.get("Running") == "False"
        and not any(each.get("active", 0) for each in replicas)
        and not any(each["template"]["spec"].get("nodeSelector") for each in roles)
    )
