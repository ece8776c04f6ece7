"""The address of a UNIX socket in a directory with a long path.

An address has at most 107 bytes on Linux and 103 elsewhere, less than many paths of home
directories. Where the path does not fit, a temporary shorter one leads to the same directory.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAX_BYTES = 100
_DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def address(directory: Path, name: str) -> Iterator[str]:
    """An address to listen at or to connect to, valid within the block."""
    path = directory / name
    if len(os.fsencode(path)) <= _MAX_BYTES:
        yield str(path)
    elif _DESCRIPTORS.is_dir():
        with _by_descriptor(directory) as shorter:
            yield str(shorter / name)
    else:
        with _by_link(directory) as shorter:
            yield str(shorter / name)


@contextmanager
def _by_descriptor(directory: Path) -> Iterator[Path]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _DESCRIPTORS / str(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _by_link(directory: Path) -> Iterator[Path]:
    # In a private directory: another user could replace a link in /tmp itself. Not in TMPDIR, which
    # may be long too.
    import tempfile  # noqa: PLC0415 — every start would pay for it

    with tempfile.TemporaryDirectory(prefix="mpi-", dir="/tmp") as private:
        link = Path(private) / "d"
        link.symlink_to(directory, target_is_directory=True)
        yield link
