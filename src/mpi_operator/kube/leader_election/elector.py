"""Who may write: leader election on a Lease, and the fence that stops a former leader.

    elector = Elector(connect, namespace="mpi-operator", name="mpi-operator")
    async with elector:
        await elector.acquired()
        client = client.fenced_by(elector)
        ...                          # work, until
        await elector.lost()         # says why

`tenure` is the fence: how long we may write, readable from any thread. `candidate` competes for the
Lease and renews it. The elector runs a candidate in a thread with an event loop and a client of its
own, because decoding a big list can stall the main loop for longer than a lease allows.

Why there are never two writers. A tenure ends `renew_seconds` after the moment *before* the last
good renewal was sent. Anybody else waits `lease_seconds` from when they saw that renewal, which is
later than when it was sent. So a write that was sent in time has the difference of the two to
arrive or to get lost; the HTTP client sees to it that the kernel gives it up by then. No clocks are
compared. A tenure that has ended never begins again: what the process believes about the cluster
may be old by then, so it takes a new elector, in a new process.
"""

import asyncio
import logging
import socket
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.noop_metrics import UNMEASURED
from mpi_operator.kube.resources import Key

from .candidate import Candidate
from .lease import Timing
from .tenure import Tenure, steady_clock

T = TypeVar("T")
Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]

logger = logging.getLogger(__name__)


def new_identity() -> str:
    """A name that no process had before, so that nobody ever renews a predecessor's lease."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Elector:
    """A candidate in a thread of its own. Also the fence of the clients that write.

    Leave its context only after everything that writes has stopped: leaving releases the lease.
    Where that cannot be, `abandon` it first. Soon after a write that a fenced client gave up it is
    not released but runs out.
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
        self._tenure = Tenure(clock)
        self._decided, self._over, self._stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        # Asked for when it is scraped: true also when our thread no longer gets to say so.
        gauge = (metrics or UNMEASURED).is_leader.labels(name)
        gauge.set_function(lambda: float(self._tenure.is_valid))
        self._thread = threading.Thread(target=self._main, name="lease", daemon=True)

    @property
    def grace(self) -> float:
        """Seconds between the end of our permission and the beginning of anybody else's."""
        return self._timing.lease_seconds - self._timing.renew_seconds

    def remaining(self) -> float:
        """Seconds for which this process may write; NotLeader when it may not."""
        return self._tenure.remaining()

    def doubt(self) -> None:
        """A write of ours may still land: do not release the lease before it has, or is lost."""
        self._tenure.doubt(self.grace)

    def check(self) -> None:
        """NotLeader unless this process may write now."""
        self._tenure.remaining()

    def abandon(self, why: str) -> None:
        """Stop leading and let the lease run out, where a release would be too early.

        That is so while a write may still be on its way: one that was given up without an answer,
        or one of a worker that did not stop in time.
        """
        self._tenure.end(why)

    @property
    def is_leader(self) -> bool:
        return self._tenure.is_valid

    @property
    def why_lost(self) -> str:
        """Why this process will never lead (again); empty while it does or may."""
        return self._tenure.why_over

    async def acquired(self) -> None:
        """Return when this process leads; NotLeader when it never will."""
        await self._decided.wait()
        self.check()

    async def lost(self) -> str:
        """Return when leading is over, or can no longer begin, and why."""
        await self._over.wait()
        return self.why_lost

    async def __aenter__(self) -> Self:
        self._main_loop = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(RuntimeError):  # its loop is closed where the thread has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, 2 * self._timing.renew_seconds)
        self._tenure.end("the elector was stopped")
        if self._thread.is_alive():
            logger.warning("The lease thread does not end", extra={"lease": str(self._key)})

    def _main(self) -> None:
        """The thread: whatever happens in it, the main loop hears of it."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._tenure.end(f"the lease thread failed: {error!r}")
            logger.exception("The lease thread failed", extra={"lease": str(self._key)})
        finally:
            self._tenure.end("the elector was stopped")
            self._tell(self._over, self._decided)

    async def _serve(self) -> None:
        """Compete and hold until that is over or we are told to stop."""
        async with self._connect() as client:
            candidate = Candidate(
                client, self._key, self.identity, self._timing, self._tenure, self._clock
            )
            reign = asyncio.ensure_future(self._reign(candidate))
            stop = asyncio.ensure_future(self._stop.wait())
            await asyncio.wait({reign, stop}, return_when=asyncio.FIRST_COMPLETED)
            if reign.done():
                await _cancel(stop)
                reign.result()
            else:
                await _cancel(reign)
                await candidate.release()

    async def _reign(self, candidate: Candidate) -> None:
        try:
            await candidate.win()
            logger.info("Lease acquired", extra={"lease": str(self._key)})
            self._tell(self._decided)
            await candidate.hold()
        except errors.NotLeader as loss:
            logger.warning("Lease lost", extra={"lease": str(self._key), "reason": str(loss)})
            self._tell(self._over)

    def _tell(self, *events: asyncio.Event) -> None:
        for event in events:
            try:
                self._main_loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                return  # the main loop is closed: nobody listens


async def _cancel(task: "asyncio.Future[T]") -> None:
    task.cancel()
    await asyncio.wait({task})
