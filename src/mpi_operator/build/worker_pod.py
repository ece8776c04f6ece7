"""The pods in which ranks run: sshd by default, and whatever the launcher starts through it."""

from collections.abc import Iterable
from dataclasses import dataclass

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.labels import Role
from mpi_operator.api.types import WorkerSpec
from mpi_operator.kube.resources import PODS, Manifest

from . import remote_shell, scripts, ssh_ports, worker_start
from .config_map import worker_volume
from .ownership import owner_reference
from .pod import Equipment, pod_metadata, pod_spec
from .settings import Settings
from .ssh_secret import ssh_volume
from .volumes import Volume

# In memory: there may be passwords among the variables.
_KEPT_ENVIRONMENT = Volume(
    "mpi-job-environment",
    {"emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}},
    scripts.KEPT_ENVIRONMENT,
)


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
    first = ssh_ports.first_port(job) if remote_shell.is_used(job, settings) else None
    if first is None:
        return [_numbered(job, common, ordinal) for ordinal in ordinals]
    return [
        _with_port(job, worker, _numbered(job, common, ordinal), ssh_ports.port(first, ordinal))
        for ordinal in ordinals
    ]


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
        pod_spec(job, worker, _equipment(job, worker, settings), settings)
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


def _with_port(job: MPIJob, worker: WorkerSpec, pod: Manifest, port: int) -> Manifest:
    """A worker whose sshd listens on a port of its own."""
    given: Manifest = worker.template["spec"]["containers"][0]
    first, *others = pod["spec"]["containers"]
    start = worker_start.started(given, port, is_awaited=job.spec.launcher_waits)
    changed = {**first, **start}
    return {**pod, "spec": {**pod["spec"], "containers": [changed, *others]}}


def _equipment(job: MPIJob, worker: WorkerSpec, settings: Settings) -> Equipment:
    container: Manifest = worker.template["spec"]["containers"][0]
    role = {"K_MPI_JOB_ROLE": Role.WORKER.value}
    if not remote_shell.is_used(job, settings):
        return Equipment(role, (ssh_volume(job),), worker_start.default_command(container))
    return Equipment(
        environment=role | remote_shell.environment(job, settings),
        volumes=(ssh_volume(job), worker_volume(job), _KEPT_ENVIRONMENT),
        container=worker_start.started(container, is_awaited=job.spec.launcher_waits),
    )


def _dns_config(job: MPIJob, worker: WorkerSpec, settings: Settings) -> Manifest:
    """The user's, and the job's domain.

    Hydra's proxies call the launcher by its bare name, where the remote shell finds no address.
    """
    given = worker.template["spec"].get("dnsConfig") or {}
    searches = [*(given.get("searches") or ()), names.search_domain(job, settings.cluster_domain)]
    return {**given, "searches": list(dict.fromkeys(searches))}
