"""Writes what pods print, byte by byte as they printed it, with labels if they are wanted."""

import os
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

from mpi_operator.local.times import exact_timestamp

from . import progress
from .job_stream import Line
from .rank_tags import is_tagged, split_ranks, split_tag

_COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95", "92", "94")


class Prefix(StrEnum):
    """What is in front of each line."""

    AUTO = "auto"  # the pod on a terminal, nothing in a pipe or a file
    NONE = "none"
    POD = "pod"
    RANK = "rank"


class OutputLost(Exception):
    """The output of a job cannot be delivered; raised from the error of the stream."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class LineWriter:
    """Writes lines, and parts of lines, to standard output and standard error."""

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        prefix: Prefix = Prefix.AUTO,
        *,
        has_timestamps: bool = False,
        has_whole_names: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._out = out
        self._err = err
        self._has_whole_names = has_whole_names
        is_auto = prefix is Prefix.AUTO
        self._prefix = (Prefix.POD if out.isatty() else Prefix.NONE) if is_auto else prefix
        self._clock = clock if has_timestamps else None
        self._unfinished: tuple[str, str, bool] | None = None  # the line that the cursor is in
        self._returned: tuple[str, str, bool] | None = None
        self._rank = ""  # of the line that the cursor is in, or was in before

    def write(self, line: Line) -> None:
        """Write a piece of output; OutputLost if that is not possible."""
        if self._prefix is not Prefix.RANK:
            self._write(line)
            return
        *parts, last = split_ranks(line.printed)
        for part in parts:
            self._write(line._replace(printed=part, end=b""))
        self._write(line._replace(printed=last))

    def _write(self, line: Line) -> None:
        stream = self._err if line.is_stderr else self._out
        source = line.source
        is_half_of_line_end = self._returned == source and line.is_line_feed
        data = line.printed + line.end
        if self._is_labelled and not is_half_of_line_end:
            data = self._labelled(line, stream, source)
        self._unfinished = None if line.end else source
        self._returned = source if line.end == b"\r" else None
        deliver(data, stream)

    def finish_line(self) -> None:
        """Begin a new line before a message of ours, which goes to standard error."""
        if source := self._unfinished or self._returned:
            stream = self._err if source[2] else self._out
            if stream.isatty() or _is_same_file(stream, self._err):
                deliver(b"\n", stream)
        self._unfinished = self._returned = None

    @property
    def is_in_line(self) -> bool:
        """Whether the last line has no end yet."""
        return self._unfinished is not None or self._returned is not None

    @property
    def _is_labelled(self) -> bool:
        return self._prefix is not Prefix.NONE or self._clock is not None

    def _labelled(self, line: Line, stream: TextIO, source: tuple[str, str, bool]) -> bytes:
        rank, printed = self._split_rank(line, source)
        if self._unfinished == source and rank == self._rank:
            return printed + line.end  # the rest of a line that has its label
        self._rank = rank
        broken = b"\n" if self._unfinished else b""
        return broken + self._label(line, stream).encode() + printed + line.end

    def _split_rank(self, line: Line, source: tuple[str, str, bool]) -> tuple[str, bytes]:
        """The rank of a piece, and the piece without its tag."""
        if self._prefix is not Prefix.RANK:
            return "", line.printed
        continues = source in (self._unfinished, self._returned)
        if continues and not is_tagged(line.printed):
            return self._rank, line.printed
        return split_tag(line.printed)

    def _label(self, line: Line, stream: TextIO) -> str:
        time = f"{exact_timestamp(self._clock())} " if self._clock else ""
        if self._prefix is Prefix.NONE:
            return time
        pod = line.pod if self._has_whole_names else progress.short(line.pod, line.role)
        name = f"rank {self._rank}" if self._rank else pod
        text = f"{name}/{line.container}" if line.container else name
        if stream.isatty():
            colour = _COLOURS[zlib.crc32((self._rank or line.pod).encode()) % len(_COLOURS)]
            text = f"\x1b[{colour}m{text}\x1b[0m"
        return f"{time}{text} | "


def _is_same_file(stream: TextIO, other: TextIO) -> bool:
    try:
        return os.path.sameopenfile(stream.fileno(), other.fileno())
    except (OSError, ValueError):  # in memory, or closed
        return stream is other


def deliver(data: bytes, stream: TextIO) -> None:
    """Write bytes to a stream now; OutputLost if that is not possible."""
    try:
        stream.flush()
        buffer = getattr(stream, "buffer", None)
        if buffer is None:  # a stream of text only, such as io.StringIO
            stream.write(data.decode(errors="replace"))
        else:
            buffer.write(data)
            buffer.flush()
    except OSError as error:
        raise OutputLost(error) from error
