"""The UIDs of objects."""

import os


def new_uid() -> str:
    """A random UUID. The module `uuid` would load much more, and every start would pay for it."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40  # version 4
    digits[8] = digits[8] & 0x3F | 0x80  # the variant of RFC 9562
    text = digits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
