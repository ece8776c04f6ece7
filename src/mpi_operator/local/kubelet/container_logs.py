"""The log of a container: one file per start, written by its processes themselves.

Nothing sits between a program and its log, so a busy node never delays a rank. The price is that
lines have no times; a `SizeHistory` notes the size of the file now and then, which is good enough
for "the last ten minutes".

Where standard error is wanted apart, it comes through a pipe instead. The node appends it to the
same file and notes which bytes those are, so the log stays one file in the order of its lines.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mpi_operator.kube.client import LogOptions
from mpi_operator.local.mpi_noise import MpiNoise, without_noise

from . import log_times
from .error_pipe import APPEND, Chunk, ErrorPipe, chunks_of
from .log_times import SizeHistory

_CHUNK = 1 << 16
_POLL_SECONDS = 0.05
_TAIL_BYTES = 1 << 16
# How much of a log goes into a status, as in Kubernetes.
_MESSAGE_LINES = 80
_MESSAGE_BYTES = 2048


class ContainerLogs:
    """The logs of one container, one per start; the last two are kept."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._starts: list[SizeHistory] = []
        self._errors: dict[int, ErrorPipe] = {}  # by the number of the start
        self._ended = asyncio.Event()
        directory.mkdir(parents=True, exist_ok=True)

    def open(self) -> int:
        """A descriptor for the output of the next start."""
        number = len(self._starts)
        history = SizeHistory(self._directory / f"{number}.log")
        self._save_times()
        self._starts.append(history)
        if number > 1:
            self._starts[number - 2].remove()
            self._errors.pop(number - 2, None)
        return os.open(history.path, APPEND | os.O_CREAT, 0o644)

    def open_stderr(self) -> int:
        """A descriptor for standard error of the start whose log was opened last."""
        pipe = self._errors[len(self._starts) - 1] = ErrorPipe(self._starts[-1].path)
        return pipe.writing

    def close_stderr(self) -> None:
        """Copy the last of standard error to the log."""
        for pipe in self._errors.values():
            pipe.close()

    def open_empty(self) -> None:
        """Begin the log of a start that prints nothing."""
        os.close(self.open())

    def note_size(self) -> None:
        """Note the size of the log, for the times of its lines."""
        if self._starts:
            self._starts[-1].note(datetime.now(UTC).timestamp())

    def end(self) -> None:
        """Nothing more will be printed: end all streams that follow the log."""
        self.note_size()
        self._save_times()
        self._ended.set()

    def _save_times(self) -> None:
        with suppress(OSError):  # a full disk must not end a pod
            if self._starts:
                self._starts[-1].save()

    def last_lines(self) -> str:
        """The last lines, for the status of a failed container."""
        return _last_lines(self._starts[-1].path) if self._starts else ""

    async def output(self) -> AsyncGenerator[Chunk, None]:
        """What the last start prints, as soon as it is printed, until the container ends."""
        index = len(self._starts) - 1
        if index < 0:
            return
        has_ended = lambda: self._ended.is_set() or index < len(self._starts) - 1  # noqa: E731
        offset = 0
        async with aclosing(_chunks(self._starts[index].path, 0, has_ended, self._ended)) as chunks:
            async for chunk in chunks:
                pipe = self._errors.get(index)
                for part in chunks_of(chunk, offset, pipe.ranges if pipe else ()):
                    yield part
                offset += len(chunk)

    async def lines(self, options: LogOptions = LogOptions()) -> AsyncGenerator[bytes, None]:
        """The lines without line ends; with `follow`, until the container ends."""
        follow, previous = options.follow, options.previous
        index = len(self._starts) - (2 if previous else 1)
        while index < 0 and follow and not previous and not self._ended.is_set():
            await _poll(self._ended)
            index = len(self._starts) - 1
        if index < 0:
            return
        has_ended: Callable[[], bool] = lambda: (  # noqa: E731
            not follow or self._ended.is_set() or index < len(self._starts) - 1
        )
        async with aclosing(_read(self._starts[index], options, has_ended, self._ended)) as lines:
            async for line in lines:
                yield line


async def recorded_lines(
    path: Path, options: LogOptions = LogOptions()
) -> AsyncGenerator[bytes, None]:
    """The lines of a log that has ended, from its file."""
    ended = asyncio.Event()
    ended.set()
    async with aclosing(_read(log_times.saved(path), options, lambda: True, ended)) as lines:
        async for line in lines:
            yield line


async def _read(
    history: SizeHistory,
    options: LogOptions,
    has_ended: Callable[[], bool],
    ended: asyncio.Event,
) -> AsyncGenerator[bytes, None]:
    offset = _start(history, options.tail_lines, options.since_seconds)
    chunks = _chunks(history.path, offset, has_ended, ended)
    noise = MpiNoise()
    async with aclosing(_lines(chunks)) as lines:
        async for line, length in lines:
            if left := noise.cleaned(line, b"\n" if length > len(line) else b""):
                yield history.stamped(left[0], offset) if options.timestamps else left[0]
            offset += length


def _start(history: SizeHistory, tail_lines: int | None, since_seconds: int | None) -> int:
    start = 0
    if since_seconds is not None:
        start = history.start_of((datetime.now(UTC) - timedelta(seconds=since_seconds)).timestamp())
    if tail_lines is not None:
        start = max(start, _tail_start(history.path, tail_lines))
    return start


def _tail_start(path: Path, lines: int) -> int:
    """Where the last lines of a file begin, not counting what readers do not see."""
    wanted = lines
    while True:
        start = _last_lines_start(path, wanted)
        hidden = _hidden_lines(path, start)
        if start == 0 or wanted == lines + hidden:
            return start
        wanted = lines + hidden


def _hidden_lines(path: Path, start: int) -> int:
    noise = MpiNoise()
    with path.open("rb") as file:
        file.seek(start)
        return sum(not noise.cleaned(line.rstrip(b"\n"), b"\n") for line in file)


def _last_lines_start(path: Path, lines: int) -> int:
    """Where the last lines of a file begin; read backwards, because it may be large."""
    with path.open("rb") as file:
        position = end = file.seek(0, os.SEEK_END)
        if lines == 0 or end == 0:
            return end
        file.seek(end - 1)
        wanted = lines + (1 if file.read(1) == b"\n" else 0)
        while position:
            size = min(_TAIL_BYTES, position)
            position -= size
            file.seek(position)
            chunk = file.read(size)
            breaks = chunk.count(b"\n")
            if breaks >= wanted:
                for _ in range(breaks - wanted + 1):
                    at = chunk.index(b"\n")
                    position += at + 1
                    chunk = chunk[at + 1 :]
                return position
            wanted -= breaks
        return 0


async def _chunks(
    path: Path, start: int, has_ended: Callable[[], bool], ended: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    with path.open("rb") as file:
        file.seek(start)
        while True:
            # Checked before reading: what was written before the end must still be read.
            had_ended = has_ended()
            chunk = file.read(_CHUNK)
            if chunk:
                yield chunk
                await asyncio.sleep(0)
            elif had_ended:
                return
            else:
                await _poll(ended)


async def _poll(ended: asyncio.Event) -> None:
    """Wait a little, or until the container has ended: a person waits for the last lines."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_POLL_SECONDS):
            await ended.wait()


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[bytes, int], None]:
    """The lines, with their lengths in the file."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line, len(line) + 1
    if rest:
        yield rest, len(rest)


def _last_lines(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MESSAGE_BYTES))
            text = without_noise(file.read()).decode(errors="replace")
    except OSError:
        return ""
    return "".join(text.splitlines(keepends=True)[-_MESSAGE_LINES:])
