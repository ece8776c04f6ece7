"""Jobs that grow and shrink while they run, with real pods."""

import json
import os
import random
import time
from datetime import datetime, timedelta

import pytest

from devcluster.cluster import Cluster
from mpi_operator.api.annotations import POD_DELETION_COST
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    SECRETS,
    SERVICES,
    Manifest,
    Resource,
)
from tests.cluster.operator.host_watch import WATCH, after, first_line, lists
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import Overrides, pi
from tests.support.external_metrics import external_metrics

_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
_HELD = "example.com/held"
# A kubelet by itself takes a minute. On a quiet machine it is a second: `make bench-elastic`.
_SOON = 15
_SCALINGS = int(os.environ.get("MPI_OPERATOR_SCALINGS", "4"))
_LARGEST = 4


def _watching(name: str) -> Manifest:
    """A job whose launcher prints the list of hosts whenever it changes."""
    command = {"command": ["sh", "-c", f"trap 'exit 1' TERM; {WATCH}"]}
    at_once = {"terminationGracePeriodSeconds": 1}
    return pi(name, overrides=Overrides(launcher=command, pod=at_once))


async def test_a_launcher_learns_within_seconds_which_workers_came_and_which_are_leaving(
    lab: Lab, cluster: Cluster
) -> None:
    await lab.submit(_watching("wide"))
    await first_line(lab, "wide", lists("wide", [0, 1]), 120)

    cluster.kubectl("scale", "mpijob/wide", "--replicas=3", "-n", lab.namespace)
    grown = await first_line(lab, "wide", lists("wide", [0, 1, 2]), 120)
    worker = await lab.client.get(PODS, "wide-worker-2", lab.namespace)
    assert grown.time - _running_since(worker) < _SOON

    await _mark(lab, "wide-worker-1", finalizers=[_HELD])
    change = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    accepted = time.time()
    cluster.kubectl("patch", "mpijob/wide", "--type=merge", "-p", change, "-n", lab.namespace)
    shrunk = await first_line(lab, "wide", after(accepted, lists("wide", [0, 2])))
    assert shrunk.time - accepted < _SOON
    assert shrunk.time < await _deletion(lab, "wide-worker-1") + 1
    await _mark(lab, "wide-worker-1", finalizers=None)
    await lab.gone(PODS, "wide-worker-1")
    assert await lab.pod_names("wide", "worker") == ["wide-worker-0", "wide-worker-2"]


async def test_an_autoscaler_changes_the_number_of_workers(lab: Lab, cluster: Cluster) -> None:
    await lab.submit(_watching("auto"))
    await first_line(lab, "auto", lists("auto", [0, 1]), 120)
    async with external_metrics(lab.client, cluster, lab.namespace, 3) as load:
        await lab.client.create(_AUTOSCALERS, _autoscaler("auto", lab.namespace))
        # The controller learns of a new kind after half a minute.
        await first_line(lab, "auto", lists("auto", [0, 1, 2]), 120)
        load.value = 1
        await first_line(lab, "auto", lists("auto", [0]), 120)
    await lab.eventually("auto", lambda: lab.has_workers("auto", 1))


@pytest.mark.timeout(300 + 60 * _SCALINGS)
async def test_a_job_that_was_scaled_up_and_down_has_what_it_should_and_nothing_else(
    lab: Lab, cluster: Cluster
) -> None:
    chance = random.Random(_SCALINGS)
    await lab.submit(_watching("often"))
    await first_line(lab, "often", lists("often", [0, 1]), 120)
    before = await _objects(lab)
    size = 2
    for _ in range(_SCALINGS):
        size = chance.choice([each for each in range(1, _LARGEST + 1) if each != size])
        await _mark(lab, chance.choice(await lab.pod_names("often", "worker")))
        await _rescale(lab, "often", size)

    workers = await lab.pod_names("often", "worker")
    [launcher] = await lab.pod_names("often", "launcher")
    script = ("sh", "/etc/mpi/discover_hosts.sh")
    printed = cluster.kubectl("exec", "-n", lab.namespace, launcher, "--", *script)
    assert [line.partition(".")[0] for line in printed.splitlines()] == workers
    assert await _objects(lab) == before
    assert await lab.restarts("often") == 0


async def _rescale(lab: Lab, name: str, size: int) -> None:
    """Change the size of a job, and wait until its launcher knows its workers."""
    before = time.time()
    await lab.scale(name, size)
    await lab.eventually(name, lambda: _has_settled(lab, name, size), 120)
    workers = [int(pod.rpartition("-")[2]) for pod in await lab.pod_names(name, "worker")]
    await first_line(lab, name, after(before, lists(name, workers)), 30)


async def _has_settled(lab: Lab, name: str, size: int) -> bool:
    """Whether a job has so many workers, all of them run, and both lists have them."""
    pods = await lab.all_pods(name, "worker")
    names = [pod["metadata"]["name"] for pod in pods]
    found = await lab.client.get(CONFIG_MAPS, f"{name}-config", lab.namespace)
    hostfile = [line.partition(".")[0] for line in found["data"]["hostfile"].splitlines()]
    listed = [host.partition(".")[0] for host in await lab.hosts(name)]
    run = all(pod["status"].get("phase") == "Running" for pod in pods)
    return run and len(names) == size and names == hostfile == listed


async def _objects(lab: Lab) -> dict[str, list[str]]:
    """What a job has besides its workers."""
    kinds = (CONFIG_MAPS, SERVICES, SECRETS, JOBS)
    return {
        kind.kind: sorted(
            each["metadata"]["name"] for each in (await lab.client.list(kind, lab.namespace)).items
        )
        for kind in kinds
    }


async def _mark(lab: Lab, pod: str, **metadata: object) -> None:
    """Say that a worker is to leave first."""
    note = {"annotations": {POD_DELETION_COST: "-1"}, **metadata}
    await lab.client.patch(PODS, pod, {"metadata": note}, lab.namespace)


async def _deletion(lab: Lab, pod: str) -> float:
    """Wait until a pod is deleted; when that was, in whole seconds."""

    async def metadata() -> Manifest:
        found: Manifest = (await lab.client.get(PODS, pod, lab.namespace))["metadata"]
        return found

    async def is_deleted() -> bool:
        return "deletionTimestamp" in await metadata()

    await lab.eventually(pod.partition("-worker")[0], is_deleted)
    found = await metadata()
    grace = timedelta(seconds=found["deletionGracePeriodSeconds"])
    return (datetime.fromisoformat(found["deletionTimestamp"]) - grace).timestamp()


def _running_since(pod: Manifest) -> float:
    [status] = pod["status"]["containerStatuses"]
    return datetime.fromisoformat(status["state"]["running"]["startedAt"]).timestamp()


def _autoscaler(name: str, namespace: str) -> Manifest:
    target = {"type": "AverageValue", "averageValue": "1"}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": name,
            },
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {"type": "External", "external": {"metric": {"name": "load"}, "target": target}}
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
