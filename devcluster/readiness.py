"""Waiting until a component is ready, or has ended."""

import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from devcluster.endpoint import Endpoint
from devcluster.process import Process

_POLL_SECONDS = 0.05
_LAST_LINES = 15


class NotReady(Exception):
    """A component ended or did not become ready in time; the message has its last log lines."""


class Ended(NotReady):
    """A component ended before it was ready."""


class PortTaken(Ended):
    """Another program took a component's port before it started."""


def answers_ok(endpoint: Endpoint, path: str) -> Callable[[], bool]:
    """A check whether a server answers 200 at a path."""

    def ask() -> bool:
        try:
            return endpoint.request("GET", path, timeout=5).status == 200
        except (OSError, HTTPException):
            return False

    return ask


def answers_without_tls(port: int, path: str) -> Callable[[], bool]:
    """The same without TLS, for a server on this host only."""

    def ask() -> bool:
        with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status == 200
            except (OSError, HTTPException):
                return False

    return ask


def wait_until(
    is_ready: Callable[[], bool], process: Process, seconds: float, *, log_start: int = 0
) -> None:
    """Return once it is ready; raise as soon as the process has ended or the time is over.

    The log may hold the lines of earlier attempts: ours begin at `log_start`.
    """
    deadline = time.monotonic() + seconds
    while not is_ready():
        if not process.is_alive:
            raise _ended(process, log_start)
        if time.monotonic() > deadline:
            raise NotReady(
                f"{process.name} (pid {process.pid}) is not ready after {seconds:.0f}s."
                f" The end of its log:\n{last_lines(process.log, log_start)}"
            )
        time.sleep(_POLL_SECONDS)


def last_lines(log: Path, start: int = 0) -> str:
    """The end of a log file, indented for an error message."""
    lines = _read(log, start).splitlines()[-_LAST_LINES:]
    return "\n".join(f"    {line}" for line in lines) or "    (nothing)"


def _ended(process: Process, log_start: int) -> Ended:
    is_port_taken = "address already in use" in _read(process.log, log_start)
    return (PortTaken if is_port_taken else Ended)(
        f"{process.name} exited with code {process.exit_code} before it was ready."
        f" The end of its log:\n{last_lines(process.log, log_start)}"
    )


def _read(log: Path, start: int) -> str:
    return log.read_bytes()[start:].decode(errors="replace") if log.exists() else ""
