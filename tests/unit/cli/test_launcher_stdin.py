"""A terminal as standard input of the launcher."""

import array
import fcntl
import os
import termios

import pytest

from mpi_operator.api import labels
from mpi_operator.cli.running.launcher_stdin import LauncherStdin
from tests.support.waiting import block_until, until

LAUNCHER = {
    "metadata": {"labels": {labels.JOB_ROLE: "launcher"}},
    "spec": {"containers": [{"name": "mpi"}]},
}


@pytest.fixture
def terminal():
    """Both ends of a terminal, which does not control the session of the tests."""
    ours, theirs = os.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def waiting_bytes(descriptor):
    size = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, size)
    return size[0]


def fill(pipe):
    """Fill a pipe, given its end for reading; how many bytes that took."""
    writing = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    size = 0
    try:
        while True:
            size += os.write(writing, bytes(4096))
    except BlockingIOError:
        return size
    finally:
        os.close(writing)


async def test_a_terminal_that_does_not_control_us_is_read(terminal):
    ours, theirs = terminal
    with LauncherStdin(theirs) as stdin:
        given = stdin.of(LAUNCHER, "mpi")
        assert given is not None
        os.write(ours, b"Ann\n")
        await until(lambda: waiting_bytes(given) == 4, 10)
        assert os.read(given, 9) == b"Ann\n"


async def test_what_the_launcher_does_not_read_yet_is_kept(terminal):
    ours, theirs = terminal
    with LauncherStdin(theirs) as stdin:
        given = stdin.of(LAUNCHER, "mpi")
        assert given is not None
        filled = fill(given)
        os.write(ours, b"Ann\n")
        block_until(lambda: waiting_bytes(theirs) == 4)
        await until(lambda: waiting_bytes(theirs) == 0, 10)  # read, but not delivered
        assert os.read(given, filled) == bytes(filled)
        await until(lambda: waiting_bytes(given) == 4, 10)
        os.write(ours, b"Bob\n")
        await until(lambda: waiting_bytes(given) == 8, 10)
        assert os.read(given, 9) == b"Ann\nBob\n"
