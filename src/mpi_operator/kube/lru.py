"""A memory of bounded size."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Values by key; when there are too many, the one that was not asked for longest goes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def recall(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made now if it is new or was forgotten."""
        if key in self._values:
            self._values.move_to_end(key)
        else:
            self._values[key] = make()
        if len(self._values) > self._size:
            self._values.popitem(last=False)
        return self._values[key]
