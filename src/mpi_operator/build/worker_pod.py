"""The pods in which ranks run: sshd by default, and whatever the launcher starts through it."""

from collections.abc import Iterable
from dataclasses import dataclass

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.labels import Role
from mpi_operator.api.types import WorkerSpec
from mpi_operator.kube.resources import PODS, Manifest

from .ownership import owner_reference
from .pod import Equipment, pod_metadata, pod_spec
from .settings import Settings
from .ssh_secret import ssh_volume


def worker_pod(job: MPIJob, ordinal: int, settings: Settings) -> Manifest:
    """One worker pod of a job that has workers."""
    [pod] = worker_pods(job, [ordinal], settings)
    return pod


def worker_pods(job: MPIJob, ordinals: Iterable[int], settings: Settings) -> list[Manifest]:
    """Some of the worker pods. They share all that is equal: a job may have thousands."""
    worker = job.spec.worker
    if worker is None:
        return []
    common = _common(job, worker, settings)
    return [_numbered(job, common, ordinal) for ordinal in ordinals]


@dataclass(frozen=True)
class _Common:
    """What all workers of a job have in common."""

    metadata: Manifest
    spec: Manifest


def _common(job: MPIJob, worker: WorkerSpec, settings: Settings) -> _Common:
    return _Common(
        {
            **pod_metadata(job, worker, {}, settings),
            "namespace": job.metadata.namespace,
            "ownerReferences": [owner_reference(job)],
        },
        pod_spec(job, worker, _equipment(job), settings)
        | {"dnsConfig": _dns_config(job, worker, settings)},
    )


def _numbered(job: MPIJob, common: _Common, ordinal: int) -> Manifest:
    name = names.worker(job, ordinal)
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **common.metadata,
            "name": name,
            "labels": common.metadata["labels"] | labels.worker_labels(job, ordinal),
        },
        "spec": {**common.spec, "hostname": name},
    }


def _equipment(job: MPIJob) -> Equipment:
    return Equipment(
        environment={"K_MPI_JOB_ROLE": Role.WORKER.value},
        volumes=(ssh_volume(job),),
        command=("/usr/sbin/sshd", "-De"),
    )


def _dns_config(job: MPIJob, worker: WorkerSpec, settings: Settings) -> Manifest:
    """The user's, and the job's domain: Hydra's proxies call the launcher by its bare name."""
    given = worker.template["spec"].get("dnsConfig") or {}
    searches = [*(given.get("searches") or ()), names.search_domain(job, settings.cluster_domain)]
    return {**given, "searches": list(dict.fromkeys(searches))}
