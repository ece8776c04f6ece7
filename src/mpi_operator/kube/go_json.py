"""JSON as Go reads it: null is the same as a field that is absent.

Go writes null for times, lists and maps that are not set, in whatever field a server or another
controller leaves out. A typed decoder fails on it, and an object that fails is skipped.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .json_depth import decoded

T = TypeVar("T")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decoded_as_go(decode: Callable[[bytes | msgspec.Raw], T], text: bytes | msgspec.Raw) -> T:
    """The decoded text, without nulls if it does not fit its type as it is."""
    try:
        return decoded(decode, text)
    except msgspec.ValidationError:
        return decoded(decode, _encode(without_nulls(decoded(_decode, text))))


def without_nulls(value: Any) -> Any:
    """The same value without the fields and items that are null."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if each is not None}
        return {name: without_nulls(each) for name, each in kept.items()}
    if isinstance(value, list):
        return [without_nulls(each) for each in value if each is not None]
    return value
