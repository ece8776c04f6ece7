"""Advisory file locks: held by an open file, so the kernel frees them however the holder dies."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def try_lock(path: Path) -> int | None:
    """The descriptor that holds the lock until it is closed, or None if another process has it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def wait_for_lock(path: Path) -> int:
    """The descriptor that holds the lock until it is closed, whenever it becomes free."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def held(path: Path, *, on_wait: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold the lock for a block; `on_wait` is called once if it is not free at once."""
    descriptor = try_lock(path)
    if descriptor is None:
        on_wait()
        descriptor = wait_for_lock(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
