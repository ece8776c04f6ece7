"""Queues of Kueue, the jobs in them, and what Kueue says about those."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest, Resource
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import OPEN_MPI, Overrides, pi
from tests.support.mpijobs import changed, without
from tests.support.waiting import until

_API = "kueue.x-k8s.io"
_VERSION = "v1beta2"
_WORKLOADS = Resource(_API, _VERSION, "workloads", "Workload")
_LOCAL_QUEUES = Resource(_API, _VERSION, "localqueues", "LocalQueue")
_CLUSTER_QUEUES = Resource(_API, _VERSION, "clusterqueues", "ClusterQueue", namespaced=False)

POOL = {"example.com/pool": "reserved"}
POOL_LABEL = "example.com/pool=reserved"  # only node-1 has it
HOST = "kubernetes.io/hostname"
PODSET = f"{_API}/podset"
_PRIORITIES = {"low": 10, "high": 1000}
_IMPLEMENTATION = "spec.mpiImplementation"  # v1 does not have it
_CPU = {"resources": {"requests": {"cpu": "100m"}}}
_CPU_OF_A_JOB = "300m"  # a launcher and two workers
_MEMORY = "1Gi"


def shared() -> str:
    """Flavors and priorities, as JSON: by label, and by host (topology-aware scheduling)."""
    objects = [
        _object("ResourceFlavor", "pool", spec={"nodeLabels": POOL}),
        _object("Topology", "hosts", spec={"levels": [{"nodeLabel": HOST}]}),
        _object(
            "ResourceFlavor",
            "hosts",
            spec={"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": "hosts"},
        ),
        *(_object("WorkloadPriorityClass", name, value=v) for name, v in _PRIORITIES.items()),
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


class Queue:
    """A LocalQueue of a namespace, and the ClusterQueue behind it."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self._lab = lab
        self._cluster = cluster

    async def submit(self, job: Manifest, *, priority: str = "low") -> None:
        """Create a job as people do, in the version that it is written in."""
        namespace = self._lab.namespace
        metadata = {**job["metadata"], "namespace": namespace, "labels": self.labels(priority)}
        await self._lab.client.create(_resource(job), {**job, "metadata": metadata})

    def labels(self, priority: str = "low") -> dict[str, str]:
        """The labels of a job in this queue."""
        return {f"{_API}/queue-name": "queue", f"{_API}/priority-class": priority}

    async def stop(self, policy: str) -> None:
        """`Hold` admits no more jobs, `HoldAndDrain` evicts those that run, `None` goes on."""
        change = {"spec": {"stopPolicy": policy}}
        await self._lab.client.patch(_CLUSTER_QUEUES, self._lab.namespace, change)

    async def finish(self, name: str) -> None:
        """Wait until a job made with `waiting` runs, and let it go on to its end."""
        await self._lab.runs(name)
        [launcher] = [pod for pod in await self._lab.pod_names(name) if "-launcher" in pod]
        touch = ("touch", "/tmp/go")
        self._cluster.kubectl("exec", "-n", self._lab.namespace, launcher, "--", *touch)
        await self._lab.succeeds(name)
        await self.reports(name, "Finished", reason="Succeeded")

    async def reports(self, name: str, kind: str, *, reason: str) -> None:
        """Wait for a condition that Kueue gives to the Workload of a job."""

        async def is_reported() -> bool:
            return (kind, "True", reason) in [
                (each["type"], each["status"], each["reason"])
                for each in await self._conditions(name)
            ]

        try:
            await until(is_reported, 30)
        except TimeoutError:
            raise AssertionError(await self._conditions(name)) from None

    async def _conditions(self, name: str) -> list[Manifest]:
        workloads = (await self._lab.client.list(_WORKLOADS, self._lab.namespace)).items
        [found] = [each for each in workloads if _owner(each) == name]
        conditions: list[Manifest] = found.get("status", {}).get("conditions", [])
        return conditions


@asynccontextmanager
async def created(lab: Lab, cluster: Cluster, flavor: str) -> AsyncIterator[Queue]:
    """A queue that takes one job at a time, and gives way to higher priorities."""
    name, client = lab.namespace, lab.client
    await client.create(_CLUSTER_QUEUES, _object("ClusterQueue", name, spec=_quota(flavor)))
    local = _object("LocalQueue", "queue", spec={"clusterQueue": name})
    await client.create(_LOCAL_QUEUES, changed(local, "metadata.namespace", name))
    yield Queue(lab, cluster)
    await client.delete(_CLUSTER_QUEUES, name)


def waiting(name: str, version: str = "v2beta1") -> Manifest:
    """A job, written in a version of the API, that runs until it is told to finish."""
    mpirun = " ".join(OPEN_MPI.command())
    script = f"trap 'exit 1' TERM; until test -e /tmp/go; do sleep 0.2; done; exec {mpirun}"
    launcher = _CPU | {"command": ["sh", "-c", script]}
    job = without(pi(name, overrides=Overrides(launcher=launcher, worker=_CPU)), _IMPLEMENTATION)
    return {**job, "apiVersion": f"kubeflow.org/{version}"}


def on_one_host(job: Manifest) -> Manifest:
    """A job whose pods ask to be together on one host."""
    together = {f"{_API}/podset-required-topology": HOST, f"{_API}/podset-group-name": "all"}
    return with_pod_metadata(job, annotations=together)


def with_pod_metadata(job: Manifest, **metadata: Any) -> Manifest:
    """A job with metadata in both templates."""
    for role in ("Launcher", "Worker"):
        job = changed(job, f"spec.mpiReplicaSpecs.{role}.template.metadata", metadata)
    return job


def _quota(flavor: str) -> Manifest:
    quotas = {"cpu": _CPU_OF_A_JOB, "memory": _MEMORY}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    flavors = [{"name": flavor, "resources": resources}]
    return {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": list(quotas), "flavors": flavors}],
    }


def _resource(job: Manifest) -> Resource:
    version = job["apiVersion"].partition("/")[2]
    return Resource("kubeflow.org", version, "mpijobs", "MPIJob")


def _object(kind: str, name: str, **content: Any) -> Manifest:
    return {
        "apiVersion": f"{_API}/{_VERSION}",
        "kind": kind,
        "metadata": {"name": name},
        **content,
    }


def _owner(workload: Manifest) -> str:
    [owner] = workload["metadata"]["ownerReferences"]
    return str(owner["name"])
