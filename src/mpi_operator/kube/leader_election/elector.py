"""Leader election on a Lease, with a fence that stops a former leader from writing.

    elector = Elector(connect, namespace="mpi-operator", name="mpi-operator")
    async with elector:
        await elector.acquired()
        client = client.fenced_by(elector)
        ...                          # work, until
        await elector.lost()         # says why

`fence` says how long we may write, to any thread. `candidate` competes for the Lease and renews it.
The elector runs a candidate in a thread with its own event loop and client, because decoding a big
list can stall the main loop for longer than a lease allows.

Why there are never two writers: the fence closes `renew_seconds` after the moment *before* the last
successful renewal was sent. Other candidates wait `lease_seconds` from when they saw that renewal,
which is later. So a write that was sent in time has the difference of the two to arrive or to get
lost; the HTTP client makes the kernel drop it by then. No clocks of two machines are compared. A
closed fence never opens again: the process's view of the cluster may be stale by then, so a new
process with a new elector has to take over.
"""

import asyncio
import logging
import socket
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Self, TypeAlias, TypeVar

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.noop_metrics import NOOP_METRICS
from mpi_operator.kube.resources import Key

from .candidate import Candidate
from .fence import LeaseFence, steady_clock
from .lease import Timing

T = TypeVar("T")
Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]

logger = logging.getLogger(__name__)


def new_identity() -> str:
    """A name that no process had before, so that none renews the lease of its predecessor."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Elector:
    """A candidate in its own thread, and the fence for the clients that write.

    Leave its context only after all writers have stopped, because leaving releases the lease. If
    they cannot be stopped, `abandon` it first. Within `grace` seconds of a write without an answer
    the lease is not released but expires.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        namespace: str,
        name: str,
        identity: str = "",
        timing: Timing | None = None,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        self.identity = identity or new_identity()
        self._connect = connect
        self._key = Key(namespace, name)
        self._timing = timing or Timing()
        self._clock = clock
        self._fence = LeaseFence(clock)
        self._decided, self._over, self._stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        # Computed when scraped, so it is right even if our thread hangs.
        gauge = (metrics or NOOP_METRICS).is_leader.labels(name)
        gauge.set_function(lambda: float(self._fence.is_open))
        self._thread = threading.Thread(target=self._main, name="lease", daemon=True)

    @property
    def grace(self) -> float:
        """Seconds between the end of our permission and the start of another process's."""
        return self._timing.lease_seconds - self._timing.renew_seconds

    def remaining(self) -> float:
        """Seconds for which this process may write; NotLeader when it may not."""
        return self._fence.remaining()

    def doubt(self) -> None:
        """A write of ours may still land: do not release the lease within `grace`."""
        self._fence.doubt(self.grace)

    def check(self) -> None:
        """NotLeader unless this process may write now."""
        self._fence.remaining()

    def abandon(self, why: str) -> None:
        """Stop leading and let the lease expire instead of releasing it.

        Needed while a write may still be on its way: one that got no answer, or one of a worker
        that did not stop in time.
        """
        self._fence.close(why)

    @property
    def is_leader(self) -> bool:
        return self._fence.is_open

    @property
    def why_lost(self) -> str:
        """Why this process cannot lead (again); empty while it leads or may still."""
        return self._fence.why_closed

    async def acquired(self) -> None:
        """Return when this process leads; NotLeader if it never will."""
        await self._decided.wait()
        self.check()

    async def lost(self) -> str:
        """Wait until this process can no longer lead; return why."""
        await self._over.wait()
        return self.why_lost

    async def __aenter__(self) -> Self:
        self._main_loop = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # the thread has ended and closed its loop
            self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, 2 * self._timing.renew_seconds)
        self._fence.close("the elector was stopped")
        if self._thread.is_alive():
            logger.warning("Lease thread did not stop", extra={"lease": str(self._key)})

    def _main(self) -> None:
        """The thread. However it ends, it notifies the main loop."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._fence.close(f"the lease thread failed: {error!r}")
            logger.exception("Lease thread failed", extra={"lease": str(self._key)})
        finally:
            self._fence.close("the elector was stopped")
            self._notify(self._over, self._decided)

    async def _serve(self) -> None:
        """Run the candidate until it loses the lease or we are stopped."""
        async with self._connect() as client:
            candidate = Candidate(
                client, self._key, self.identity, self._timing, self._fence, self._clock
            )
            leading = asyncio.ensure_future(self._lead(candidate))
            stop = asyncio.ensure_future(self._stop.wait())
            await asyncio.wait({leading, stop}, return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                await _cancel(stop)
                leading.result()
            else:
                await _cancel(leading)
                await candidate.release()

    async def _lead(self, candidate: Candidate) -> None:
        try:
            await candidate.win()
            logger.info("Lease acquired", extra={"lease": str(self._key)})
            self._notify(self._decided)
            await candidate.hold()
        except errors.NotLeader as loss:
            logger.warning("Lease lost", extra={"lease": str(self._key), "reason": str(loss)})
            self._notify(self._over)

    def _notify(self, *events: asyncio.Event) -> None:
        for event in events:
            try:
                self._main_loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                return  # the main loop is closed


async def _cancel(task: "asyncio.Future[T]") -> None:
    task.cancel()
    await asyncio.wait({task})
