"""Decodes a manifest into an MPIJob: every default is filled in, every field is valid.

The controller, the command line and the local cluster all decode here, so they agree on which jobs
are valid, and no code after this checks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from . import schema, validation
from .field_errors import FieldError, InvalidJob
from .schema_validation import Report, UnknownField, pruned, validate
from .types import MPIJob, ReplicaType, RunPolicy

_RUN_POLICY = frozenset(RunPolicy.__struct_encode_fields__)
_ROLES = frozenset(ReplicaType)


def decode_job(raw: Mapping[str, Any]) -> MPIJob:
    """The job that a manifest describes; InvalidJob with every field error if it is not valid."""
    decoded = _decode(raw)
    if errors := _all_errors(decoded):
        raise InvalidJob(errors)
    return decoded.job


def decode_leniently(raw: Mapping[str, Any]) -> MPIJob:
    """The job without its invalid fields: the status of an invalid job needs one, too."""
    return _decode(raw).job


def warnings(raw: Mapping[str, Any]) -> list[FieldError]:
    """What is valid but probably not what the author meant: typos, settings without effect.

    Never raises, whatever the manifest contains.
    """
    decoded = _decode(raw)
    typos = [FieldError(each.path, _hint(each)) for each in decoded.report.unknown_fields]
    return [*_ignored_roles(decoded), *typos, *validation.warnings(decoded.job)]


@dataclass(frozen=True)
class _Decoded:
    manifest: dict[str, Any]  # without the fields that violate the schema
    job: MPIJob
    report: Report


def _decode(raw: object) -> _Decoded:
    report = validate(raw, schema.job())
    paths = [path.keys for path in report.to_prune]
    manifest = {} if () in paths else pruned(raw, paths)
    return _Decoded(manifest, msgspec.convert(manifest, MPIJob), report)


def _all_errors(decoded: _Decoded) -> list[FieldError]:
    # A rule about a pruned field would only repeat the schema's error about that field.
    known = decoded.report.errors
    further = [
        error
        for error in validation.errors(decoded.job)
        if not any(error.path.is_related_to(each.path) for each in known)
    ]
    return known + further


def _ignored_roles(decoded: _Decoded) -> list[FieldError]:
    roles = decoded.manifest.get("spec", {}).get("mpiReplicaSpecs", {})
    return [
        FieldError(validation.role_path(role), "ignored; the roles are Launcher and Worker")
        for role in roles
        if role not in _ROLES
    ]


def _hint(unknown: UnknownField) -> str:
    *parents, name = unknown.path.keys
    if parents == ["spec"] and name in _RUN_POLICY:
        return "ignored here; move it to spec.runPolicy"
    return typo_hint(unknown)


def typo_hint(unknown: UnknownField) -> str:
    """What to say about an unknown field, with the most similar known one."""
    name = unknown.path.keys[-1]
    from difflib import get_close_matches  # noqa: PLC0415 — 4 ms that few jobs need

    similar = get_close_matches(str(name), unknown.known, n=1)
    hint = f"; did you mean {similar[0]}?" if similar else ""
    return f"unknown field, ignored{hint}"
