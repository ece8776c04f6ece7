"""JSON that is nested too deeply for a decoder, cut to a depth that is not.

A user can nest an object with an open schema ten thousand levels deep. A decoder fails on it, and
with it on the whole list or watch: one object would stop all others.
"""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")

_DEEPEST = 200  # far above any real object, far below the limit of any decoder
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^"\[\]{}]+', re.DOTALL)


def decoded(decode: Callable[[bytes | msgspec.Raw], T], text: bytes | msgspec.Raw) -> T:
    """The decoded text, without what is nested too deeply if there is such."""
    try:
        return decode(text)
    except RecursionError:
        return decode(shallow(bytes(text)))


def shallow(text: bytes, deepest: int = _DEEPEST) -> bytes:
    """The same JSON with null for every list and object below a depth."""
    kept = bytearray()
    depth = 0
    for match in _TOKENS.finditer(text):  # one by one: a list of them takes fifty times the text
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
            if depth == deepest + 1:
                kept += b"null"
        if depth <= deepest:
            kept += token
        if token in (b"}", b"]"):
            depth -= 1
    return bytes(kept)
