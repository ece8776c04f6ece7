"""A running operator: started alone, measured, and stopped."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from benchmarks.operators import usage
from benchmarks.operators.subjects import GO_HEALTH_PORT, GO_PROGRAM, LEASE, Subject
from benchmarks.operators.usage import Usage
from devcluster import binaries, process, readiness
from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port, is_free
from devcluster.process import Process
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import LEASES
from tests.support.waiting import until

_LEADS = ("mpi_operator_is_leader 1\n", "mpi_operator_is_leader 1.0\n")
_START_SECONDS = 60.0


class DidNotStart(Exception):
    """The operator ended or does not lead; the message has its last log lines."""


class Running:
    """A running operator."""

    def __init__(self, subject: Subject, process: Process, port: int, started: float) -> None:
        self.subject = subject
        self.started = started
        """When it was started, by the monotonic clock."""
        self._process = process
        self._port = port

    @property
    def pid(self) -> int:
        return self._process.pid

    def usage(self) -> Usage:
        """The CPU and memory used so far."""
        return usage.of(self.pid)

    async def leads(self) -> None:
        """Wait until it leads."""
        with suppress(TimeoutError):
            await until(self._leads_or_ended, _START_SECONDS)
            if self._process.is_alive:
                return
        raise DidNotStart(
            f"{self.subject.title} does not lead {_START_SECONDS:.0f} s after its start. Its last"
            f" log lines:\n{readiness.last_lines(self._process.log)}"
        )

    def stop(self) -> None:
        """Stop it with SIGTERM, as Kubernetes does."""
        self._process.stop()

    async def _leads_or_ended(self) -> bool:
        if not self._process.is_alive:
            return True
        url = f"http://127.0.0.1:{self._port}/metrics"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                metrics = await answer.text()
        except aiohttp.ClientError:
            return False
        return any(line in metrics for line in _LEADS)


@asynccontextmanager
async def running(
    subject: Subject, control_plane: ControlPlane, client: HttpClient
) -> AsyncIterator[Running]:
    """An operator that leads, and is stopped afterwards."""
    await _delete_lease(subject, client)
    if subject.is_go:
        await _wait_for_port()
    operator = _start(subject, control_plane)
    try:
        await operator.leads()
        yield operator
    finally:
        await asyncio.to_thread(operator.stop)


def _start(subject: Subject, control_plane: ControlPlane) -> Running:
    program = binaries.provide([GO_PROGRAM])[GO_PROGRAM] if subject.is_go else Path()
    port = free_port()
    command = subject.command(program, control_plane.kubeconfig(subject.user), port)
    started = time.monotonic()
    its = process.start(
        subject.name,
        command,
        directory=control_plane.directory,
        env=_environment(control_plane.directory),
        log=control_plane.directory / "logs" / f"{subject.name}.log",
    )
    control_plane.run.record(its)  # so that it ends with this process
    return Running(subject, its, port, started)


def _environment(home: Path) -> dict[str, str]:
    # Nothing else: the Go operator would obey KUBECONFIG and GOGC.
    return {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}


async def _delete_lease(subject: Subject, client: HttpClient) -> None:
    # The Go operator does not release its lease, and would wait until it expires.
    with suppress(errors.NotFound):
        await client.delete(LEASES, LEASE, subject.lock_namespace)


async def _wait_for_port() -> None:
    try:
        await until(lambda: is_free(GO_HEALTH_PORT), 30)
    except TimeoutError:
        raise DidNotStart(
            f"Port {GO_HEALTH_PORT} is in use, and the Go operator needs it for probes. Find the"
            " process with `ss -ltnp`, stop it, and start again."
        ) from None
