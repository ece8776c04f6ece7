"""What a container printed: a file per start of it, written by its processes themselves.

Nothing stands between a program and its log, so a busy node never holds a rank up. The price is
that nobody notes the time of each line; a `Clock` looks at the size of the file now and then, which
is close enough for "the last ten minutes".
"""

import asyncio
import bisect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from mpi_operator.kube.client import LogOptions

_CHUNK = 1 << 16
_LOOK_SECONDS = 0.05
_TAIL_BYTES = 1 << 16
# What of a log goes into a status, as in Kubernetes.
_MESSAGE_LINES = 80
_MESSAGE_BYTES = 2048


class Clock(msgspec.Struct):
    """When a file had which size."""

    path: Path
    times: list[float] = msgspec.field(default_factory=list)
    sizes: list[int] = msgspec.field(default_factory=list)

    def look(self, now: float) -> None:
        """Note the size if it has grown."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return
        if size > (self.sizes[-1] if self.sizes else 0):
            self.times.append(now)
            self.sizes.append(size)

    def start_of(self, moment: float) -> int:
        """Where in the file those bytes begin that came after a moment."""
        index = bisect.bisect_left(self.times, moment)
        return self.sizes[index - 1] if index else 0

    def time_of(self, offset: int) -> float | None:
        """When a byte was written, or a little later; None if it was never looked at."""
        index = bisect.bisect_right(self.sizes, offset)
        return self.times[index] if index < len(self.times) else None


class ContainerLogs:
    """The logs of one container, one per start; the last two are kept."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clocks: list[Clock] = []
        self._over = asyncio.Event()
        directory.mkdir(parents=True, exist_ok=True)

    def open(self) -> int:
        """A descriptor for the output of the next start."""
        number = len(self._clocks)
        clock = Clock(self._directory / f"{number}.log")
        self._clocks.append(clock)
        if number > 1:
            self._clocks[number - 2].path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(clock.path, flags, 0o644)

    def begin(self) -> None:
        """A start that prints nothing."""
        os.close(self.open())

    def look(self) -> None:
        """Note how much there is by now."""
        if self._clocks:
            self._clocks[-1].look(datetime.now(UTC).timestamp())

    def end(self) -> None:
        """Nothing more will be printed: whoever follows may go."""
        self.look()
        self._over.set()

    def message(self) -> str:
        """The last lines, for the status of a container that failed."""
        return _last_lines(self._clocks[-1].path) if self._clocks else ""

    async def lines(self, options: LogOptions = LogOptions()) -> AsyncGenerator[bytes, None]:
        """Lines without their ends. With `follow`, to the container's last one."""
        follow, previous = options.follow, options.previous
        index = len(self._clocks) - (2 if previous else 1)
        while index < 0 and follow and not previous and not self._over.is_set():
            await _next_look(self._over)
            index = len(self._clocks) - 1
        if index < 0:
            return
        clock = self._clocks[index]
        start = _start(clock, options.tail_lines, options.since_seconds)
        is_over: Callable[[], bool] = lambda: (  # noqa: E731
            not follow or self._over.is_set() or index < len(self._clocks) - 1
        )
        chunks = _chunks(clock.path, start, is_over, self._over)
        async with aclosing(_lines(chunks)) as lines:
            offset = start
            async for line, length in lines:
                yield _stamped(line, clock, offset) if options.timestamps else line
                offset += length


def _start(clock: Clock, tail_lines: int | None, since_seconds: int | None) -> int:
    start = 0
    if since_seconds is not None:
        start = clock.start_of((datetime.now(UTC) - timedelta(seconds=since_seconds)).timestamp())
    if tail_lines is not None:
        start = max(start, _tail_start(clock.path, tail_lines))
    return start


def _tail_start(path: Path, lines: int) -> int:
    """Where the last lines of a file begin; read from its end, for it may be large."""
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
    path: Path, start: int, is_over: Callable[[], bool], over: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    with path.open("rb") as file:
        file.seek(start)
        while True:
            # Asked before reading: what was written before the end must still be read.
            was_over = is_over()
            chunk = file.read(_CHUNK)
            if chunk:
                yield chunk
                await asyncio.sleep(0)
            elif was_over:
                return
            else:
                await _next_look(over)


async def _next_look(over: asyncio.Event) -> None:
    """Wait a little; at the end not at all, for a person waits for the last lines."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_SECONDS):
            await over.wait()


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[bytes, int], None]:
    """Lines, with their lengths in the file."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line, len(line) + 1
    if rest:
        yield rest, len(rest)


def _stamped(line: bytes, clock: Clock, offset: int) -> bytes:
    seconds = clock.time_of(offset)
    moment = datetime.fromtimestamp(seconds, UTC) if seconds else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode() + line


def _last_lines(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MESSAGE_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "".join(text.splitlines(keepends=True)[-_MESSAGE_LINES:])
