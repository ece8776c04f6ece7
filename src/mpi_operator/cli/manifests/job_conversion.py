"""One job in another API version: a clean manifest, and notes on what changes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mpi_operator.api.annotations import WRITTEN_IN
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.types import VERSION, Manifest

from .clean_manifest import cleaned, without_defaults
from .conversion_notes import Change, losses, notes
from .old_versions import as_json, to_hub


class Options(NamedTuple):
    """How jobs are converted."""

    to: str = VERSION
    units: UnitSettings = UnitSettings()
    keep_behavior: bool = False


class Converted(NamedTuple):
    """A converted job."""

    manifest: Manifest
    notes: tuple[str, ...]
    has_losses: bool
    """Whether the version cannot express all of the job."""


def convert_job(job: Mapping[str, Any], options: Options) -> Converted:
    """The job as its author would write it in another version."""
    before = as_json(job)
    hub = to_hub(before, options.units)
    if not options.keep_behavior:
        hub = _rewritten(hub, options.to)
    after = cleaned(convert(hub, options.to, options.units), keep_behavior=options.keep_behavior)
    after = _concise(after, before, options)
    change = Change(before, after, options.units)
    return Converted(after, tuple(notes(change)), any(losses(change)))


def _rewritten(hub: Manifest, version: str) -> Manifest:
    """The job as if it had been written in a version: it spells out what that does not imply.

    Absent means v2beta1.
    """
    metadata = hub.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), WRITTEN_IN: version}
    if version == VERSION:
        del annotations[WRITTEN_IN]
    return {**hub, "metadata": {**metadata, "annotations": annotations}}


def _concise(after: Manifest, before: Manifest, options: Options) -> Manifest:
    """Without v2beta1 defaults that the author did not write, unless old versions have others."""
    shorter = without_defaults(after, before)
    if options.to == VERSION or _hub_spec(shorter, options) == _hub_spec(after, options):
        return shorter
    return after


def _hub_spec(job: Manifest, options: Options) -> object:
    return convert(job, VERSION, options.units).get("spec")
