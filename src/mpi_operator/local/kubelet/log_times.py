"""When the lines of a log were written: the size that the file had at certain times.

Nothing sits between a program and its log, so lines have no times of their own. The sizes are kept
beside a log that has ended, for `mpijob logs --since` and `--timestamps`.
"""

import bisect
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mpi_operator.local.times import exact_timestamp

_SUFFIX = ".times"


class SizeHistory(msgspec.Struct):
    """When a file had which size."""

    path: Path
    times: list[float] = msgspec.field(default_factory=list)
    sizes: list[int] = msgspec.field(default_factory=list)

    def note(self, now: float) -> None:
        """Note the size if it has grown."""
        try:
            size = self.path.stat().st_size
        except OSError:
            return
        if size > (self.sizes[-1] if self.sizes else 0):
            self.times.append(now)
            self.sizes.append(size)

    def start_of(self, moment: float) -> int:
        """The offset of the first byte written after a moment."""
        index = bisect.bisect_left(self.times, moment)
        return self.sizes[index - 1] if index else 0

    def time_of(self, offset: int) -> float | None:
        """When a byte was written, or a little later; None if it was not noted yet."""
        index = bisect.bisect_right(self.sizes, offset)
        return self.times[index] if index < len(self.times) else None

    def stamped(self, line: bytes, offset: int) -> bytes:
        """A line with its time in front."""
        seconds = self.time_of(offset)
        moment = datetime.fromtimestamp(seconds, UTC) if seconds else datetime.now(UTC)
        return f"{exact_timestamp(moment)} ".encode() + line

    def save(self) -> None:
        """Write it beside the log."""
        _place(self.path).write_bytes(msgspec.json.encode([self.times, self.sizes]))

    def remove(self) -> None:
        """Remove it and the log."""
        self.times.clear()
        self.sizes.clear()
        for file in (self.path, _place(self.path)):
            file.unlink(missing_ok=True)

    def shifted(self, removed: int) -> "SizeHistory":
        """The same of a log whose first bytes were removed."""
        kept = [(at, size - removed) for at, size in zip(self.times, self.sizes, strict=True)]
        kept = [(at, size) for at, size in kept if size > 0]
        return SizeHistory(self.path, [at for at, _ in kept], [size for _, size in kept])


def saved(path: Path) -> SizeHistory:
    """The history of a log that has ended. If its run was killed, only the last time is known."""
    try:
        times, sizes = msgspec.json.decode(
            _place(path).read_bytes(), type=tuple[list[float], list[int]]
        )
    except (OSError, msgspec.MsgspecError):
        found = path.stat()
        times, sizes = [found.st_mtime], [found.st_size]
    return SizeHistory(path, times, sizes)


def _place(path: Path) -> Path:
    return path.with_suffix(_SUFFIX)
