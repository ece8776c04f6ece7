"""Equal parts of cached objects kept once.

A thousand workers have the same labels, the same owner and the same five conditions. Keeping each
of these once takes a cached pod from 3 KB to 1 KB, for some microseconds when it is decoded.
"""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_LONGEST = 64  # longer texts hardly repeat


class Sharing:
    """Remembers parts it has seen, up to a limit, and puts them in place of equal ones."""

    def __init__(self, limit: int = 8192) -> None:
        self._limit = limit
        self._known: dict[Any, Any] = {}

    def share(self, decoded: T) -> T:
        """The same object, its repeated parts replaced. Only for one that nobody else holds yet."""
        if len(self._known) > self._limit:
            # Names and UIDs never repeat and fill this up. What does repeat is soon back, at the
            # price of one more copy: cheaper than keeping track of what was used when.
            self._known.clear()
        self._share_fields(decoded)
        return decoded

    def _share_fields(self, struct: msgspec.Struct) -> None:
        for name in struct.__struct_fields__:
            value = getattr(struct, name)
            if value:
                shared = self._shared(value)
                if shared is not value:
                    msgspec.structs.force_setattr(struct, name, shared)

    def _shared(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self._known.setdefault(value, value) if len(value) <= _LONGEST else value
        if kind is tuple:
            # The whole first: most often it is known, and its parts need no look.
            known = self._known_equal(value)
            if known is not None:
                return known
            return self._once(tuple([self._shared(part) for part in value]))
        if kind is dict:
            return {self._once(key): self._shared(item) for key, item in value.items()}
        if isinstance(value, msgspec.Struct):
            self._share_fields(value)
        return value

    def _known_equal(self, value: Any) -> Any:
        try:
            return self._known.get(value)
        except TypeError:  # there is a dict or a list in it, so it has no hash
            return None

    def _once(self, value: Any) -> Any:
        try:
            return self._known.setdefault(value, value)
        except TypeError:
            return value
