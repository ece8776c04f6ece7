"""Standard input of the launcher, which `mpirun` passes on to rank 0.

A pipe or a file is handed to the launcher. A terminal is read here instead: the launcher is not
part of the shell's session, and would take input from whatever runs in the foreground.
"""

import asyncio
import os
import signal
from contextlib import suppress

from mpi_operator.api import labels
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.default_container import default_container

from .job_stream import role_of

_CHUNK = 4096


class LauncherStdin:
    """Gives a descriptor to the launcher until the block ends."""

    def __init__(self, descriptor: int = 0) -> None:
        self._terminal = descriptor if os.isatty(descriptor) else None
        self._writing: int | None = None
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

    def of(self, pod: Manifest, container: str) -> int | None:
        """The descriptor of a container; only the main one of the launcher has one."""
        is_launcher = role_of(pod) == labels.Role.LAUNCHER
        return self._given if is_launcher and container == default_container(pod) else None

    def _resume(self) -> None:
        if self._terminal is not None and self._writing is not None:
            self._loop.add_reader(self._terminal, self._forward)

    def _forward(self) -> None:
        if self._terminal is None or self._writing is None:
            return
        if os.tcgetpgrp(self._terminal) != os.getpgrp():
            self._loop.remove_reader(self._terminal)  # in the background, until `fg` continues it
            return
        try:
            data = os.read(self._terminal, _CHUNK)
            if data:
                os.write(self._writing, data)
                return
        except OSError:
            pass  # the terminal or the reader is gone
        self._stop()

    def _stop(self) -> None:
        if self._terminal is not None and self._writing is not None:
            with suppress(OSError):
                self._loop.remove_reader(self._terminal)
            os.close(self._writing)
            self._writing = None
