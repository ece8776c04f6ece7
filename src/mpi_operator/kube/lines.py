"""A stream of bytes as lines.

The line reader of aiohttp limits the length of a line, and an object in a watch may be a line of a
megabyte.
"""


class LineSplitter:
    """Takes chunks and returns the lines that each one completes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, without their line ends."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._parts, complete[0]))
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return complete

    @property
    def rest(self) -> bytes:
        """The bytes after the last line end."""
        return b"".join(self._parts)
