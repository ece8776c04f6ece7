"""JSON that is nested deeper than Python can follow, made shallow.

Anybody who may store an object of an open schema can nest it ten thousand deep. Decoders give up on
that, and with it on the whole list or watch that it came in: one object would stop all others.
"""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")

_DEEPEST = 200  # far more than any object that means something, far less than any decoder's limit
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^"\[\]{}]+', re.DOTALL)


def decoded(decode: Callable[[bytes | msgspec.Raw], T], text: bytes | msgspec.Raw) -> T:
    """What a decoder makes of a text, or at least of what of it is not too deep."""
    try:
        return decode(text)
    except RecursionError:
        return decode(shallow(bytes(text)))


def shallow(text: bytes, deepest: int = _DEEPEST) -> bytes:
    """The same JSON with null for every list and object that is too far down."""
    kept: list[bytes] = []
    depth = 0
    for token in _TOKENS.findall(text):
        if token in (b"{", b"["):
            depth += 1
            if depth == deepest + 1:
                kept.append(b"null")
        if depth <= deepest:
            kept.append(token)
        if token in (b"}", b"]"):
            depth -= 1
    return b"".join(kept)
