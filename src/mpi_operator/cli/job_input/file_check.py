"""What is wrong with the objects of a file, without running them: every problem, with its line."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mpi_operator.api.conversion import UnitSettings
from mpi_operator.api.decode import decode_leniently
from mpi_operator.api.field_errors import FieldError, Path
from mpi_operator.api.types import GROUP, KIND, Manifest
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.manifests import manifest_files
from mpi_operator.cli.manifests.manifest_files import Document
from mpi_operator.cli.manifests.old_versions import Unconvertible, as_json, to_hub
from mpi_operator.cli.manifests.yaml_lines import Lines
from mpi_operator.cli.plain_text import printable
from mpi_operator.webhook import field_paths, job_errors, job_warnings

from . import config_objects, file_objects, volume_mounts
from .file_objects import CREATED, Listed, title


class Problem(NamedTuple):
    """An error or a warning about one object of a file."""

    file: str
    line: int | None
    is_error: bool
    object: str
    """Such as `MPIJob pi`."""
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        kind = "error" if self.is_error else "warning"
        parts = (place, kind, self.object, self.field, self.message)
        return printable(": ".join(part for part in parts if part))


class FileCheck(NamedTuple):
    """The result for one file."""

    jobs: int
    problems: Sequence[Problem]


def check(text: str, source: str, units: UnitSettings) -> FileCheck:
    """Every problem of a file; InvalidInput if it cannot be parsed."""
    checker = _Checker(source, units)
    for document in manifest_files.documents(text, source):
        checker.document(document)
    if not checker.jobs:
        checker.problems.append(Problem(source, None, False, "", "", f"no {KIND} in this file"))
    ordered = sorted(checker.problems, key=lambda each: each.line or 0)
    return FileCheck(checker.jobs, ordered)


class _Checker:
    """Collects the problems of one file."""

    def __init__(self, source: str, units: UnitSettings) -> None:
        self.jobs = 0
        self.problems: list[Problem] = []
        self._source = source
        self._units = units
        self._identities: set[tuple[str, str]] = set()

    def document(self, document: Document) -> None:
        lines = Lines(document)
        for duplicate in lines.duplicates():
            message = "the key is written twice"
            self._add(duplicate.line, "", duplicate.path, message)
        for found in file_objects.objects(document.value):
            self._object(found, lines)

    def _object(self, found: Listed, lines: Lines) -> None:
        line, value = lines.of(found.keys), found.value
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            self._add(line, "", "", "not an object: each document needs a `kind`")
            return
        self._check_unique(value, line)
        if file_objects.lacks_items(value):
            self._add(line, title(value), "", file_objects.NO_ITEMS)
        elif kind == KIND:
            self.jobs += 1
            for is_error, problem in _job_problems(value, self._units):
                place = lines.of((*found.keys, *problem.path.keys))
                self._add(place, title(value), problem.path.text, problem.message, is_error)
        elif kind.lower() == KIND.lower():
            place = lines.of((*found.keys, "kind"))
            self._add(place, "", "kind", f"unknown kind {kind}; did you mean {KIND}?")
        elif kind in CREATED:
            self._created(value, line)
        else:
            self._add(line, title(value), "", f"not an {KIND}, not checked", is_error=False)

    def _created(self, value: Manifest, line: int | None) -> None:
        try:
            config_objects.checked(value, self._source)
        except InvalidInput as error:
            self._add(line, "", "", error.message)

    def _check_unique(self, value: Manifest, line: int | None) -> None:
        found = file_objects.identity(value)
        is_named = title(value) != printable(value["kind"])
        if is_named and found in self._identities:
            self._add(
                line, title(value), "metadata.name", "already used by another object in this file"
            )
        self._identities.add(found)

    def _add(
        self, line: int | None, name: str, field: str, message: str, is_error: bool = True
    ) -> None:
        self.problems.append(Problem(self._source, line, is_error, name, field, message))


def _job_problems(written: Manifest, units: UnitSettings) -> Iterator[tuple[bool, FieldError]]:
    """The errors and warnings of the webhook about a job of any version, and about its mounts."""
    try:
        job = as_json(written)
        hub = to_hub(job, units)
    except Unconvertible as error:
        yield True, FieldError(Path(), str(error))
        return
    version = str(job.get("apiVersion")).removeprefix(f"{GROUP}/")
    errors = job_errors.errors(job, version, units) or _mount_errors(hub, version)
    yield from ((True, each) for each in errors)
    yield from ((False, each) for each in job_warnings.warnings(job, version, units))


def _mount_errors(hub: Manifest, version: str) -> list[FieldError]:
    """The mounts of a valid job for which the API server would refuse its pods."""
    return field_paths.translated(version, volume_mounts.errors(decode_leniently(hub)))
