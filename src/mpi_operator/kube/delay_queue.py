"""Keys ordered by when they are due.

A binary heap that knows the position of each key, so that a key moves when it becomes due earlier.
`heapq` would leave the old entry behind, and keys that are added over and over would fill memory.
"""

import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DelayQueue(Generic[K]):
    """Each key once, at its earliest time. Keys with equal times keep their order."""

    def __init__(self) -> None:
        # (when, order of arrival, key): the second is unique, so keys are never compared.
        self._heap: list[tuple[float, int, K]] = []
        self._places: dict[K, int] = {}
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, key: K, when: float) -> None:
        """Add a key, or make it due earlier; a later time changes nothing."""
        place = self._places.setdefault(key, len(self._heap))
        entry = (when, next(self._arrivals), key)
        if place == len(self._heap):
            self._heap.append(entry)
        elif when < self._heap[place][0]:
            self._heap[place] = entry
        self._rise(place)

    def next_time(self) -> float | None:
        """When the first key is due."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Iterator[K]:
        """Remove and return the keys that are due, earliest first."""
        while self._heap and self._heap[0][0] <= now:
            yield self._pop()

    def clear(self) -> None:
        self._heap.clear()
        self._places.clear()

    def _pop(self) -> K:
        key = self._heap[0][2]
        last = self._heap.pop()
        del self._places[key]
        if self._heap:
            self._set(0, last)
            self._sink(0)
        return key

    def _rise(self, place: int) -> None:
        entry = self._heap[place]
        while place and entry < self._heap[parent := (place - 1) // 2]:
            self._set(place, self._heap[parent])
            place = parent
        self._set(place, entry)

    def _sink(self, place: int) -> None:
        entry = self._heap[place]
        while (child := self._first_child(place)) and self._heap[child] < entry:
            self._set(place, self._heap[child])
            place = child
        self._set(place, entry)

    def _first_child(self, place: int) -> int:
        """The child that is due first; 0, which is never a child, if there is none."""
        left, right = 2 * place + 1, 2 * place + 2
        if right < len(self._heap) and self._heap[right] < self._heap[left]:
            return right
        return left if left < len(self._heap) else 0

    def _set(self, place: int, entry: tuple[float, int, K]) -> None:
        self._heap[place] = entry
        self._places[entry[2]] = place
