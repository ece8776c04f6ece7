"""Jobs that grow and shrink while they run, with real pods."""

import asyncio
import json
import os
import random
import re
import time
from datetime import datetime, timedelta
from statistics import median

import pytest

from devcluster.cluster import Cluster
from mpi_operator.api.annotations import EXEC, POD_DELETION_COST, SCALE_DOWN_DELAY, TRANSPORT
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Manifest,
    Resource,
)
from tests.cluster.operator.host_watch import WATCH, after, first_line, lists
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import Overrides, pi
from tests.support.external_metrics import external_metrics
from tests.support.mpijobs import changed

_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
_HELD = "example.com/held"
# A kubelet by itself takes up to a minute, and half of that on average. On a quiet machine it is a
# second: `make bench-elastic`. Beside other tests each step waits for the CPU.
_USUALLY = 10
_AT_MOST = 30  # no proof: one change may be lucky. The median of many is
_LONGER_DELAY = 20  # than the usual one of workers that leave
_SCALINGS = int(os.environ.get("MPI_OPERATOR_SCALINGS", "4"))
_LARGEST = 4


def _watching(name: str, **annotations: str) -> Manifest:
    """A job whose launcher prints the list of hosts whenever it changes."""
    command = {"command": ["sh", "-c", f"trap 'exit 1' TERM; {WATCH}"]}
    at_once = {"terminationGracePeriodSeconds": 1}
    job = pi(name, overrides=Overrides(launcher=command, pod=at_once))
    return changed(job, "metadata.annotations", annotations)


async def test_a_launcher_learns_within_seconds_which_workers_came_and_which_are_leaving(
    lab: Lab, cluster: Cluster
) -> None:
    delay = {SCALE_DOWN_DELAY: f"{_LONGER_DELAY}s"}
    await lab.submit(_watching("wide", **delay))
    await first_line(lab, "wide", lists("wide", [0, 1]), 120)

    asked = time.time()
    cluster.kubectl("scale", "mpijob/wide", "--replicas=3", "-n", lab.namespace)
    grown = await first_line(lab, "wide", lists("wide", [0, 1, 2]), 120)
    assert grown.time - asked < _AT_MOST

    await _mark(lab, "wide-worker-1", finalizers=[_HELD])
    change = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}})
    asked = time.time()
    cluster.kubectl("patch", "mpijob/wide", "--type=merge", "-p", change, "-n", lab.namespace)
    shrunk = await first_line(lab, "wide", after(asked, lists("wide", [0, 2])))
    assert shrunk.time - asked < _LONGER_DELAY
    before = await _deletion(lab, "wide-worker-1") + 1
    assert shrunk.time < before
    assert asked + _LONGER_DELAY < before
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


@pytest.mark.timeout(600 + 60 * _SCALINGS)
async def test_jobs_that_were_scaled_up_and_down_have_what_they_should_and_nothing_else(
    lab: Lab, cluster: Cluster
) -> None:
    by_ssh, by_exec = names = ("by-ssh", "by-exec")
    await lab.submit(_watching(by_ssh))
    await lab.submit(_watching(by_exec, **{TRANSPORT: EXEC}))
    for name in names:
        await first_line(lab, name, lists(name, [0, 1]), 120)
    before = await _objects(lab)

    scalings = (_scale_up_and_down(lab, cluster, name) for name in names)
    seconds = [each for found in await asyncio.gather(*scalings) for each in found]

    for name in names:
        assert await lab.restarts(name) == 0
    role = await lab.client.get(ROLES, f"{by_exec}-launcher", lab.namespace)
    [rule] = role["rules"]
    assert rule["resourceNames"] == await lab.pod_names(by_exec, "worker")
    assert await _objects(lab) == before
    assert median(seconds) < _USUALLY, seconds


async def _scale_up_and_down(lab: Lab, cluster: Cluster, name: str) -> list[float]:
    """Change the size of a job again and again; how long its launcher did not know, each time."""
    chance = random.Random(f"{name} {_SCALINGS}")
    size, seconds = 2, list[float]()
    for _ in range(_SCALINGS):
        size = chance.choice([each for each in range(1, _LARGEST + 1) if each != size])
        await _mark(lab, chance.choice(await lab.pod_names(name, "worker")))
        # The mark and the new size reach the operator in no particular order. So this is between.
        assert await _printed(lab, cluster, name) == await lab.pod_names(name, "worker")
        seconds.append(await _rescale(lab, name, size))
    assert await _printed(lab, cluster, name) == await lab.pod_names(name, "worker")
    return seconds


async def _printed(lab: Lab, cluster: Cluster, name: str) -> list[str]:
    """The workers that the discovery script names in the launcher."""
    [launcher] = await lab.pod_names(name, "launcher")
    script = ("sh", "/etc/mpi/discover_hosts.sh")
    printed = await asyncio.to_thread(
        cluster.kubectl, "exec", "-n", lab.namespace, launcher, "--", *script
    )
    return [_pod(line) for line in printed.splitlines()]


def _pod(host: str) -> str:
    """The name of a pod, whose line may go on with a domain and slots."""
    return re.split("[.: ]", host)[0]


async def _rescale(lab: Lab, name: str, size: int) -> float:
    """Change the size of a job, and wait until its launcher knows its workers.

    Returns how many seconds it did not know them after they ran, or after they were to leave.
    """
    stay = _staying(await lab.pods(name, "worker"), size)
    asked = time.time()
    await lab.scale(name, size)
    await lab.eventually(name, lambda: _has_settled(lab, name, size), 120)
    pods = await lab.pods(name, "worker")
    assert stay.items() <= _uids(pods).items()
    listed = after(asked, lists(name, map(_index, pods)))
    known = await first_line(lab, name, listed, 30)
    return known.time - max(asked, *map(_running_since, pods))


def _staying(workers: list[Manifest], size: int) -> dict[str, str]:
    """The workers that stay in a job of a new size: marked ones leave first, then the highest."""

    def order(pod: Manifest) -> tuple[bool, int]:
        is_marked = POD_DELETION_COST in pod["metadata"].get("annotations", {})
        return not is_marked, -_index(pod)

    leaving = max(len(workers) - size, 0)
    return _uids(sorted(workers, key=order)[leaving:])


def _uids(pods: list[Manifest]) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def _index(worker: Manifest) -> int:
    return int(worker["metadata"]["name"].rpartition("-")[2])


async def _has_settled(lab: Lab, name: str, size: int) -> bool:
    """Whether a job has so many workers, all of them run, and both lists have them."""
    pods = await lab.all_pods(name, "worker")
    names = [pod["metadata"]["name"] for pod in pods]
    found = await lab.client.get(CONFIG_MAPS, f"{name}-config", lab.namespace)
    hostfile = [_pod(line) for line in found["data"]["hostfile"].splitlines()]
    listed = [_pod(host) for host in await lab.hosts(name)]
    run = all(pod["status"].get("phase") == "Running" for pod in pods)
    return run and len(names) == size and names == hostfile == listed


async def _objects(lab: Lab) -> dict[str, list[str]]:
    """What a namespace has of everything that the operator creates, besides pods."""
    kinds = (CONFIG_MAPS, SERVICES, SECRETS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, JOBS)
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
