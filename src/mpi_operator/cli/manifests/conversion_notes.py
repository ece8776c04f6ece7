"""What `mpijob convert` changes about a job, in sentences for its author."""

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from mpi_operator.api import annotations, labels
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.conversion.roles import worker_container
from mpi_operator.api.field_errors import Path, shown
from mpi_operator.api.profiles import PROFILES, Profile
from mpi_operator.api.types import VERSION, Manifest

from .clean_manifest import cleaned, without_defaults
from .manifest_values import MISSING, at, get

_UNITS = {"gpus": "gpus_per_node", "processingUnits": "processing_units_per_node"}
# Fields that an old version implies, by their path in v2beta1 and their own path if there is one.
_IMPLIED = {
    ("mpiReplicaSpecs", "Launcher", "restartPolicy"): ("template", "spec", "restartPolicy"),
    ("mpiReplicaSpecs", "Worker", "restartPolicy"): ("template", "spec", "restartPolicy"),
    ("runPolicy", "backoffLimit"): ("backoffLimit",),
    ("runPolicy", "cleanPodPolicy"): ("cleanPodPolicy",),
    ("launcherCreationPolicy",): (),
    ("runLauncherAsWorker",): (),
}
# Fields that some versions lack, and the annotations that keep what they say.
_KEPT = {
    ("mainContainer",): annotations.MAIN_CONTAINER,
    ("mpiReplicaSpecs", "Launcher", "restartPolicy"): annotations.LAUNCHER_RESTART_POLICY,
    ("mpiReplicaSpecs", "Worker", "restartPolicy"): annotations.WORKER_RESTART_POLICY,
}
_LONGEST = 60  # characters of a value


class Change:
    """A job before and after its conversion."""

    def __init__(self, before: Manifest, after: Manifest, units: UnitSettings) -> None:
        self.before, self.after, self._units = before, after, units
        self.source, self.target = version_of(before), version_of(after)

    @cached_property
    def hub(self) -> Manifest:
        """The job in v2beta1."""
        return self.in_hub(self.before)

    def in_hub(self, job: Manifest) -> Manifest:
        """Another form of the job in v2beta1, without bookkeeping and defaults."""
        return without_defaults(self._full_hub(job), {})

    def back(self) -> Manifest:
        """The job in the version that it comes from, as v2beta1 knows it."""
        return convert(self._full_hub(self.before), self.source, self._units)

    def _full_hub(self, job: Manifest) -> Manifest:
        return cleaned(convert(job, VERSION, self._units), keep_behavior=False)

    @property
    def settings(self) -> dict[str, Any]:
        """The annotations of the job after its conversion."""
        return get(self.after, "metadata", "annotations") or {}

    def per_node(self, total: str) -> int:
        """The units of a node where the job does not say."""
        units: int = getattr(self._units, _UNITS[total])
        return units


def version_of(job: Manifest) -> str:
    """The API version without its group."""
    return str(job.get("apiVersion")).rpartition("/")[2]


def notes(change: Change) -> Iterator[str]:
    """One sentence for each thing that the job says or does differently."""
    yield from _units(change)
    yield from _implied(change)
    yield from _kept(change)
    yield from _becomes(change)
    yield from _ineffective(change)
    yield from losses(change)
    yield from _idle_workers(change)
    yield from _behaviour(change)


# --- what the job says


def _units(change: Change) -> Iterator[str]:
    for name in _UNITS:
        total = get(change.before, "spec", name)
        if total is not None and get(change.after, "spec", name) is None:
            per_node = get(change.before, "spec", f"{name}PerNode") or change.per_node(name)
            workers = get(change.hub, "spec", "mpiReplicaSpecs", "Worker", "replicas")
            plural = "" if workers == 1 else "s"
            yield f"spec.{name}: {total} means {workers} worker{plural}, with {per_node} per node"


def _implied(change: Change) -> Iterator[str]:
    for path, own in _IMPLIED.items():
        value = at(change.after, "spec", *path)
        own_values = [get(change.before, "spec", *each) for each in (path, own) if each]
        if value is not MISSING and own_values == [None] * len(own_values):
            yield f"{_text(path)}: {_shown(value)} is explicit now; {change.source} implies it"


def _kept(change: Change) -> Iterator[str]:
    for path, name in _kept_fields(change).items():
        value, now = at(change.before, "spec", *path), at(change.after, "spec", *path)
        field = "" if now is MISSING else f"; the field becomes {_shown(now)}"
        yield f"{_text(path)}: {_shown(value)} is kept by the annotation {name}{field}"


def _kept_fields(change: Change) -> dict[tuple[str | int, ...], str]:
    """Fields that say something else now, or nothing, because an annotation says it."""
    before, after = change.before, change.after
    said = get(after, "metadata", "annotations") or {}
    return {
        path: name
        for path, name in _KEPT.items()
        if name in said and said[name] == at(before, "spec", *path) != at(after, "spec", *path)
    }


def _ineffective(change: Change) -> Iterator[str]:
    """What v2beta1 cannot express, because it never had an effect."""
    back = change.back()
    for path, value in _differences(change.before.get("spec"), back.get("spec"), ()):
        if change.source != VERSION and change.in_hub(_without(change.before, path)) == change.hub:
            yield f"{_text(path)}: {_shown(value)} has no effect and is dropped"


def losses(change: Change) -> Iterator[str]:
    """What the target cannot express, apart from units, which have notes of their own."""
    after = change.in_hub(change.after)
    for path, value in _differences(change.hub.get("spec"), after.get("spec"), ()):
        is_there = at(change.after, "spec", *path) == value
        lost = "has no effect there" if is_there else "is dropped"
        yield f"{_text(path)}: {_shown(value)} {lost}: {change.target} cannot express it"


def _becomes(change: Change) -> Iterator[str]:
    """Values that are others now, in the same place."""
    for path, value in _differences(change.before.get("spec"), change.after.get("spec"), ()):
        now = at(change.after, "spec", *path)
        if now is not MISSING and path not in _kept_fields(change):
            yield f"{_text(path)}: {_shown(value)} becomes {_shown(now)}"


def _differences(
    mine: Any, theirs: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The outermost parts of a value that the other one lacks, or has differently."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key, value in mine.items():
            yield from _differences(value, theirs.get(key, MISSING), (*path, key))
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for index, value in enumerate(mine):
            yield from _differences(value, theirs[index], (*path, index))
    elif mine is not None and mine != theirs and path:
        yield path, mine


def _idle_workers(change: Change) -> Iterator[str]:
    """Old versions reached workers with kubectl, so that `sleep` was enough."""
    _, *parents, index = worker_container(change.after)
    path: tuple[str | int, ...] = (*parents, int(index), "command")
    command = at(change.after, "spec", *path)
    if isinstance(command, list) and command and PurePosixPath(str(command[0])).name == "sleep":
        yield f"{_text(path)}: workers that sleep start no sshd; remove the command"


# --- what the job does


def _behaviour(change: Change) -> Iterator[str]:
    old, new = _profile(change.before), _profile(change.after)
    ttl = get(change.hub, "spec", "runPolicy", "ttlSecondsAfterFinished")
    policy = get(change.hub, "spec", "runPolicy", "cleanPodPolicy")
    if old.ttl_deletes_job != new.ttl_deletes_job and ttl is not None:
        yield from _ttl(new, change.settings)
    if old.cleans_launcher != new.cleans_launcher and policy == "All":
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
    yield from _transport(change, old, new)
    if old.launcher_role != new.launcher_role:
        yield f"launchers have the label {labels.JOB_ROLE}: {new.launcher_role}"


def _transport(change: Change, old: Profile, new: Profile) -> Iterator[str]:
    """How launchers reach workers, if neither the job nor its author says it."""
    if old.transport == new.transport or annotations.TRANSPORT in change.settings:
        return
    means = {
        annotations.SSH: "ssh, for which images need an sshd, instead of exec",
        annotations.EXEC: "exec, for which images need no sshd, instead of ssh",
    }
    yield (
        f"launchers reach workers by {means[new.transport]}; "
        f"the annotation {annotations.TRANSPORT}: {old.transport} keeps {old.transport}"
    )


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
    written_in = at(job, "metadata", "annotations", annotations.WRITTEN_IN)
    return PROFILES.get(str(written_in), PROFILES[version_of(job)])


# --- values and places in a manifest


def _shown(value: Any) -> str:
    """A value for a sentence. Errors would say only "array" of a list."""
    if not isinstance(value, list | dict):
        return shown(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _without(job: Manifest, path: tuple[str | int, ...]) -> Manifest:
    """A copy of a job that lacks a place below its spec."""
    copy = deepcopy(job)
    *parents, last = path
    del at(copy, "spec", *parents)[last]
    return copy


def _text(path: tuple[str | int, ...]) -> str:
    """A path below `spec` as errors write it: `spec.mpiReplicaSpecs[Worker].replicas`."""
    place = Path().field("spec")
    for before, key in zip(("", *path), path, strict=False):
        is_entry = isinstance(key, int) or before == "mpiReplicaSpecs"
        place = place.entry(key) if is_entry else place.field(str(key))
    return place.text
