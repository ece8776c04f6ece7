"""Manifests in files: YAML or JSON, in one document or several, in files and in directories."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from mpi_operator.cli.command_errors import InvalidInput

STANDARD_INPUT = Path("-")
SUFFIXES = (".yaml", ".yml", ".json")

_START = r"(?m)^---(?=\s|$)"
_MOST_VALUES = 1_000_000  # a large job has some thousands
_DEEPEST = 200  # a job has about twenty levels
_SURROGATE = re.compile("[\ud800-\udfff]").search
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Size(NamedTuple):
    """How much there is of a value: itself and all that it contains, and on how many levels."""

    values: int
    depth: int


class Document(NamedTuple):
    """One document of a file: what it means, and its text with the comments."""

    value: Any
    text: str
    lines_before: int = 0


def source_name(path: Path) -> str:
    """What messages call a file."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def read(path: Path) -> str:
    """The text of a file, or of standard input if that is `-`."""
    try:
        return sys.stdin.read() if path == STANDARD_INPUT else path.read_text()
    except OSError as error:
        raise InvalidInput(f"cannot read {source_name(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot read {source_name(path)}: not a text file") from error


def documents(text: str, source: str) -> list[Document]:
    """The documents of a text that are not empty."""
    try:
        found = _json(text) or [
            Document(_parsed(before, part), part, before) for before, part in _parts(text)
        ]
        for each in found:
            _check(each.value, source)
    except yaml.YAMLError as error:
        raise InvalidInput(_syntax_error(error, source)) from error
    except RecursionError as error:
        raise InvalidInput(f"cannot parse {source}: nested too deeply") from error
    except (ValueError, LookupError) as error:  # what PyYAML raises for `!!int x`, `!!bool x`
        raise InvalidInput(f"cannot parse {source}: a value does not fit its type") from error
    return [each for each in found if each.value is not None]


def _json(text: str) -> list[Document]:
    """The one document of a text that is JSON, which may be indented with tabs, unlike YAML."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        return [Document(msgspec.json.decode(text), text)]
    except msgspec.DecodeError:
        return []


def files_in(directory: Path) -> list[Path]:
    """The manifests in a directory and everything below it; InvalidInput if there is none."""
    named = sorted(path for path in directory.rglob("*") if path.suffix in SUFFIXES)
    found = [path for path in named if path.is_file()]
    if not found:
        raise InvalidInput(f"no manifests in {directory}: no file ends with {', '.join(SUFFIXES)}")
    return found


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The text of each document, and the number of lines before it."""
    if "---" not in text:  # compiling the expression would take longer than all the rest
        yield 0, text
        return
    starts = [0, *(match.start() for match in re.finditer(_START, text) if match.start())]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield text.count("\n", 0, start), text[start:end]


def _parsed(lines_before: int, text: str) -> Any:
    """Parse with the C parser if there is one; the Python parser has better error messages."""
    try:
        return yaml.load(text, _FAST)  # noqa: S506 — a safe loader
    except yaml.YAMLError:
        in_place = "\n" * lines_before + text  # so that the error has the line of the file
        return yaml.load(in_place, _like_kubernetes(yaml.SafeLoader))  # noqa: S506


def _check(value: Any, source: str) -> None:
    """Refuse what cannot be written again.

    A small text can be huge, or endless, once its aliases are followed.
    """
    sizes: dict[int, _Size | None] = {}

    def size(value: Any) -> _Size:
        if isinstance(value, str) and _SURROGATE(value):
            raise InvalidInput(f"cannot parse {source}: unpaired surrogate, such as \\ud800")
        if not isinstance(value, dict | list):
            return _Size(1, 0)
        known = sizes.get(id(value), _Size(0, 0))
        if known is None:
            raise InvalidInput(f"cannot parse {source}: an alias refers to its own parent")
        if not known.values:
            sizes[id(value)] = None
            inner = [*map(size, [*value, *value.values()] if isinstance(value, dict) else value)]
            known = sizes[id(value)] = _Size(
                1 + sum(each.values for each in inner),
                1 + max((each.depth for each in inner), default=0),
            )
        return known

    whole = size(value)
    if whole.depth > _DEEPEST:
        raise InvalidInput(f"cannot parse {source}: nested too deeply")
    if whole.values > _MOST_VALUES:
        raise InvalidInput(f"cannot parse {source}: aliases expand to over {_MOST_VALUES:,} values")


def _like_kubernetes(loader: Any) -> Any:
    """A loader that reads times as strings, because manifests have no other times."""
    resolvers = {
        first: [each for each in found if each[0] != _TIMESTAMP]
        for first, found in loader.yaml_implicit_resolvers.items()
    }
    found = type("_Loader", (loader,), {"yaml_implicit_resolvers": resolvers})
    found.add_constructor(_TIMESTAMP, loader.construct_yaml_str)  # type: ignore[attr-defined]
    return found


_FAST = _like_kubernetes(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _syntax_error(error: yaml.YAMLError, source: str) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    return f"cannot parse {place}: {getattr(error, 'problem', None) or 'not YAML'}"
