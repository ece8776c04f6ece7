"""Rules for jobs that a schema cannot express: errors, and warnings about settings that surprise.

Both take a job that has passed `schema_validation`.
"""

import re
from collections.abc import Iterator

from . import annotations, names
from .field_errors import FieldError, Path, invalid, required, shown
from .main_container import chosen_container
from .types import LauncherSpec, MPIJob, ReplicaSpec, ReplicaType

_NAME = Path().field("metadata").field("name")
_SPEC = Path().field("spec")
_HOST_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HOST_NAME_LENGTH = 63


def role_path(role: str) -> Path:
    """The path of a role's spec."""
    return _SPEC.field("mpiReplicaSpecs").entry(role)


def errors(job: MPIJob) -> Iterator[FieldError]:
    """Every reason why a job cannot run."""
    yield from _name_errors(job)
    yield from _launcher_errors(job)
    yield from _worker_errors(job)


def warnings(job: MPIJob) -> Iterator[FieldError]:
    """What is valid but may not do what the author expects."""
    for role, replica in _roles(job):
        yield from _template_warnings(role_path(role).field("template"), replica)
    if job.spec.slots_per_worker == 0:
        yield FieldError(_SPEC.field("slotsPerWorker"), "with 0 slots no rank can run")
    yield from _annotation_warnings(job)


def _annotation_warnings(job: MPIJob) -> Iterator[FieldError]:
    given = job.metadata.annotations
    if annotations.INIT_TIMEOUT in given and annotations.init_timeout(given) is None:
        yield _ignored(job, annotations.INIT_TIMEOUT, 'a duration such as "600", "10m" or "1h30m"')
    if annotations.SCALE_DOWN_DELAY in given and annotations.scale_down_delay(given) is None:
        yield _ignored(job, annotations.SCALE_DOWN_DELAY, 'a duration such as "30" or "2m"')
    if annotations.TRANSPORT in given and not annotations.transport(given):
        yield _ignored(job, annotations.TRANSPORT, f'"{annotations.SSH}" or "{annotations.EXEC}"')
    for name, values in annotations.RESTART_POLICIES.items():
        if name in given and not annotations.restart_policy(given, name):
            yield _ignored(job, name, " or ".join(map(shown, values)))
    yield from _main_container_warnings(job)


def _main_container_warnings(job: MPIJob) -> Iterator[FieldError]:
    name = job.metadata.annotations.get(annotations.MAIN_CONTAINER)
    if name is None:
        return
    for role, replica in _roles(job):
        containers = replica.template.get("spec", {}).get("containers")
        if containers and not chosen_container(job, replica):
            message = f"{role} has no container {shown(name)}, so its first one is used"
            yield FieldError(_annotation(annotations.MAIN_CONTAINER), message)


def _ignored(job: MPIJob, name: str, expected: str) -> FieldError:
    text = job.metadata.annotations[name]
    return FieldError(_annotation(name), f"ignored: must be {expected}, got {shown(text)}")


def _annotation(name: str) -> Path:
    return Path().field("metadata").field("annotations").entry(name)


def _name_errors(job: MPIJob) -> Iterator[FieldError]:
    name = job.metadata.name
    last = names.worker(job, max(job.spec.worker_count - 1, 0))
    if not name:
        yield FieldError(_NAME, required())
    elif not _HOST_NAME.fullmatch(name):
        yield FieldError(
            _NAME,
            invalid(
                name,
                "must consist of lower-case letters, digits and '-', start with a letter and not "
                "end with '-', because it becomes part of host names",
            ),
        )
    elif len(last) > _HOST_NAME_LENGTH:
        detail = (
            f"too long: the last worker would be named {last}, which has {len(last)} characters; "
            f"the maximum is {_HOST_NAME_LENGTH}"
        )
        yield FieldError(_NAME, invalid(name, detail))


def _launcher_errors(job: MPIJob) -> Iterator[FieldError]:
    launcher, path = job.spec.launcher, role_path(ReplicaType.LAUNCHER)
    if launcher == LauncherSpec():
        yield FieldError(path, required("a job needs a Launcher"))
        return
    if launcher.replicas != 1:
        yield FieldError(path.field("replicas"), invalid(launcher.replicas, "must be 1"))
    yield from _template_errors(path, launcher)


def _worker_errors(job: MPIJob) -> Iterator[FieldError]:
    worker, path = job.spec.worker, role_path(ReplicaType.WORKER)
    if worker is None:
        return
    why = job.metadata.annotations.get(annotations.CONVERSION_ERROR)
    if worker.replicas == 0 and why:
        yield _in_terms_of_the_author(why)
    elif worker.replicas == 0 and not job.spec.run_launcher_as_worker:
        detail = "must be at least 1 unless runLauncherAsWorker is true"
        yield FieldError(path.field("replicas"), invalid(0, detail))
    yield from _template_errors(path, worker)


def _in_terms_of_the_author(sentence: str) -> FieldError:
    """What the conversion says about a field of the version that the job was written in."""
    field, _, message = sentence.partition(": ")
    name = field.removeprefix("spec.")
    return FieldError(_SPEC.field(name), message) if message else FieldError(_SPEC, sentence)


def _template_errors(path: Path, replica: ReplicaSpec) -> Iterator[FieldError]:
    if not replica.template.get("spec", {}).get("containers"):
        containers = path.field("template").field("spec").field("containers")
        yield FieldError(containers, required("at least one container is required"))


def _template_warnings(path: Path, replica: ReplicaSpec) -> Iterator[FieldError]:
    if replica.template.get("spec", {}).get("restartPolicy"):
        message = "overridden by the restartPolicy next to the template"
        yield FieldError(path.field("spec").field("restartPolicy"), message)
    for name in ("name", "namespace", "finalizers"):
        if replica.template.get("metadata", {}).get(name):
            message = "ignored; pods take only labels and annotations from their template"
            yield FieldError(path.field("metadata").field(name), message)


def _roles(job: MPIJob) -> Iterator[tuple[ReplicaType, ReplicaSpec]]:
    yield ReplicaType.LAUNCHER, job.spec.launcher
    if job.spec.worker:
        yield ReplicaType.WORKER, job.spec.worker
