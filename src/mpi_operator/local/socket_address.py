"""The address of a UNIX socket in a directory whose path may be longer than an address can be.

An address has 107 bytes on Linux and 103 elsewhere, and people have long home directories. Where
the path does not fit, the directory gets a shorter one for as long as the address is needed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 100
_DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def address(directory: Path, name: str) -> Iterator[str]:
    """An address at which to listen or to connect, good within the block."""
    path = directory / name
    if len(os.fsencode(path)) <= _LONGEST:
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
    # A directory of our own, which nobody else can enter: a link in /tmp itself could be replaced.
    # Not TMPDIR, which may be long too.
    import tempfile  # noqa: PLC0415 — every start would pay for it

    with tempfile.TemporaryDirectory(prefix="mpi-", dir="/tmp") as place:
        link = Path(place) / "d"
        link.symlink_to(directory, target_is_directory=True)
        yield link
