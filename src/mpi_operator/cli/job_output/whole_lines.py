"""Whole lines from pieces, for readers that cannot use half of one."""

from .job_stream import Line

_MAX_BYTES = 1 << 20  # of a line that does not end


class WholeLines:
    """Collects the pieces of each stream of each container."""

    def __init__(self) -> None:
        self._unfinished: dict[tuple[str, str, bool], Line] = {}
        self._ends: dict[tuple[str, str, bool], bytes] = {}

    def feed(self, piece: Line) -> Line | None:
        """The line that a piece completes."""
        source = piece.source
        before = self._unfinished.pop(source, None)
        line = piece._replace(printed=(before.printed if before else b"") + piece.printed)
        if not piece.end and len(line.printed) < _MAX_BYTES:
            self._unfinished[source] = line
            return None
        had_returned, self._ends[source] = self._ends.get(source) == b"\r", piece.end
        return None if had_returned and line.is_line_feed else line

    def rest(self) -> list[Line]:
        """The lines that never ended."""
        lines = list(self._unfinished.values())
        self._unfinished.clear()
        return lines
