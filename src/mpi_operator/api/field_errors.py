"""Errors and warnings about single fields of a manifest, worded as the API server words them."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Path(NamedTuple):
    """A place in a manifest: as keys for programs, as text for people."""

    keys: tuple[Hashable, ...] = ()
    text: str = ""

    def field(self, name: str) -> "Path":
        return Path((*self.keys, name), f"{self.text}.{name}" if self.text else name)

    def entry(self, key: Hashable) -> "Path":
        """An item of a list or of a map."""
        return Path((*self.keys, key), f"{self.text}[{_shortened(str(key))}]")

    def is_related_to(self, other: "Path") -> bool:
        """Whether one contains the other."""
        return all(mine == theirs for mine, theirs in zip(self.keys, other.keys, strict=False))


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.path.text or 'the job'}: {self.message}"


class InvalidJob(ValueError):
    """A manifest is not a valid job; `errors` has every field error."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def required(detail: str = "") -> str:
    return f"Required value: {detail}" if detail else "Required value"


def invalid(value: object, detail: str) -> str:
    return f"Invalid value: {shown(value)}: {detail}"


def unsupported(value: object, supported: Iterable[str]) -> str:
    return (
        f"Unsupported value: {shown(value)}: supported values: {', '.join(map(shown, supported))}"
    )


def shown(value: object) -> str:
    """A value for a message: recognizable, and never long."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if abs(value) < 2**64 else "a huge number"
        case str():
            return f'"{_shortened(value)}"'
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return _shortened(repr(value))


def _shortened(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
