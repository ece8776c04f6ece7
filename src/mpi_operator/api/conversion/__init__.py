"""Conversion between the API versions of an MPIJob, pure and total.

See docs/decisions/0006-api-versions.md for how it works and what goes where. Results share their
unchanged parts with the argument: treat both as read-only.
"""

from collections.abc import Hashable, Mapping

from mpi_operator.api import annotations as names
from mpi_operator.api.types import GROUP, Manifest
from mpi_operator.api.types import VERSION as HUB

from . import fields, lossless
from .job_annotations import OURS, text, with_annotations
from .old_version import OldVersion, UnitSettings, View
from .shallow import shallow
from .v1 import V1
from .v1alpha1 import V1ALPHA1
from .v1alpha2 import V1ALPHA2

__all__ = ["OURS", "VERSIONS", "UnitSettings", "UnknownVersion", "convert", "own_path"]

_OLD = {each.name: each for each in (V1, V1ALPHA2, V1ALPHA1)}
VERSIONS = (HUB, *_OLD)


class UnknownVersion(ValueError):
    """The apiVersion of a manifest is not one of ours."""


def convert(manifest: Mapping[str, object], to: str, units: UnitSettings | None = None) -> Manifest:
    """The same job in another version (`v1`, …), never changing the argument."""
    job, source, target = dict(manifest), _version(manifest), _known(to)
    if source == target:
        return job
    try:
        return _converted(job, source, target, units or UnitSettings())
    except RecursionError:  # no real job is nested that deeply
        job = with_annotations(shallow(job), {names.CONVERTED_FIELDS: None})
        return _converted(job, source, target, units or UnitSettings())


def own_path(version: str, keys: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Where a version has what the hub has in a place: the path for its messages."""
    old = _OLD.get(version)
    return keys if old is None else fields.own_place(old.places, keys)


def _version(manifest: Mapping[str, object]) -> str:
    match manifest.get("apiVersion"):
        case str(text) if text.startswith(f"{GROUP}/"):
            return _known(text)
        case None:
            raise UnknownVersion(f"Required value: {_CHOICE}")
        case other:
            raise UnknownVersion(f"{other!r:.80} is not an API version of MPIJobs; {_CHOICE}")


def _known(version: str) -> str:
    name = version.removeprefix(f"{GROUP}/")
    if name not in VERSIONS:
        raise UnknownVersion(f"{version!r:.80} is not an API version of MPIJobs; {_CHOICE}")
    return name


_CHOICE = f"use one of {', '.join(f'{GROUP}/{each}' for each in VERSIONS)}"


def _converted(job: Manifest, source: str, target: str, units: UnitSettings) -> Manifest:
    hub = job if source == HUB else _to_hub(job, _OLD[source], units)
    return hub if target == HUB else _from_hub(hub, _OLD[target], units)


def _to_hub(job: Manifest, version: OldVersion, units: UnitSettings) -> Manifest:
    author = text(job, names.WRITTEN_IN) or version.name
    view = View(author == version.name, units)
    kept = lossless.parsed(text(job, names.CONVERTED_FIELDS))
    hub = lossless.patched(version.up(job, view), kept.pop(HUB, ()), version.hub_groups)
    kept[version.name] = lossless.difference(version.down(hub, view), job, version.own_groups)
    return _labelled(hub, HUB, author, kept)


def _from_hub(hub: Manifest, version: OldVersion, units: UnitSettings) -> Manifest:
    author = text(hub, names.WRITTEN_IN) or HUB
    view = View(author == version.name, units)
    kept = lossless.parsed(text(hub, names.CONVERTED_FIELDS))
    job = lossless.patched(version.down(hub, view), kept.pop(version.name, ()), version.own_groups)
    kept[HUB] = lossless.difference(version.up(job, view), hub, version.hub_groups)
    return _labelled(job, version.name, author, kept)


def _labelled(
    job: Manifest, version: str, author: str, kept: Mapping[str, list[lossless.Entry]]
) -> Manifest:
    """The job with its version, and with the annotations of the conversion."""
    own = {
        names.WRITTEN_IN: None if author == version else author,
        names.CONVERTED_FIELDS: lossless.encoded(kept),
    }
    return with_annotations({**job, "apiVersion": f"{GROUP}/{version}"}, own)
