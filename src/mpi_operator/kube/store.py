"""A store of cached objects with indexes, which only its informer changes.

Versions only go forward: an older version of an object is not stored. So the watch, a relist and
the answers to our own writes can feed one store in any order.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from .objects import Object, is_newer
from .resources import Key

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

Index = Callable[[T], Iterable[str]]


class Store(Generic[T]):
    """The store as readers see it."""

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._indexes = dict(indexes or {})
        self._keys: dict[str, dict[str, set[Key]]] = {name: {} for name in self._indexes}

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._objects.values()))

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def where(self, index: str, value: str) -> list[T]:
        """The objects with this value in an index, in no particular order."""
        return [self._objects[key] for key in self._keys[index].get(value, ())]

    def count(self, index: str, value: str) -> int:
        """How many objects have this value in an index."""
        return len(self._keys[index].get(value, ()))


class WritableStore(Store[T]):
    """The store as the informer sees it."""

    def put(self, new: T) -> None:
        """Store an object, replacing the one with the same key."""
        key = new.metadata.key
        self.remove(key)
        self._objects[key] = new
        for name in self._indexes:
            for value in self._values(name, new):
                self._keys[name].setdefault(value, set()).add(key)

    def remove(self, key: Key) -> T | None:
        """Remove and return an object."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name in self._indexes:
                for value in self._values(name, old):
                    self._unindex(name, value, key)
        return old

    def has_newer(self, key: Key, version: str) -> bool:
        """Whether the stored object is newer than this version."""
        known = self._objects.get(key)
        return known is not None and is_newer(known.metadata.resource_version, version)

    def keys_up_to(self, version: str) -> set[Key]:
        """The objects that have not changed since that version of the collection."""
        return {
            key
            for key, known in self._objects.items()
            if not is_newer(known.metadata.resource_version, version)
        }

    def _values(self, name: str, known: T) -> set[str]:
        try:
            return set(self._indexes[name](known))
        except Exception:
            # One object with a failing index must not stop the others.
            log.exception("Index failed", extra={"index": name, "key": str(known.metadata.key)})
            return set()

    def _unindex(self, name: str, value: str, key: Key) -> None:
        keys = self._keys[name]
        keys[value].discard(key)
        if not keys[value]:
            del keys[value]
