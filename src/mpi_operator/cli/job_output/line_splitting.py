"""Output as pieces: lines, states of a progress bar, and the beginning of an unfinished line."""

import re
from collections.abc import Iterator

_PIECE = re.compile(rb"([^\r\n]*)(\r?\n|\r|$)")


def split_lines(chunk: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each piece of a chunk and what ends it: a line end, a carriage return, or nothing."""
    at = 0
    while at < len(chunk):
        match = _PIECE.match(chunk, at)
        assert match is not None, "the pattern matches everything"
        yield match[1], match[2]
        at = match.end()
