"""The jobs of a YAML file and what they need, with the changes of the command line.

A file of any API version becomes v2beta1 here, by the conversion that the cluster uses. Errors and
warnings name the fields of the version that the file is written in.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi_operator.api.decode import decode_job, warnings
from mpi_operator.api.field_errors import FieldError, InvalidJob
from mpi_operator.api.types import API_VERSION, KIND, MPIJob
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.manifests import manifest_files
from mpi_operator.cli.manifests.manifest_files import Document
from mpi_operator.cli.manifests.yaml_lines import Lines
from mpi_operator.cli.plain_text import printable
from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, Manifest

from . import (
    config_objects,
    file_objects,
    references,
    volume_mounts,
    volume_options,
    without_effect,
)
from .config_objects import NAMESPACE
from .environment import with_environment
from .file_objects import FileObjects
from .gpu_option import with_gpus
from .set_option import is_short, with_settings
from .workload import Changes, LoadedJob, Workload

if TYPE_CHECKING:
    from mpi_operator.cli.manifests.old_versions import OldJob


_NO_CHANGES = Changes()


def load(path: Path, changes: Changes = _NO_CHANGES) -> Workload:
    """The jobs in a file, or on standard input if that is `-`, and all that they need."""
    source = manifest_files.source_name(path)
    found = parse(manifest_files.read(path), source)
    is_stdin = path == manifest_files.STANDARD_INPUT
    directory = Path.cwd() if is_stdin else path.absolute().parent
    jobs = [_loaded(written, source, changes, directory) for written in found.jobs]
    if len({each.job.metadata.name for each in jobs}) < len(jobs):
        raise InvalidInput(f"--set name needs a file with one {KIND}, {source} has {len(jobs)}")
    jobs = _with_volumes(jobs, volume_options.parsed(changes.volumes))
    given = [
        *config_objects.from_files(CONFIG_MAPS, "--configmap", changes.config_maps),
        *config_objects.from_files(SECRETS, "--secret-file", changes.secret_files),
    ]
    objects = config_objects.merged(found.created, given)
    references.check([each.job for each in jobs], objects, path)
    ineffective = without_effect.notice([each.job for each in jobs])
    notices = [*found.notices, *filter(None, [ineffective])]
    return Workload(jobs, objects, notices, found.namespaces)


def parse(text: str, source: str) -> FileObjects:
    """The objects in a text, at least one of which is a job."""
    documents = manifest_files.documents(text, source)
    found = file_objects.sort([document.value for document in documents], source)
    _check_keys(documents, source)
    return found


def _check_keys(documents: Iterable[Document], source: str) -> None:
    """Refuse keys that are written twice, because a parser drops the first value silently."""
    found = [each for document in documents for each in Lines(document).duplicates()]
    if found:
        lines = "\n".join(f"  line {each.line}: {printable(each.path)}" for each in found)
        raise InvalidInput(f"keys written twice in {source}:\n{lines}")


def _loaded(written: Manifest, source: str, changes: Changes, directory: Path) -> LoadedJob:
    """A job of any version in v2beta1, changed, decoded and checked."""
    settings = changes.settings
    written = with_settings(written, filterfalse(is_short, settings))
    old = _old_job(written, source, changes.units)
    manifest = with_settings(old.hub if old else written, filter(is_short, settings))
    own = with_gpus(with_environment(manifest, changes.variables), changes.gpus)
    manifest = _in_namespace(own)
    try:
        job = _decoded(manifest)
    except InvalidJob as invalid:
        errors = old.own(invalid.errors) if old else invalid.errors
        raise _invalid_job(source, errors) from invalid
    found = [*(old.warnings if old else warnings(manifest)), *_rank_warnings(job, settings)]
    namespace = (own.get("metadata") or {}).get("namespace") or ""
    return LoadedJob(manifest, job, found, directory, namespace)


def _decoded(manifest: Manifest) -> MPIJob:
    """The job; InvalidJob if it, or a pod of it, would be refused."""
    job = decode_job(manifest)
    if errors := [*volume_mounts.errors(job)]:
        raise InvalidJob(errors)
    return job


def _with_volumes(jobs: list[LoadedJob], directories: Mapping[str, Path]) -> list[LoadedJob]:
    if not directories:
        return jobs
    volume_options.check_used([each.manifest for each in jobs], directories)
    manifests = [volume_options.mapped(each.manifest, directories) for each in jobs]
    return [
        each._replace(manifest=manifest, job=decode_job(manifest))
        for each, manifest in zip(jobs, manifests, strict=True)
    ]


def _rank_warnings(job: MPIJob, settings: Sequence[str]) -> list[FieldError]:
    if not settings:
        return []
    from . import rank_count  # noqa: PLC0415 — only settings need it

    return rank_count.warnings(job, settings)


def _in_namespace(manifest: Manifest) -> Manifest:
    """A copy in the namespace of this machine."""
    metadata = manifest.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return manifest  # the decoder says what is wrong with it
    return {**manifest, "metadata": {**(metadata or {}), "namespace": NAMESPACE}}


def _old_job(written: Manifest, source: str, units: Mapping[str, Any]) -> "OldJob | None":
    """The job of an older version; None if it is one of v2beta1."""
    if written.get("apiVersion") == API_VERSION:
        return None
    from mpi_operator.cli.manifests import old_versions  # noqa: PLC0415 — few files need it, and it takes time

    try:
        return old_versions.read(written, units)
    except old_versions.Unconvertible as error:
        raise _invalid_job(source, [error]) from error
    except InvalidJob as invalid:
        raise _invalid_job(source, invalid.errors) from invalid


def _invalid_job(source: str, errors: Iterable[object]) -> InvalidInput:
    lines = "\n".join(f"  {error}" for error in errors)
    return InvalidInput(f"invalid {KIND} in {source}:\n{lines}")
