"""The door: a manifest goes in, and a job that is complete and can run comes out.

Past it every field is there and legal, so nobody else needs to look. Webhook, controller, command
line and local cluster use the same door and therefore agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from . import schema, validation
from .field_errors import FieldError, InvalidJob
from .schema_validation import Findings, Unknown, findings, without
from .types import MPIJob, ReplicaType, RunPolicy

_RUN_POLICY = frozenset(RunPolicy.__struct_encode_fields__)
_ROLES = frozenset(ReplicaType)


def decode_job(raw: Mapping[str, Any]) -> MPIJob:
    """The job that a manifest describes, or InvalidJob with every error about it."""
    reading = _read(raw)
    if errors := _all_errors(reading):
        raise InvalidJob(errors)
    return reading.job


def decode_leniently(raw: Mapping[str, Any]) -> MPIJob:
    """What can be understood of a manifest: for telling in its status that it is invalid."""
    return _read(raw).job


def warnings(raw: Mapping[str, Any]) -> list[FieldError]:
    """What is no error and will still surprise its author: typing errors, settings without effect.

    Never fails, whatever the manifest is like.
    """
    reading = _read(raw)
    typos = [FieldError(unknown.path, _about(unknown)) for unknown in reading.found.unknown]
    return [*_ignored_roles(reading), *typos, *validation.advice(reading.job)]


@dataclass(frozen=True)
class _Reading:
    sound: dict[str, Any]  # the manifest less what is not as the schema wants it
    job: MPIJob
    found: Findings


def _read(raw: object) -> _Reading:
    found = findings(raw, schema.job())
    unusable = [path.keys for path in found.unusable]
    sound = {} if () in unusable else without(raw, unusable)
    return _Reading(sound, msgspec.convert(sound, MPIJob), found)


def _all_errors(reading: _Reading) -> list[FieldError]:
    # A rule that fails because of what was unusable only repeats what was said about that.
    further = [
        error
        for error in validation.errors(reading.job)
        if not any(error.path.is_related_to(known.path) for known in reading.found.errors)
    ]
    return reading.found.errors + further


def _ignored_roles(reading: _Reading) -> list[FieldError]:
    roles = reading.sound.get("spec", {}).get("mpiReplicaSpecs", {})
    return [
        FieldError(validation.role_path(role), "is neither Launcher nor Worker and is ignored")
        for role in roles
        if role not in _ROLES
    ]


def _about(unknown: Unknown) -> str:
    *parents, name = unknown.path.keys
    if parents == ["spec"] and name in _RUN_POLICY:
        return "is ignored here; it belongs into spec.runPolicy"
    from difflib import get_close_matches  # noqa: PLC0415 — 4 ms that few jobs need

    similar = get_close_matches(str(name), unknown.known, n=1)
    hint = f"; did you mean {similar[0]}?" if similar else ""
    return f"is unknown and ignored{hint}"
