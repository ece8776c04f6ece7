"""JSON without what is nested deeper than any real object, for functions that recurse."""

from typing import Any

_DEEPEST = 200


def shallow(value: Any, deepest: int = _DEEPEST) -> Any:
    """The same JSON with null for every list and object below a depth."""
    if isinstance(value, dict):
        return {k: shallow(v, deepest - 1) for k, v in value.items()} if deepest else None
    if isinstance(value, list):
        return [shallow(each, deepest - 1) for each in value] if deepest else None
    return value
