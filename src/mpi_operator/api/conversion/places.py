"""Reads and changes places in JSON without mutating it and without ever failing.

A place is a tuple of keys; the items of a list have their index as text. Changes copy only the
containers on the way and share the rest.
"""

from enum import Enum
from typing import Any, Final, TypeAlias

Place: TypeAlias = tuple[str, ...]


class Absent(Enum):
    """The type of ABSENT, which null is not."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


def value_at(value: Any, place: Place) -> Any:
    """The value at a place, or ABSENT."""
    for key in place:
        if isinstance(value, dict):
            value = value.get(key, ABSENT)
        elif isinstance(value, list) and _is_index(key, value):
            value = value[int(key)]
        else:
            return ABSENT
    return value


def get(value: Any, place: Place) -> Any:
    """The value at a place, or None if it is absent or null."""
    found = value_at(value, place)
    return None if found is ABSENT else found


def with_value(value: Any, place: Place, new: object) -> Any:
    """The JSON with another value at a place, in objects made for it where there are none.

    The same JSON if something else is in the way.
    """
    if not place:
        return new
    key, rest = place[0], place[1:]
    if value is None or value is ABSENT:
        value = {}
    if isinstance(value, dict):
        return _with_entry(value, key, with_value(value.get(key, ABSENT), rest, new))
    if isinstance(value, list) and _is_index(key, value):
        index = int(key)
        return [*value[:index], with_value(value[index], rest, new), *value[index + 1 :]]
    return value


def without(value: Any, place: Place) -> Any:
    """The JSON without the entry of an object."""
    *parents, key = place
    inside = value_at(value, tuple(parents))
    if not isinstance(inside, dict) or key not in inside:
        return value
    kept = {name: each for name, each in inside.items() if name != key}
    return with_value(value, tuple(parents), kept)


def without_all(value: Any, *places: Place) -> Any:
    """The JSON without several entries."""
    for place in places:
        value = without(value, place)
    return value


def _is_index(key: str, value: list[Any]) -> bool:
    """Whether a list has an item with this index, in its only spelling."""
    return len(key) < 10 and key.isdecimal() and str(int(key)) == key and int(key) < len(value)


def _with_entry(value: dict[str, Any], key: str, new: object) -> dict[str, Any]:
    return value if value.get(key, ABSENT) is new else {**value, key: new}
