"""What must hold for a job to run that its types cannot say, and advice about what will surprise.

Both look at a job whose types are right; `reading` sees to that and to their sentences reaching
somebody.
"""

import re
from collections.abc import Iterator

from . import annotations, names
from .field_errors import FieldError, Path, shown
from .types import LauncherSpec, MPIJob, ReplicaSpec, ReplicaType

_NAME = Path().field("metadata").field("name")
_SPEC = Path().field("spec")
_HOST_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HOST_NAME_LENGTH = 63


def role_path(role: str) -> Path:
    """Where the spec of a role is."""
    return _SPEC.field("mpiReplicaSpecs").entry(role)


def errors(job: MPIJob) -> Iterator[FieldError]:
    """Every reason why a job cannot run."""
    yield from _name_errors(job)
    yield from _launcher_errors(job)
    yield from _worker_errors(job)


def advice(job: MPIJob) -> Iterator[FieldError]:
    """What is allowed and still not what its author may expect."""
    for role, replica in _roles(job):
        yield from _template_advice(role_path(role).field("template"), replica)
    if job.spec.slots_per_worker == 0:
        message = "with 0 slots there is no place for any rank to run"
        yield FieldError(_SPEC.field("slotsPerWorker"), message)
    yield from _annotation_advice(job)


def _annotation_advice(job: MPIJob) -> Iterator[FieldError]:
    text = job.metadata.annotations.get(annotations.INIT_TIMEOUT)
    if text is not None and annotations.init_timeout(job.metadata.annotations) is None:
        path = Path().field("metadata").field("annotations").entry(annotations.INIT_TIMEOUT)
        message = (
            f'is ignored: a time such as "600", "10m" or "1h30m" was expected, got {shown(text)}'
        )
        yield FieldError(path, message)


def _name_errors(job: MPIJob) -> Iterator[FieldError]:
    name = job.metadata.name
    last = names.worker(job, max(job.spec.worker_count - 1, 0))
    if not name:
        yield FieldError(_NAME, "is required")
    elif not _HOST_NAME.fullmatch(name):
        yield FieldError(
            _NAME,
            "becomes part of host names, so it must consist of lower-case letters, digits and "
            f"'-', start with a letter and not end with '-', got {shown(name)}",
        )
    elif len(last) > _HOST_NAME_LENGTH:
        yield FieldError(
            _NAME,
            f"is too long: the last worker would be called {last}, which has {len(last)} "
            f"characters of at most {_HOST_NAME_LENGTH}",
        )


def _launcher_errors(job: MPIJob) -> Iterator[FieldError]:
    launcher, path = job.spec.launcher, role_path(ReplicaType.LAUNCHER)
    if launcher == LauncherSpec():
        yield FieldError(path, "is required")
        return
    if launcher.replicas != 1:
        yield FieldError(path.field("replicas"), f"must be 1, got {launcher.replicas}")
    yield from _template_errors(path, launcher)


def _worker_errors(job: MPIJob) -> Iterator[FieldError]:
    worker, path = job.spec.worker, role_path(ReplicaType.WORKER)
    if worker is None:
        return
    if worker.replicas == 0 and not job.spec.run_launcher_as_worker:
        message = "must be at least 1, got 0 (0 is allowed with runLauncherAsWorker)"
        yield FieldError(path.field("replicas"), message)
    yield from _template_errors(path, worker)


def _template_errors(path: Path, replica: ReplicaSpec) -> Iterator[FieldError]:
    if not replica.template.get("spec", {}).get("containers"):
        containers = path.field("template").field("spec").field("containers")
        yield FieldError(containers, "at least one container is required")


def _template_advice(path: Path, replica: ReplicaSpec) -> Iterator[FieldError]:
    if replica.template.get("spec", {}).get("restartPolicy"):
        message = "is overridden by the restartPolicy beside the template"
        yield FieldError(path.field("spec").field("restartPolicy"), message)
    for name in ("name", "namespace", "finalizers"):
        if replica.template.get("metadata", {}).get(name):
            message = "is ignored; pods get only the labels and annotations of their template"
            yield FieldError(path.field("metadata").field(name), message)


def _roles(job: MPIJob) -> Iterator[tuple[ReplicaType, ReplicaSpec]]:
    yield ReplicaType.LAUNCHER, job.spec.launcher
    if job.spec.worker:
        yield ReplicaType.WORKER, job.spec.worker
