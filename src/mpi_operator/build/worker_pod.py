"""The worker pods, in which the launcher starts ranks.

By default they run an sshd; where the launcher uses exec, they only wait.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.labels import Role
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import WorkerSpec
from mpi_operator.kube.resources import PODS, Manifest

from . import remote_shell, scripts, worker_start
from .config_map import worker_volume
from .ownership import owner_reference
from .pod import Additions, dns_config, pod_metadata, pod_spec
from .settings import Settings
from .ssh_secret import ssh_volume
from .volumes import Volume

# In memory, because variables may contain passwords.
_KEPT_ENVIRONMENT = Volume(
    "mpi-job-environment",
    {"emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}},
    scripts.KEPT_ENVIRONMENT,
)


def worker_pod(job: MPIJob, ordinal: int, settings: Settings) -> Manifest:
    """One worker pod."""
    [pod] = worker_pods(job, [ordinal], settings)
    return pod


def worker_pods(job: MPIJob, ordinals: Iterable[int], settings: Settings) -> list[Manifest]:
    """Several worker pods. They share equal parts, because a job may have thousands."""
    worker = job.spec.worker
    if worker is None:
        return []
    common = _common(job, worker, settings)
    first = remote_shell.first_ssh_port(job) if remote_shell.is_used(job, settings) else None
    if first is None:
        return [_pod(job, common, ordinal) for ordinal in ordinals]
    return [
        _with_port(job, worker, _pod(job, common, ordinal), remote_shell.ssh_port(first, ordinal))
        for ordinal in ordinals
    ]


@dataclass(frozen=True)
class _Common:
    """The parts that all workers of a job share."""

    metadata: Manifest
    spec: Manifest


def _common(job: MPIJob, worker: WorkerSpec, settings: Settings) -> _Common:
    return _Common(
        {
            **pod_metadata(job, worker, {}, settings),
            "namespace": job.metadata.namespace,
            "ownerReferences": [owner_reference(job)],
        },
        pod_spec(job, worker, _additions(job, worker, settings), settings)
        | {"dnsConfig": dns_config(job, worker, settings)},
    )


def _pod(job: MPIJob, common: _Common, ordinal: int) -> Manifest:
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
    """The pod of a worker whose sshd listens on its own port."""
    given = main_container(job, worker)
    start = worker_start.start_fields(given, port, launcher_waits=job.spec.launcher_waits)
    containers = [
        {**each, **start} if each["name"] == given["name"] else each
        for each in pod["spec"]["containers"]
    ]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def _additions(job: MPIJob, worker: WorkerSpec, settings: Settings) -> Additions:
    container = main_container(job, worker)
    role = {"K_MPI_JOB_ROLE": Role.WORKER.value}
    if uses_exec(job):
        start = worker_start.idle_command(container, settings)
        return Additions(role, (worker_volume(job),), start)
    if not remote_shell.is_used(job, settings):
        return Additions(role, (ssh_volume(job),), worker_start.default_command(container))
    return Additions(
        environment=role | remote_shell.environment(job, settings),
        volumes=(ssh_volume(job), worker_volume(job), _KEPT_ENVIRONMENT),
        container=worker_start.start_fields(container, launcher_waits=job.spec.launcher_waits),
    )
