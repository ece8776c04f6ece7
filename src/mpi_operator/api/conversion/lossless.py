"""Keeps what a mapping between two versions cannot reproduce, and gives it back.

`difference` compares what the mapping makes of a job with what the job really is. Its entries are
`[place, guard]`, the value is absent, or `[place, guard, value]`. The guard is a hash of what the
mapping made, so that an entry loses to a later edit in another version. Entries about places that
stand for the same facts (a *group*) are guarded by all of them, and entries inside an item of a
list by the item's name. ANY in the places of a group stands for one item of a list, the same in all
of them.

The entries of a job come from an annotation that its author can write: an entry that does not fit
is ignored, and only `spec` is ever changed. Never `status`: a job's author may not write that.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

from mpi_operator.api.types import Manifest

from .places import ABSENT, Place, value_at

ROOT = "spec"
ANY = "*"
# More than any real job has, and less than any decoder can take.
_DEEPEST = 300
# From 1e309 on, API servers cannot decode a number.
_LONG_NUMBER = re.compile(r"[0-9]{309}")

Entry: TypeAlias = list[Any]
_Group: TypeAlias = tuple[Place, ...]
Groups: TypeAlias = Sequence[_Group]
_Change: TypeAlias = tuple[Place, Any]

_encode = msgspec.json.Encoder(order="sorted").encode


def parsed(text: str) -> dict[str, list[Any]]:
    """The entries by version, from an annotation; none if it is malformed."""
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text)
        is_harmless = not _is_suspicious(text) or _is_harmless(found, _DEEPEST)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not is_harmless:
        return {}
    return {version: each for version, each in found.items() if isinstance(each, list)}


def _is_suspicious(text: str) -> bool:
    return text.count("[") + text.count("{") > _DEEPEST or bool(_LONG_NUMBER.search(text))


def _is_harmless(value: Any, deepest: int) -> bool:
    """Whether an API server can decode a job with this value: else all its lists would fail."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return deepest > 0 and all(_is_harmless(each, deepest - 1) for each in inner)
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def encoded(kept: Mapping[str, list[Any]]) -> str | None:
    """The text of the annotation; None if there is nothing to keep."""
    entries = {version: each for version, each in kept.items() if each}
    return _encode(entries).decode() if entries else None


def difference(mapped: Manifest, real: Manifest, groups: Groups) -> list[Entry]:
    """What has to change in the mapped job to get the real one."""
    guards = _Guards(mapped, groups)
    changes = _changes(mapped.get(ROOT, ABSENT), real.get(ROOT, ABSENT), (ROOT,))
    entries = [
        [_pointer(place), guards.of(place), *([] if new is ABSENT else [new])]
        for place, new in changes
    ]
    return sorted(entries, key=lambda entry: str(entry[0]))


def patched(mapped: Manifest, entries: Iterable[Any], groups: Groups) -> Manifest:
    """The mapped job with the entries whose guards still hold."""
    changes = dict(_valid(mapped, entries, groups))
    if not changes:
        return mapped
    tree: dict[str, Any] = {}
    for place, new in changes.items():
        _plant(tree, place, new)
    result: Manifest = _grafted(mapped, tree)
    return result


def _changes(mapped: Any, real: Any, place: Place) -> Iterator[_Change]:
    if mapped is real:
        return
    if isinstance(mapped, dict) and isinstance(real, dict):
        for key in mapped.keys() | real.keys():
            yield from _changes(mapped.get(key, ABSENT), real.get(key, ABSENT), (*place, key))
    elif isinstance(mapped, list) and isinstance(real, list) and len(mapped) == len(real):
        for index, (old, new) in enumerate(zip(mapped, real, strict=True)):
            yield from _changes(old, new, (*place, str(index)))
    elif type(mapped) is not type(real) or mapped != real:  # True is no 1 here
        yield place, real


def _valid(mapped: Manifest, entries: Iterable[Any], groups: Groups) -> list[_Change]:
    """The changes whose guards hold. A group whose facts have changed in one place is dropped."""
    guards = _Guards(mapped, groups)
    changes: list[_Change] = []
    outdated: set[_Group] = set()
    for place, guard, new in filter(None, map(_read, entries)):
        if guards.of(place) != guard:
            outdated.add(_group(place, groups))
        elif _can_change(mapped, place, new):
            changes.append((place, new))
    outdated.discard(())
    return [each for each in changes if _group(each[0], groups) not in outdated]


def _read(entry: Any) -> tuple[Place, str | None, Any] | None:
    """The place, the guard and the value of an entry; None if it is none."""
    match entry:
        case [str(pointer), str() | None as guard]:
            return _place(pointer), guard, ABSENT
        case [str(pointer), str() | None as guard, new]:
            return _place(pointer), guard, new
        case _:
            return None


def _can_change(mapped: Manifest, place: Place, new: Any) -> bool:
    """Whether the place is in the spec, and its parent is there and can have such an entry."""
    if place[:1] != (ROOT,):
        return False
    parent = value_at(mapped, place[:-1])
    if isinstance(parent, list):
        return new is not ABSENT and value_at(parent, place[-1:]) is not ABSENT
    return isinstance(parent, dict)


class _Guards:
    """The guards of places in one job. Each value is hashed once.

    A hostile annotation may ask about ten thousand places of a large group.
    """

    def __init__(self, mapped: Manifest, groups: Groups) -> None:
        self._mapped = mapped
        self._groups = groups
        self._hashes: dict[Place, str] = {}

    def of(self, place: Place) -> str | None:
        """A hash of what is at a place, in its group and around it; None if nothing is."""
        facts = [self._hash(fact) for fact in (place, *_group(place, self._groups))]
        items = _items_around(self._mapped, place)
        return _hash([facts, items]) if any(facts) or items else None

    def _hash(self, place: Place) -> str:
        """A hash of the value at a place; empty if there is none."""
        if place not in self._hashes:
            value = value_at(self._mapped, place)
            self._hashes[place] = "" if value is ABSENT else _hash(value)
        return self._hashes[place]


def _hash(value: Any) -> str:
    return blake2b(_encode(value), digest_size=4).hexdigest()


def _items_around(mapped: Manifest, place: Place) -> list[str]:
    """The names of the items that contain a place, because containers may change positions."""
    names: list[str] = []
    value: Any = mapped
    for key in place[:-1]:
        is_item = isinstance(value, list)
        value = value_at(value, (key,))
        if is_item and isinstance(value, dict) and isinstance(value.get("name"), str):
            names.append(value["name"])
    return names


def _group(place: Place, groups: Groups) -> _Group:
    """The group that a place belongs to; empty if there is none."""
    for group in groups:
        for fact in group:
            if all(wanted in (key, ANY) for key, wanted in zip(place, fact, strict=False)):
                return _bound(group, dict(zip(fact, place, strict=False)).get(ANY, ANY))
    return ()


def _bound(group: _Group, item: str) -> _Group:
    return tuple(tuple(item if key == ANY else key for key in fact) for fact in group)


def _plant(tree: dict[str, Any], place: Place, new: Any) -> None:
    """Add a change to a tree of them: a leaf is a tuple with the new value."""
    for key in place[:-1]:
        branch = tree.setdefault(key, {})
        if isinstance(branch, tuple):  # replaced as a whole already
            return
        tree = branch
    tree[place[-1]] = (new,)


def _grafted(value: Any, tree: dict[str, Any]) -> Any:
    """The value with all changes of a tree. Every container is copied once."""
    copy: Any = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    for key, branch in tree.items():
        where: Any = key if isinstance(value, dict) else int(key)
        new = branch[0] if isinstance(branch, tuple) else _grafted(copy[where], branch)
        if new is ABSENT:
            copy.pop(where, None)
        else:
            copy[where] = new
    return copy if isinstance(value, dict) else list(copy.values())


def _pointer(place: Place) -> str:
    """A place as a JSON pointer (RFC 6901)."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in place)


def _place(pointer: str) -> Place:
    keys = pointer.split("/")[1:]
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in keys)
