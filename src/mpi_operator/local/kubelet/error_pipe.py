"""Standard error of a container, apart from its standard output but in the same log."""

import asyncio
import bisect
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_CHUNK = 1 << 16


class Chunk(NamedTuple):
    """Bytes of a log, and whether they were printed to standard error."""

    printed: bytes
    is_stderr: bool = False


class ErrorPipe:
    """Appends what a program prints to standard error to its log."""

    def __init__(self, log: Path) -> None:
        self.ranges: list[tuple[int, int]] = []
        # Opened again: a descriptor that is shared with the program would share its offset too.
        self._log = os.open(log, APPEND)
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reading, self._copy)

    def close(self) -> None:
        """Copy what is left. The program must have ended."""
        if self._log >= 0:
            self._copy()
        self._stop()

    def _copy(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._reading, _CHUNK):
                with suppress(OSError):  # the disk is full: what does not fit is lost
                    self._append(data)
            self._stop()

    def _append(self, data: bytes) -> None:
        while data:
            written = os.write(self._log, data)
            end = os.lseek(self._log, 0, os.SEEK_CUR)  # after an append, the end of what it wrote
            self._note(end - written, end)
            data = data[written:]

    def _note(self, start: int, end: int) -> None:
        """Note a range; one that continues the last extends it, so that their number is small."""
        if self.ranges and self.ranges[-1][1] == start:
            start, _ = self.ranges.pop()
        self.ranges.append((start, end))

    def _stop(self) -> None:
        if self._log >= 0:
            self._loop.remove_reader(self._reading)
            for descriptor in (self._reading, self._log):
                os.close(descriptor)
            self._log = -1


def chunks_of(chunk: bytes, start: int, errors: Sequence[tuple[int, int]]) -> Iterator[Chunk]:
    """A chunk of a log that begins at an offset, cut where standard error begins and ends."""
    at, end = start, start + len(chunk)
    first = bisect.bisect_right(errors, start, key=lambda each: each[1])
    for error_start, error_end in errors[first:]:
        if error_start >= end:
            break
        if error_start > at:
            yield Chunk(chunk[at - start : error_start - start])
        yield Chunk(chunk[max(at, error_start) - start : error_end - start], is_stderr=True)
        at = min(error_end, end)
    if at < end:
        yield Chunk(chunk[at - start :])
