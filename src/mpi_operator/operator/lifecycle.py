"""The lifecycle of the operator: the order of its steps from the first request to the last write.

    preflight ──► compete for the lease while the caches sync ──► refresh ──► lead ──► stop
                                                                                        │
    writes end ──► caches end ──► the lease is released  ◄──────────────────────────────┘

It always ends with an exception: an `Exit`, or a bug. Whatever can end it early (a signal, a lost
lease, failing caches) is a background task that raises, and every step is a race against these.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

from mpi_operator.kube.leader_election.elector import Elector

from .exit_codes import Exit, ExitCode
from .health import STOPPING, Health

T = TypeVar("T")
Task: TypeAlias = "asyncio.Task[Any]"
Step: TypeAlias = Callable[[], Coroutine[Any, Any, object]]

logger = logging.getLogger(__name__)

# Less than the grace period of 30s that a pod has by default.
DRAIN_SECONDS = 10.0
_CANCEL_SECONDS = 5.0


class Controller(Protocol):
    """The methods of the controller that are called here."""

    async def follow(self) -> None: ...

    async def refresh(self) -> None: ...

    async def lead(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Parts:
    """The parts that the lifecycle puts in order."""

    controller: Controller
    elector: Elector
    health: Health
    preflight: Step
    stand_by: Step
    guard: Step  # ends when this process must stop working
    drain_seconds: float = DRAIN_SECONDS


async def run_lifecycle(parts: Parts, stop: asyncio.Event) -> NoReturn:
    """Run until `stop` is set, or something else ends the operator."""
    controller, elector = parts.controller, parts.elector
    async with background(_exit_on_stop(stop)) as stopped:
        await unless(parts.preflight(), stopped)
        async with (
            elector,
            background(_follow(controller)) as caches,
            background(_exit_on_lost_lease(elector)) as lost,
            background(parts.guard()) as guarded,
        ):
            ends = (stopped, lost, caches, guarded)
            async with background(parts.stand_by()) as standing_by:
                await unless(elector.acquired(), *ends, standing_by)
            await unless(controller.refresh(), *ends)
            await _lead(parts, *ends)


async def _lead(parts: Parts, *ends: Task) -> NoReturn:
    async with background(parts.controller.lead()) as leading:
        logger.info("Leading")
        try:
            await unless(asyncio.shield(leading), *ends)
        except Exit as error:
            if error.code is ExitCode.STOPPED:
                await _drain(parts, leading)
            raise
    raise RuntimeError("the controller stopped leading unexpectedly")


async def _drain(parts: Parts, leading: Task) -> None:
    """Start no new reconciles, and give the running ones some time to end."""
    parts.health.waiting_for = STOPPING
    parts.controller.stop()
    await asyncio.wait({leading}, timeout=parts.drain_seconds)
    if not leading.done():
        # Their last write may still be on its way, so the next leader has to wait for the lease.
        parts.elector.abandon("jobs were still being reconciled when the operator had to stop")
        logger.warning("Stopping while jobs are still being reconciled")


async def _exit_on_stop(stop: asyncio.Event) -> NoReturn:
    await stop.wait()
    raise Exit(ExitCode.STOPPED, "Stopped")


async def _exit_on_lost_lease(elector: Elector) -> NoReturn:
    reason = await elector.lost()
    raise Exit(ExitCode.LEASE_LOST, "Lost the lease", reason=reason)


async def _follow(controller: Controller) -> NoReturn:
    await controller.follow()
    raise RuntimeError("the caches ended unexpectedly")


async def unless(step: Awaitable[T], *ends: Task) -> T:
    """The result of a step, unless one of `ends` raises first: that cancels the step."""
    task = asyncio.ensure_future(step)
    try:
        await asyncio.wait({task, *ends}, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            if end.done():
                end.result()
        return await task
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_SECONDS)


@asynccontextmanager
async def background(part: Coroutine[Any, Any, Any]) -> AsyncIterator[Task]:
    """A task that runs beside the block and is cancelled with it."""
    task = asyncio.create_task(part)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
        _log_end(task)


def _log_end(task: Task) -> None:
    """Log a task that failed or did not end while the operator stopped; nothing awaits it."""
    name = getattr(task.get_coro(), "__qualname__", "")
    if not task.done():
        logger.warning("A task did not stop in time", extra={"task": name})
    elif not task.cancelled() and (error := task.exception()) and not isinstance(error, Exit):
        logger.warning("A task failed", extra={"task": name, "error": repr(error)})
