"""The life of the operator, from the first question to the last write.

    preflight ──► compete for the lease, caches warm ──► refresh ──► lead ──► stop
                                                                                │
    writes end ──► caches end ──► the lease is released   ◄─────────────────────┘

It always ends with an exception: an `Ending` that says why, or a bug. What can end it early (a
signal, a lost lease, caches that fail) are tasks that end by raising, and every step is a race
against them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

from mpi_operator.kube.leader_election.elector import Elector

from .exit_codes import Ending, ExitCode
from .health import STOPPING, Health

T = TypeVar("T")
Task: TypeAlias = "asyncio.Task[Any]"
Step: TypeAlias = Callable[[], Coroutine[Any, Any, object]]

logger = logging.getLogger(__name__)

# Less than the half minute that Kubernetes gives a pod to end.
DRAIN_SECONDS = 10.0
_CANCEL_SECONDS = 5.0


class Controlling(Protocol):
    """What a controller lets us do."""

    async def follow(self) -> None: ...

    async def refresh(self) -> None: ...

    async def lead(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Parts:
    """What the life of the operator is made of."""

    controller: Controlling
    elector: Elector
    health: Health
    preflight: Step
    stand_by: Step
    drain_seconds: float = DRAIN_SECONDS


async def live(parts: Parts, asked: asyncio.Event) -> NoReturn:
    """Live until `asked` is set, or something else ends it."""
    controller, elector = parts.controller, parts.elector
    async with running(_end_when_asked(asked)) as signal:
        await unless(parts.preflight(), signal)
        async with (
            elector,
            running(_follow(controller)) as caches,
            running(_end_when_lost(elector)) as loss,
        ):
            async with running(parts.stand_by()) as standing_by:
                await unless(elector.acquired(), signal, loss, caches, standing_by)
            await unless(controller.refresh(), signal, loss, caches)
            await _lead(parts, signal, loss, caches)


async def _lead(parts: Parts, *ends: Task) -> NoReturn:
    async with running(parts.controller.lead()) as leading:
        logger.info("Leading")
        try:
            await unless(asyncio.shield(leading), *ends)
        except Ending as ending:
            if ending.code is ExitCode.ASKED_TO_STOP:
                await _drain(parts, leading)
            raise
    raise RuntimeError("the controller stopped leading, and nobody had asked it to")


async def _drain(parts: Parts, leading: Task) -> None:
    """Take nothing new, and let what is under way end, but not for ever."""
    parts.health.waiting_for = STOPPING
    parts.controller.stop()
    await asyncio.wait({leading}, timeout=parts.drain_seconds)
    if not leading.done():
        # A write of it may still be on its way: nobody else may lead before it has landed.
        parts.elector.abandon("jobs were still being worked on when the operator had to stop")
        logger.warning("Jobs are still being worked on, ending all the same")


async def _end_when_asked(asked: asyncio.Event) -> NoReturn:
    await asked.wait()
    raise Ending(ExitCode.ASKED_TO_STOP, "Stopped")


async def _end_when_lost(elector: Elector) -> NoReturn:
    why = await elector.lost()
    raise Ending(ExitCode.LEASE_LOST, "The lease is lost", reason=why)


async def _follow(controller: Controlling) -> NoReturn:
    await controller.follow()
    raise RuntimeError("the caches ended, and nobody had asked them to")


async def unless(step: Awaitable[T], *ends: Task) -> T:
    """The result of the step, unless one of `ends` comes first: that raises, and ends the step."""
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
async def running(part: Coroutine[Any, Any, Any]) -> AsyncIterator[Task]:
    """A part that runs beside the block, and ends with it."""
    task = asyncio.create_task(part)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
        _report(task)


def _report(task: Task) -> None:
    """Tell of what would else be lost: a part that fails, or does not end, while we stop."""
    name = getattr(task.get_coro(), "__qualname__", "")
    if not task.done():
        logger.warning("A part of the program does not end", extra={"part": name})
    elif not task.cancelled() and (error := task.exception()) and not isinstance(error, Ending):
        logger.warning("A part of the program failed", extra={"part": name, "error": repr(error)})
