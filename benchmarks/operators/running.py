"""An operator that runs: started alone, asked whether it leads, measured, and stopped."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from benchmarks.operators import usage
from benchmarks.operators.contenders import GO_HEALTH_PORT, GO_PROGRAM, LEASE, Contender
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
    """The operator ended, or does not lead; the message has its last words."""


class Running:
    """An operator that was started."""

    def __init__(self, contender: Contender, its: Process, port: int, started: float) -> None:
        self.contender = contender
        self.started = started
        """When it was started, by the monotonic clock."""
        self._process = its
        self._port = port

    @property
    def pid(self) -> int:
        return self._process.pid

    def usage(self) -> Usage:
        """What it has used so far."""
        return usage.of(self.pid)

    async def leads(self) -> None:
        """Wait until it leads."""
        with suppress(TimeoutError):
            await until(self._leads_or_ended, _START_SECONDS)
            if self._process.is_alive:
                return
        raise DidNotStart(
            f"{self.contender.title} does not lead {_START_SECONDS:.0f} s after its start. Its last"
            f" words:\n{readiness.last_lines(self._process.log)}"
        )

    def stop(self) -> None:
        """Ask it to end, as Kubernetes does."""
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
    contender: Contender, control_plane: ControlPlane, client: HttpClient
) -> AsyncIterator[Running]:
    """A contender that leads, and is gone afterwards, with its lease."""
    await _forget_lease(contender, client)
    if contender.is_go:
        await _wait_for_port()
    operator = _start(contender, control_plane)
    try:
        await operator.leads()
        yield operator
    finally:
        await asyncio.to_thread(operator.stop)


def _start(contender: Contender, control_plane: ControlPlane) -> Running:
    program = binaries.provide([GO_PROGRAM])[GO_PROGRAM] if contender.is_go else Path()
    port = free_port()
    command = contender.command(program, control_plane.kubeconfig(contender.user), port)
    started = time.monotonic()
    its = process.start(
        contender.name,
        command,
        directory=control_plane.directory,
        env=_environment(control_plane.directory),
        log=control_plane.directory / "logs" / f"{contender.name}.log",
    )
    control_plane.run.record(its)  # so that it ends with us, whatever happens
    return Running(contender, its, port, started)


def _environment(home: Path) -> dict[str, str]:
    # Nothing else of ours: KUBECONFIG would lead the Go operator elsewhere, GOGC would change it.
    return {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}


async def _forget_lease(contender: Contender, client: HttpClient) -> None:
    # The Go operator does not release its own, and would wait for it to run out.
    with suppress(errors.NotFound):
        await client.delete(LEASES, LEASE, contender.lock_namespace)


async def _wait_for_port() -> None:
    try:
        await until(lambda: is_free(GO_HEALTH_PORT, ""), 30)
    except TimeoutError:
        raise DidNotStart(
            f"The Go operator answers probes on port {GO_HEALTH_PORT}, which cannot be changed, and"
            " somebody else has it. `ss -ltnp` tells who: end that, and start again."
        ) from None
