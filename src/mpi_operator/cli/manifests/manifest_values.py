"""Values at paths in a manifest that may be invalid."""

from typing import Any

MISSING = object()


def at(value: Any, *path: str | int) -> Any:
    """The value at a path, or MISSING."""
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return MISSING
    return value


def get(value: Any, *path: str | int) -> Any:
    """The value at a path, or None."""
    found = at(value, *path)
    return None if found is MISSING else found
