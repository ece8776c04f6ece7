"""What is wrong with a job, and where: sentences for the person who wrote it."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Path(NamedTuple):
    """Where something is in a manifest: as keys to get there, and as people write it."""

    keys: tuple[Hashable, ...] = ()
    text: str = ""

    def field(self, name: str) -> "Path":
        return Path((*self.keys, name), f"{self.text}.{name}" if self.text else name)

    def entry(self, key: Hashable) -> "Path":
        """An item of a list or of a map."""
        return Path((*self.keys, key), f"{self.text}[{_shortened(str(key))}]")

    def is_related_to(self, other: "Path") -> bool:
        """Whether one is inside the other."""
        return all(mine == theirs for mine, theirs in zip(self.keys, other.keys, strict=False))


@dataclass(frozen=True)
class FieldError:
    """One thing that is wrong."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.path.text or 'the job'}: {self.message}"


class InvalidJob(ValueError):
    """A manifest is not a job that can run; `errors` has every one."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def shown(value: object) -> str:
    """A value as it may stand in a sentence: recognisable, and never long."""
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
            return "an object"
        case list():
            return "a list"
        case _:
            return _shortened(repr(value))


def _shortened(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
