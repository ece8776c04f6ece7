"""`mpijob convert`: jobs in another API version, with notes on what changes."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from mpi_operator.api.conversion import VERSIONS, UnitSettings
from mpi_operator.api.types import GROUP, KIND, VERSION, Manifest
from mpi_operator.cli.command_errors import FAILURE, INVALID_INPUT, SUCCESS, InvalidInput
from mpi_operator.cli.manifests import manifest_files, manifest_text
from mpi_operator.cli.manifests.clean_manifest import cleaned
from mpi_operator.cli.manifests.job_conversion import Options, convert_job
from mpi_operator.cli.manifests.manifest_files import STANDARD_INPUT, Document, source_name
from mpi_operator.cli.manifests.old_versions import Unconvertible
from mpi_operator.cli.plain_text import printable

from . import arguments

_LISTS = ("List", f"{KIND}List")
_COMMENT = re.compile(r"^#|\s#", re.MULTILINE)


class _Input(NamedTuple):
    """A file, and its path below the directory that was given."""

    path: Path
    name: Path


class _Converter:
    """Converts documents, and writes notes and errors to stderr."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.failures = 0
        self.has_losses = False
        self._has_lost_comments = False

    def file(self, path: Path) -> list[Document]:
        """The documents of a file, converted; without those that cannot be converted."""
        source = source_name(path)
        try:
            found = manifest_files.documents(manifest_files.read(path), source)
        except InvalidInput as error:
            self._fail(error.message)
            return []
        return [done for each in found if (done := self._document(each, source)) is not None]

    def _document(self, document: Document, source: str) -> Document | None:
        value = document.value
        if isinstance(value, dict) and value.get("kind") in _LISTS:
            return Document(self._list(value, source), "")
        if not _is_job(value):
            self._note(f"{source}: {_title(value)} is not an {KIND} and stays as it is")
            return document
        if _is_clean(value, self._options):
            self._note(f"{source}: {_name(value)}: is {self._options.to} already")
            return document
        self._mention_comments(document.text)
        job = self._job(value, source)
        return None if job is None else Document(job, "")

    def _list(self, value: Manifest, source: str) -> Manifest:
        items = value.get("items")
        jobs = [
            self._job(item, source) if _is_job(item) else item
            for item in (items if isinstance(items, list) else ())
        ]
        head = {"apiVersion": f"{GROUP}/{self._options.to}"} if value["kind"] != "List" else {}
        kept = [job for job in jobs if job is not None]
        return {**value, **head, "items": kept}

    def _job(self, job: Manifest, source: str) -> Manifest | None:
        try:
            done = convert_job(job, self._options)
        except Unconvertible as error:
            self._fail(f"cannot convert {_name(job)} in {source}: {error}")
            return None
        for note in done.notes:
            self._note(f"{source}: {_name(job)}: {note}")
        self.has_losses |= done.has_losses
        return done.manifest

    @property
    def exit_code(self) -> int:
        if self.failures:
            return INVALID_INPUT
        return FAILURE if self.has_losses else SUCCESS

    def _mention_comments(self, text: str) -> None:
        if not self._has_lost_comments and _COMMENT.search(text):
            self._note("Comments in converted jobs are lost")
            self._has_lost_comments = True

    def _note(self, message: str) -> None:
        click.echo(printable(message), err=True)

    def _fail(self, message: str) -> None:
        click.echo(f"mpijob: {printable(message)}", err=True)
        self.failures += 1


@click.command("convert")
@click.option(
    "--filename",
    "-f",
    "files",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file, a directory with everything below it, or - for standard input. Can be repeated.",
)
@click.option(
    "--to",
    type=click.Choice(VERSIONS),
    default=VERSION,
    show_default=True,
    help="The API version of the result.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="The format of the result.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write each converted file to DIR under its own name, instead of to stdout.",
)
@click.option(
    "--keep-behavior",
    is_flag=True,
    help="Add an annotation that keeps the behavior of the original API version.",
)
@arguments.unit_options
def convert_command(
    files: tuple[Path, ...],
    to: str,
    output: str,
    output_dir: Path | None,
    keep_behavior: bool,
    **units: Any,
) -> None:
    """Convert MPIJobs from one API version to another.

    Prints the manifests, and on stderr what is different about each job. Objects of other kinds
    stay as they are. The exit code is 1 if the version cannot express a part of a job, and 2 if a
    file cannot be read or a job cannot be converted; the others are printed all the same.

    \b
    Examples:
      mpijob convert -f old.yaml
      mpijob convert -f old.yaml --gpus-per-node 8 | kubectl apply -f -
      mpijob convert -f jobs/ --output-dir converted/
      kubectl get mpijobs.v1.kubeflow.org -o yaml | mpijob convert -f - --keep-behavior
    """
    converter = _Converter(Options(to, UnitSettings(**units), keep_behavior))
    inputs = [each for path in files for each in _inputs(path)]
    if output_dir is None:
        documents = [each for given in inputs for each in converter.file(given.path)]
        click.echo(manifest_text.joined(documents, output), nl=False)
    else:
        _write(converter, inputs, output_dir, output)
    sys.exit(converter.exit_code)


def _inputs(path: Path) -> Iterator[_Input]:
    if not path.is_dir():
        yield _Input(path, Path(path.name))
        return
    found = manifest_files.files_in(path)
    yield from (_Input(each, each.relative_to(path)) for each in found)


def _write(converter: _Converter, inputs: Sequence[_Input], directory: Path, output: str) -> None:
    """Write each file that could be converted as a whole to its place below a directory."""
    places = _places(inputs, directory, output)
    for given, place in zip(inputs, places, strict=True):
        failures = converter.failures
        documents = converter.file(given.path)
        if converter.failures == failures:
            _replace(place, manifest_text.joined(documents, output))


def _places(inputs: Sequence[_Input], directory: Path, output: str) -> list[Path]:
    """Where the result of each file goes; every file is written once, and none that is read."""
    read = {_identity(given.path) for given in inputs}
    places: dict[object, Path] = {}
    for given in inputs:
        if given.path == STANDARD_INPUT:
            raise InvalidInput("cannot write standard input to a directory: it has no name")
        place = directory / given.name.with_suffix(_suffix(given.name, output))
        identity = _identity(place)
        if identity in read:
            raise InvalidInput(f"cannot write {place}: it is also an input")
        if identity in places:
            raise InvalidInput(f"cannot write {place}: two inputs would be written there")
        places[identity] = place
    return [*places.values()]


def _identity(path: Path) -> object:
    """Equal for two paths of the same file, also if one of them is a link."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _suffix(name: Path, output: str) -> str:
    if output == "json":
        return ".json"
    return name.suffix if name.suffix in (".yaml", ".yml") else ".yaml"


def _replace(place: Path, text: str) -> None:
    """Write a file so that no reader ever sees half of it."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as stream:
            stream.write(text)
        Path(stream.name).chmod(0o644)
        Path(stream.name).replace(place)
    except OSError as error:
        raise InvalidInput(f"cannot write {place}: {error.strerror}") from error


def _is_job(value: Any) -> bool:
    group = str(value.get("apiVersion")).partition("/")[0] if isinstance(value, dict) else ""
    return group == GROUP and value.get("kind") == KIND


def _is_clean(job: Manifest, options: Options) -> bool:
    """Whether a job is already what it would be converted to."""
    is_target = job.get("apiVersion") == f"{GROUP}/{options.to}"
    return is_target and cleaned(job, keep_behavior=options.keep_behavior) == job


def _title(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else None
    return f"{kind} {_name(value)}" if kind else "a document without a kind"


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return str(known.get("name") or known.get("generateName") or "without a name")
