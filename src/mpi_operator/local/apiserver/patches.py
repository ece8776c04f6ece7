"""Changing an object by saying what is to be different. Pure: nothing that is given is changed.

A dict is a merge patch (RFC 7386): what it names is set, null unsets. A list is a JSON patch
(RFC 6902): steps, each done on the outcome of the one before, and none of them if one fails.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class PatchError(ValueError):
    """A step that cannot be done on the object as it is."""


def merged(target: Any, patch: Any) -> Any:
    """What becomes of a value under a merge patch."""
    if not isinstance(patch, Mapping):
        return patch
    base = target if isinstance(target, Mapping) else {}
    kept = {name: value for name, value in base.items() if name not in patch}
    changed = {
        name: merged(base.get(name), value) for name, value in patch.items() if value is not None
    }
    return kept | changed


def patched(document: Any, steps: Sequence[Mapping[str, Any]]) -> Any:
    """What becomes of a document under a JSON patch."""
    for step in steps:
        document = _done(document, step)
    return document


def _done(document: Any, step: Mapping[str, Any]) -> Any:
    operation = _OPERATIONS.get(step.get("op", ""))
    if operation is None:
        raise PatchError(f"Unexpected kind: {step.get('op', 'unknown')}")
    return operation(document, step)


def _add(document: Any, step: Mapping[str, Any]) -> Any:
    return _with(document, _keys(step, "path"), _value(step))


def _remove(document: Any, step: Mapping[str, Any]) -> Any:
    return _without(document, _keys(step, "path"))


def _replace(document: Any, step: Mapping[str, Any]) -> Any:
    return _exchanged(document, _keys(step, "path"), _value(step))


def _move(document: Any, step: Mapping[str, Any]) -> Any:
    source, target = _keys(step, "from"), _keys(step, "path")
    if target[: len(source)] == source and len(target) > len(source):
        raise PatchError(f"{step['from']} cannot be moved into itself")
    value = _found(document, source)
    return value if not target else _with(_without(document, source), target, value)


def _copy(document: Any, step: Mapping[str, Any]) -> Any:
    return _with(document, _keys(step, "path"), _found(document, _keys(step, "from")))


def _test(document: Any, step: Mapping[str, Any]) -> Any:
    keys = _keys(step, "path")
    if not _same(_found(document, keys), _value(step)):
        raise PatchError(f"testing value {step['path']} failed")
    return document


_OPERATIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _keys(step: Mapping[str, Any], field: str) -> list[str]:
    """A JSON pointer (RFC 6901) as the keys on the way."""
    pointer = step.get(field)
    if not isinstance(pointer, str):
        raise PatchError(f'a step "{step["op"]}" without "{field}"')
    if pointer and not pointer.startswith("/"):
        raise PatchError(f'"{pointer}" is no JSON pointer: it does not begin with "/"')
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def _value(step: Mapping[str, Any]) -> Any:
    if "value" not in step:
        raise PatchError(f'a step "{step["op"]}" without "value"')
    return step["value"]


def _found(document: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        document = _child(document, key)
    return document


def _child(parent: Any, key: str) -> Any:
    if isinstance(parent, list):
        return parent[_index(key, len(parent) - 1)]
    if isinstance(parent, dict) and key in parent:
        return parent[key]
    raise _missing(key)


def _with(document: Any, keys: Sequence[str], value: Any) -> Any:
    """A copy that has a value in this place; only the way to it is copied."""
    if not keys:
        return value
    first, *rest = keys
    if isinstance(document, list) and not rest:
        place = len(document) if first == "-" else _index(first, len(document))
        return [*document[:place], value, *document[place:]]
    if isinstance(document, dict) and not rest:
        return document | {first: value}
    return _swapped(document, first, _with(_child(document, first), rest, value))


def _without(document: Any, keys: Sequence[str]) -> Any:
    if not keys:
        return None
    first, *rest = keys
    child = _child(document, first)
    if rest:
        return _swapped(document, first, _without(child, rest))
    if isinstance(document, list):
        place = _index(first, len(document) - 1)
        return [*document[:place], *document[place + 1 :]]
    return {name: value for name, value in document.items() if name != first}


def _exchanged(document: Any, keys: Sequence[str], value: Any) -> Any:
    if not keys:
        return value
    first, *rest = keys
    return _swapped(document, first, _exchanged(_child(document, first), rest, value))


def _swapped(parent: Any, key: str, value: Any) -> Any:
    if isinstance(parent, list):
        place = _index(key, len(parent) - 1)
        return [*parent[:place], value, *parent[place + 1 :]]
    return parent | {key: value}


def _index(key: str, last: int) -> int:
    # "01" and "-1" are no indexes for RFC 6901, though int() would take them.
    is_index = key.isascii() and key.isdecimal() and (key == "0" or not key.startswith("0"))
    if not is_index or int(key) > last:
        raise _missing(key)
    return int(key)


def _missing(key: str) -> PatchError:
    return PatchError(f"there is no {key!r} where the path leads")


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
