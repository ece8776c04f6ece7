"""What the author of a job should know, in the terms of the version that it is written in."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from mpi_operator.api import FieldError, annotations, decode, types
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.conversion.empty_choices import without_empty_choices
from mpi_operator.api.conversion.places import Place, get
from mpi_operator.api.conversion.roles import worker_container
from mpi_operator.api.schema_validation import validate
from mpi_operator.kube.resources import Manifest

from .field_paths import schema_of, translated, written

_Warning: TypeAlias = tuple[Place, str]

_SPEC = ("spec",)
_RUN_POLICY = ("spec", "runPolicy")
_LAUNCHER = ("spec", "mpiReplicaSpecs", "Launcher")
_WORKER = ("spec", "mpiReplicaSpecs", "Worker")
_TEMPLATE_POLICY = ("spec", "template", "spec", "restartPolicy")


def warnings(job: Manifest, version: str, units: UnitSettings) -> Iterator[FieldError]:
    """What is ignored, deprecated or misspelt in a job."""
    hub = translated(version, decode.warnings(convert(job, types.VERSION, units)))
    if version == types.VERSION:
        yield from hub
        return
    schema = schema_of(version)
    own = _OF_VERSION[version](without_empty_choices(job))
    for place, message in own if _is_written_in(job, version) else ():
        yield FieldError(written(place, schema), message)
    for unknown in validate(job, schema).unknown_fields:
        yield FieldError(unknown.path, decode.typo_hint(unknown))
    # In v1alpha1 it is the policy itself, there is none next to the template.
    yield from (each for each in hub if each.path.keys != _TEMPLATE_POLICY)


def _is_written_in(job: Manifest, version: str) -> bool:
    """Whether a job behaves as its version did."""
    return get(job, ("metadata", "annotations", annotations.WRITTEN_IN)) in (None, version)


def _v1(job: Manifest) -> Iterable[_Warning]:
    old, new = (*_SPEC, "cleanPodPolicy"), (*_RUN_POLICY, "cleanPodPolicy")
    if get(job, old) is not None and get(job, new) is None:
        yield old, f"deprecated; use {'.'.join(new)}"
    policy = get(job, (*_LAUNCHER, "restartPolicy"))
    if policy == "Always":
        yield (*_LAUNCHER, "restartPolicy"), "Always means OnFailure for a launcher"
    backoff_limit = (*_RUN_POLICY, "backoffLimit")
    if get(job, backoff_limit) and policy in (None, "Never"):
        yield backoff_limit, "ignored, because the launcher's restartPolicy is Never"
    yield from chain(_ignored(job, {old: new}), _idle_args(job))


def _v1alpha2(job: Manifest) -> Iterable[_Warning]:
    launcher, worker = (*_LAUNCHER, "restartPolicy"), (*_WORKER, "restartPolicy")
    if (policy := get(job, launcher)) in ("Always", "ExitCode"):
        yield launcher, f"{policy} means OnFailure"
    if get(job, worker) not in (None, "OnFailure"):
        yield worker, "ignored; workers are restarted after a failure"
    winners = {
        (*_SPEC, "backoffLimit"): (*_RUN_POLICY, "backoffLimit"),
        (*_SPEC, "activeDeadlineSeconds"): (*_RUN_POLICY, "activeDeadlineSeconds"),
        (*_RUN_POLICY, "cleanPodPolicy"): (*_SPEC, "cleanPodPolicy"),
        (*_SPEC, "mpiImplementation"): (*_SPEC, "mpiDistribution"),
    }
    yield from chain(_ignored(job, winners), _idle_args(job))


def _v1alpha1(job: Manifest) -> Iterable[_Warning]:
    replicas, units, gpus = ((*_SPEC, name) for name in ("replicas", "processingUnits", "gpus"))
    of_units, of_gpus = (*_SPEC, "processingUnitsPerNode"), (*_SPEC, "gpusPerNode")
    yield from _ignored(job, {of_units: replicas, of_gpus: replicas})
    yield from _ignored(job, {of_units: gpus, of_gpus: units})
    for name in ("backoffLimit", "activeDeadlineSeconds"):
        yield from _ignored(job, {(*_RUN_POLICY, name): (*_SPEC, name)})


_OF_VERSION: Mapping[str, Callable[[Manifest], Iterable[_Warning]]] = {
    "v1": _v1,
    "v1alpha2": _v1alpha2,
    "v1alpha1": _v1alpha1,
}


def _ignored(job: Manifest, winners: Mapping[Place, Place]) -> Iterator[_Warning]:
    """Each field that is ignored because another one is given."""
    for place, winner in winners.items():
        if get(job, place) is not None and get(job, winner) is not None:
            yield place, f"ignored, because {'.'.join(winner)} is given"


def _idle_args(job: Manifest) -> Iterator[_Warning]:
    container = worker_container(job)
    if get(job, (*container, "args")) and not get(job, (*container, "command")):
        yield (*container, "args"), "ignored, because the worker has no command"
