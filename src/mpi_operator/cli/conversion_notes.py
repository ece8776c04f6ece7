"""What `mpijob convert` changes about a job, in sentences for its author."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from mpi_operator.api import annotations, labels
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.field_errors import Path, shown
from mpi_operator.api.profiles import PROFILES, Profile
from mpi_operator.api.types import VERSION, Manifest

_UNITS = {"gpus": "--gpus-per-node", "processingUnits": "--processing-units-per-node"}
_MISSING = object()
# Fields that an old version implies, by their path in v2beta1 and their own path if there is one.
_IMPLIED = {
    ("mpiReplicaSpecs", "Launcher", "restartPolicy"): ("template", "spec", "restartPolicy"),
    ("mpiReplicaSpecs", "Worker", "restartPolicy"): ("template", "spec", "restartPolicy"),
    ("runPolicy", "backoffLimit"): ("backoffLimit",),
    ("runPolicy", "cleanPodPolicy"): ("cleanPodPolicy",),
    ("launcherCreationPolicy",): (),
    ("runLauncherAsWorker",): (),
}


class Change:
    """A job before and after its conversion."""

    def __init__(self, before: Manifest, after: Manifest, units: UnitSettings) -> None:
        self.before, self.after, self._units = before, after, units
        self.source, self.target = version_of(before), version_of(after)

    @cached_property
    def hub(self) -> Manifest:
        """The job in v2beta1."""
        return convert(self.before, VERSION, self._units)

    @cached_property
    def back(self) -> Manifest:
        """The result, converted back: it lacks what the target cannot say."""
        return convert(self.after, self.source, self._units)


def version_of(job: Manifest) -> str:
    """The API version without its group."""
    return str(job.get("apiVersion")).rpartition("/")[2]


def notes(change: Change) -> Iterator[str]:
    """One sentence for each thing that the job says or does differently."""
    yield from _units(change)
    yield from _implied(change)
    yield from _lost(change)
    yield from _idle_workers(change)
    yield from _behaviour(change)


# --- what the job says


def _units(change: Change) -> Iterator[str]:
    if change.target == change.source:
        return
    for name, flag in _UNITS.items():
        total = _at(change.before, "spec", name)
        if total not in (None, _MISSING) and _at(change.after, "spec", name) is _MISSING:
            workers = _at(change.hub, "spec", "mpiReplicaSpecs", "Worker", "replicas")
            yield f"spec.{name}: {total} becomes {workers} workers ({flag} decides)"


def _implied(change: Change) -> Iterator[str]:
    for path, own in _IMPLIED.items():
        value = _at(change.after, "spec", *path)
        given = [_at(change.before, "spec", *each) for each in (path, own) if each]
        if value is not _MISSING and all(each in (None, _MISSING) for each in given):
            yield f"{_text(path)}: {shown(value)} is now explicit: {change.source} implies it"


def _lost(change: Change) -> Iterator[str]:
    """What the target cannot say, apart from units, which are above."""
    for path, value in _differences(change.before.get("spec"), change.back.get("spec"), ()):
        now = _at(change.after, "spec", *path)
        if path[0] in _UNITS:
            continue
        if now is _MISSING or now == value:
            yield f"{_text(path)}: {shown(value)} is dropped, because {change.target} cannot say it"
        else:
            yield f"{_text(path)}: {shown(value)} becomes {shown(now)}"


def _differences(
    mine: Any, theirs: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The outermost parts of a value that the other one lacks, or has differently."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key, value in mine.items():
            yield from _differences(value, theirs.get(key, _MISSING), (*path, key))
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for index, value in enumerate(mine):
            yield from _differences(value, theirs[index], (*path, index))
    elif mine is not None and mine != theirs and path:
        yield path, mine


def _idle_workers(change: Change) -> Iterator[str]:
    """Old versions reached workers with kubectl, so that `sleep` was enough."""
    path = ("mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0, "command")
    command = _at(change.after, "spec", *path)
    if isinstance(command, list) and command and PurePosixPath(str(command[0])).name == "sleep":
        yield f"{_text(path)}: workers that sleep start no sshd; remove the command"


# --- what the job does


def _behaviour(change: Change) -> Iterator[str]:
    old, new = _profile(change.before), _profile(change.after)
    run_policy = _at(change.hub, "spec", "runPolicy")
    policy = run_policy if isinstance(run_policy, dict) else {}
    settings = _at(change.after, "metadata", "annotations")
    if old.ttl_deletes_job != new.ttl_deletes_job and policy.get("ttlSecondsAfterFinished"):
        yield from _ttl(new, settings if isinstance(settings, dict) else {})
    if old.cleans_launcher != new.cleans_launcher and policy.get("cleanPodPolicy") == "All":
        also = "also deletes" if new.cleans_launcher else "no longer deletes"
        yield f"cleanPodPolicy All {also} the launcher, with its logs"
    if old.failed_worker_fails_job != new.failed_worker_fails_job:
        yield (
            "a failed worker fails the job, and is not replaced"
            if new.failed_worker_fails_job
            else "a failed worker is replaced, and no longer fails the job"
        )
    if old.reports_restarts != new.reports_restarts:
        now = "is" if new.reports_restarts else "is no longer"
        yield f"a launcher that is retried {now} reported as Restarting"
    if old.launcher_role != new.launcher_role:
        yield f"launchers have the label {labels.JOB_ROLE}: {new.launcher_role}"


def _ttl(new: Profile, settings: dict[str, Any]) -> Iterator[str]:
    if annotations.is_on(settings, annotations.TTL_DELETES_JOB):
        return
    if new.ttl_deletes_job:
        yield "ttlSecondsAfterFinished deletes the MPIJob, and not only its launcher"
    else:
        yield (
            "ttlSecondsAfterFinished no longer deletes the MPIJob, only its launcher; "
            f'the annotation {annotations.TTL_DELETES_JOB}: "true" restores that'
        )


def _profile(job: Manifest) -> Profile:
    written_in = _at(job, "metadata", "annotations", annotations.WRITTEN_IN)
    return PROFILES.get(str(written_in), PROFILES[version_of(job)])


# --- places in a manifest


def _at(value: Any, *path: str | int) -> Any:
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return _MISSING
    return value


def _text(path: tuple[str | int, ...]) -> str:
    """A path below `spec` as errors write it: `spec.mpiReplicaSpecs[Worker].replicas`."""
    place = Path().field("spec")
    for before, key in zip(("", *path), path, strict=False):
        is_entry = isinstance(key, int) or before == "mpiReplicaSpecs"
        place = place.entry(key) if is_entry else place.field(str(key))
    return place.text
