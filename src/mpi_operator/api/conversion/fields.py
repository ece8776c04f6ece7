"""Fields that an old version has in another place, or whose values have other names there."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mpi_operator.api import annotations as names
from mpi_operator.api import schema
from mpi_operator.api.types import Manifest

from .job_annotations import text, with_annotations
from .places import ABSENT, Place, get, value_at, with_value, without

RUN_POLICY = ("spec", "runPolicy")
BACKOFF_LIMIT = (*RUN_POLICY, "backoffLimit")
CLEAN_POD_POLICY = (*RUN_POLICY, "cleanPodPolicy")
ACTIVE_DEADLINE = (*RUN_POLICY, "activeDeadlineSeconds")
LAUNCHER = ("spec", "mpiReplicaSpecs", "Launcher")
WORKER = ("spec", "mpiReplicaSpecs", "Worker")
MAIN_CONTAINER = ("spec", "mainContainer")


@dataclass(frozen=True)
class Field:
    """One field of an old version and its place in the hub."""

    own: Place
    hub: Place
    own_wins: bool = False
    """Which value counts if a job has both, because old versions show the hub's fields, too."""

    is_main: bool = True
    """Whether it is the version's place for this; otherwise only jobs of the version are shown with
    it, and the hub's field is as good."""

    values: Mapping[str, str] = field(default_factory=dict)
    """The hub's names of the values that have another name there."""


def moved_up(job: Manifest, fields: Iterable[Field]) -> Manifest:
    """The job with the version's own fields where the hub has them."""
    for each in fields:
        own = get(job, each.own)
        is_ours = each.own == each.hub or each.own_wins or get(job, each.hub) is None
        if own is not None and is_ours:
            job = with_value(job, each.hub, _translated(own, each.values))
    return job


def moved_down(job: Manifest, fields: Iterable[Field], *, is_own: bool) -> Manifest:
    """The job of the hub with its fields where the version has them.

    A run policy stays even if it becomes empty: a kept entry for the whole of it would get lost as
    soon as another version changes something in it.
    """
    for each in fields:
        value = get(job, each.hub)
        if value is not None and (each.is_main or is_own):
            names_here = {new: old for old, new in each.values.items()}
            job = without(job, each.hub) if each.own != each.hub else job
            job = with_value(job, each.own, _translated(value, names_here))
    return job


def own_place(fields: Iterable[Field], place: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Where the version has what the hub has in a place."""
    for each in fields:
        if each.is_main and place[: len(each.hub)] == each.hub:
            return (*each.own, *place[len(each.hub) :])
    return place


def main_container(job: Manifest) -> str:
    """The name of the main container, from the field or the annotation; empty if there is none."""
    name = get(job, MAIN_CONTAINER)
    return name if isinstance(name, str) and name else text(job, names.MAIN_CONTAINER)


def main_container_up(job: Manifest) -> Manifest:
    """The job with its `mainContainer` as the annotation that the hub has for it."""
    name = main_container(job)
    return with_annotations(job, {names.MAIN_CONTAINER: name}) if name else job


def main_container_down(job: Manifest) -> Manifest:
    """The job with the annotation as the field."""
    name = text(job, names.MAIN_CONTAINER)
    if not name or not isinstance(job.get("spec"), dict):
        return job
    hidden = with_annotations(job, {names.MAIN_CONTAINER: None})
    shown: Manifest = with_value(hidden, MAIN_CONTAINER, name)
    return shown


def with_implied(job: Manifest, implied: Mapping[Place, object]) -> Manifest:
    """The job with the values that it implies where it gives none; it needs a spec for that."""
    if isinstance(job.get("spec"), dict):
        for place, value in implied.items():
            job = job if get(job, place) is not None else with_value(job, place, value)
    return job


def without_implied(job: Manifest, implied: Mapping[Place, object]) -> Manifest:
    """The job without the values that it would imply as well."""
    for place, value in implied.items():
        found = value_at(job, place)
        if type(found) is type(value) and found == value:
            job = without(job, place)
    return job


@cache
def hub_defaults() -> Mapping[Place, object]:
    """What the hub has by default, but for slots: old jobs usually give them."""
    spec = schema.job()["properties"]["spec"]
    defaults = _defaults(spec, ("spec",)) | _defaults(spec["properties"]["runPolicy"], RUN_POLICY)
    return {place: value for place, value in defaults.items() if place[-1] != "slotsPerWorker"}


def _defaults(shape: schema.Schema, place: Place) -> dict[Place, object]:
    fields = shape["properties"].items()
    return {(*place, name): each["default"] for name, each in fields if "default" in each}


def without_stale_error(job: Manifest) -> Manifest:
    """The job without the conversion's error once it has workers: then it was corrected."""
    replicas = value_at(job, (*WORKER, "replicas"))
    is_stale = replicas is not ABSENT and replicas != 0
    return with_annotations(job, {names.CONVERSION_ERROR: None}) if is_stale else job


def _translated(value: Any, values: Mapping[str, str]) -> Any:
    return values.get(value, value) if isinstance(value, str) else value
