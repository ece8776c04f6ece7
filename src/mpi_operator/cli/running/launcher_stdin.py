"""Standard input of the launcher, which `mpirun` passes on to rank 0.

A pipe or a file is handed to the launcher. A terminal is read here instead: the launcher is not
part of the shell's session, and would take input from whatever runs in the foreground.
"""

import asyncio
import os
import signal
from contextlib import suppress

from mpi_operator.api import labels
from mpi_operator.cli.job_output.job_stream import role_of
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.default_container import default_container

_CHUNK = 4096


class LauncherStdin:
    """Gives a descriptor to the launcher until the block ends."""

    def __init__(self, descriptor: int = 0) -> None:
        self._terminal = descriptor if os.isatty(descriptor) else None
        self._writing: int | None = None
        self._unwritten = b""  # read, but the pipe is full
        if self._terminal is None:
            self._given = os.dup(descriptor)
        else:
            self._given, self._writing = os.pipe()
            os.set_blocking(self._writing, False)

    def __enter__(self) -> "LauncherStdin":
        if self._terminal is not None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_signal_handler(signal.SIGCONT, self._resume)
            self._resume()
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal is not None:
            self._loop.remove_signal_handler(signal.SIGCONT)
            self._stop()
        os.close(self._given)

    @property
    def descriptor(self) -> int:
        """What the launcher reads."""
        return self._given

    def of(self, pod: Manifest, container: str) -> int | None:
        """The descriptor of a container; only the main one of the launcher has one."""
        is_launcher = role_of(pod) == labels.Role.LAUNCHER
        return self._given if is_launcher and container == default_container(pod) else None

    def _resume(self) -> None:
        if self._terminal is not None and self._writing is not None and not self._unwritten:
            self._loop.add_reader(self._terminal, self._forward)

    def _forward(self) -> None:
        if self._terminal is None or self._writing is None:
            return
        if not _is_in_foreground(self._terminal):
            self._loop.remove_reader(self._terminal)  # in the background, until `fg` continues it
            return
        with suppress(OSError):  # the terminal is gone
            self._unwritten = os.read(self._terminal, _CHUNK)
        if self._unwritten:
            self._loop.remove_reader(self._terminal)
            self._deliver()
        else:
            self._stop()

    def _deliver(self) -> None:
        """Write what was read, now or when the launcher has read enough; then read on."""
        if self._writing is None:
            return
        try:
            self._unwritten = self._unwritten[os.write(self._writing, self._unwritten) :]
        except BlockingIOError:
            pass
        except OSError:  # the reader is gone
            self._stop()
            return
        if self._unwritten:
            self._loop.add_writer(self._writing, self._deliver)
        else:
            self._loop.remove_writer(self._writing)
            self._resume()

    def _stop(self) -> None:
        if self._terminal is not None and self._writing is not None:
            with suppress(OSError):
                self._loop.remove_reader(self._terminal)
            self._loop.remove_writer(self._writing)
            os.close(self._writing)
            self._writing = None


def _is_in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # it does not control our session (`setsid`), so nothing else competes for it
        return True
