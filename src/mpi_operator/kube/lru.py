"""A cache of bounded size."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Values by key; drops the least recently used one when there are too many."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get_or_create(self, key: K, create: Callable[[], V]) -> V:
        """The value of a key, created if it is new or was dropped."""
        if key in self._values:
            self._values.move_to_end(key)
        else:
            self._values[key] = create()
        if len(self._values) > self._size:
            self._values.popitem(last=False)
        return self._values[key]
