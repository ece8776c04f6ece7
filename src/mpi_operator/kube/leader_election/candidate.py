"""One that competes for a Lease, and renews it for as long as that works.

Runs on any event loop and any client; `election` gives it a thread of its own.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import NoReturn, TypeVar

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, EventType, WatchOptions
from mpi_operator.kube.resources import LEASES, Key, Manifest

from . import lease
from .lease import Claim, Observation, Timing, Wait
from .tenure import Tenure, steady_clock

T = TypeVar("T")

logger = logging.getLogger(__name__)

_ADVICE: dict[type[errors.KubeError], str] = {
    errors.Forbidden: "allow get, create, update and watch of leases.coordination.k8s.io there",
    errors.NotFound: "create the namespace, or keep the lease in one that exists",
}

# The shortest wait. Our clock and the event loop's need not agree on when a moment has come, and
# between the two we would turn in circles.
_TICK = 0.001


class Candidate:
    """One that wants the lease: `win` it, `hold` it, `release` it."""

    def __init__(
        self,
        client: Client,
        key: Key,
        identity: str,
        timing: Timing,
        tenure: Tenure,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        self._client = client
        self._key = key
        self._identity = identity
        self._timing = timing
        self._tenure = tenure
        self._clock = clock
        self._seen = Observation(since=clock())
        self._claimed_at = float("-inf")
        self._has_claimed = False
        self._complaints: set[type[errors.KubeError]] = set()

    async def win(self) -> None:
        """Return as soon as the lease is ours, however long that takes."""
        while True:
            try:
                return await self._compete()
            except errors.NotLeader:
                raise
            except errors.KubeError as error:
                self._complain(error)
            await asyncio.sleep(self._timing.retry_seconds * random.uniform(1.0, 1.2))

    async def hold(self) -> NoReturn:
        """Renew for as long as that works, then raise NotLeader."""
        while True:
            await asyncio.sleep(self._claimed_at + self._timing.renew_interval - self._clock())
            while not await self._renew():  # noqa: ASYNC110 - a pause between tries, not a poll
                await asyncio.sleep(max(_TICK, min(self._pause, self._tenure.remaining())))

    async def release(self) -> None:
        """Take our name out of the Lease, so that the next one need not wait.

        Only while the lease is surely ours. After a loss, or a write that was given up, it must run
        out: what we sent may still be on its way, and nobody may write until it is there or lost.
        """
        if not self._has_claimed or (self._tenure.has_begun and not self._tenure.is_valid):
            return
        if self._tenure.is_doubtful:
            logger.info("Lease left to run out: a write may still land", extra=self._facts())
            return
        self._tenure.end("the lease was released")
        try:
            await _within(self._timing.renew_seconds, self._give_back())
        except errors.KubeError as error:
            facts = self._facts(error=str(error))
            logger.warning("Lease not released, it will run out", extra=facts)

    async def _compete(self) -> None:
        """Wait for our turn and take it; a KubeError where we cannot tell whose turn it is."""
        await self._look(self._timing.renew_seconds)
        while True:
            step = lease.next_step(self._seen, self._clock(), self._identity, self._timing)
            if isinstance(step, Wait):
                await self._stand_by(step)
            elif await self._claim(step, self._timing.renew_seconds):
                return
            else:
                await asyncio.sleep(self._pause)

    async def _stand_by(self, step: Wait) -> None:
        """Watch the Lease until there is something to do: a release is seen at once.

        A watch may go silent without an error, so what it does not say is not believed for longer
        than the lease lasts: then we try to take it, and a Conflict tells that the holder lives.
        """
        try:
            async with asyncio.timeout(max(_TICK, step.until - self._clock())) as limit:
                await self._follow(limit)
        except TimeoutError:
            return

    async def _follow(self, limit: asyncio.Timeout) -> None:
        events = self._client.watch(
            LEASES,
            self._key.namespace,
            WatchOptions(
                resource_version=self._seen.resource_version,
                fields=f"metadata.name={self._key.name}",
            ),
        )
        async with aclosing(events):
            async for event in events:
                if event.type is EventType.BOOKMARK:
                    continue
                self._see(None if event.type is EventType.DELETED else event.object)
                step = lease.next_step(self._seen, self._clock(), self._identity, self._timing)
                if not isinstance(step, Wait):
                    return
                limit.reschedule(asyncio.get_running_loop().time() + step.until - self._clock())
        raise errors.ConnectionLost("the server ended the watch of the lease")

    async def _renew(self) -> bool:
        """Try once, in half the time left: a dead connection must leave time for a new one."""
        limit = self._tenure.remaining() / 2
        step = lease.next_step(self._seen, self._clock(), self._identity, self._timing)
        try:
            return isinstance(step, Claim) and await self._claim(step, limit)
        except errors.NotLeader:
            raise
        except errors.KubeError as error:
            self._complain(error)
            return False

    async def _claim(self, claim: Claim, limit: float) -> bool:
        """Write our name into the Lease; false, after a look, where somebody else was faster."""
        self._has_claimed = True
        sent_at = self._clock()
        try:
            stored = await _within(limit, self._write(claim))
        except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
            if claim is Claim.CREATE and isinstance(error, errors.NotFound):
                raise  # not the Lease is missing but its namespace
            await self._look(limit)
            return False
        self._see(stored)
        self._claimed_at = sent_at
        self._complaints.clear()
        return self._tenure.extend(sent_at + self._timing.renew_seconds)

    async def _write(self, claim: Claim) -> Manifest:
        at = datetime.now(UTC)
        manifest = lease.claimed(claim, self._seen, self._key, self._identity, self._timing, at)
        if claim is Claim.CREATE:
            return await self._client.create(LEASES, manifest)
        return await self._client.replace(LEASES, manifest)

    async def _give_back(self) -> None:
        while True:
            await self._look(self._timing.renew_seconds)
            manifest = self._seen.manifest
            if manifest is None or self._seen.record.holder != self._identity:
                return
            try:
                await self._client.replace(LEASES, lease.released(manifest, datetime.now(UTC)))
            except errors.Conflict:
                await asyncio.sleep(self._pause)
                continue
            logger.info("Lease released", extra=self._facts())
            return

    async def _look(self, limit: float) -> None:
        try:
            get = self._client.get(LEASES, self._key.name, self._key.namespace)
            self._see(await _within(limit, get))
        except errors.NotFound:
            self._see(None)

    def _see(self, manifest: Manifest | None) -> None:
        before, self._seen = self._seen, lease.observe(self._seen, manifest, self._clock())
        holder = self._seen.record.holder
        if holder != before.record.holder:
            logger.info("Lease has a new holder", extra=self._facts(holder=holder))
        if holder != self._identity and self._tenure.has_begun:
            self._tenure.end(f"the lease is held by {holder or 'nobody'}")

    def _complain(self, error: errors.KubeError) -> None:
        """Say what is wrong and what helps, but not every three seconds."""
        level = logging.DEBUG if type(error) in self._complaints else logging.WARNING
        self._complaints.add(type(error))
        advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "")
        logger.log(level, "Lease out of reach", extra=self._facts(error=str(error), advice=advice))

    def _facts(self, **more: object) -> dict[str, object]:
        return {"lease": str(self._key), "identity": self._identity, **more}

    @property
    def _pause(self) -> float:
        """Between tries that are not to cost the lease."""
        return self._timing.renew_seconds / 10


async def _within(seconds: float, call: Awaitable[T]) -> T:
    """The answer of a call that may take that long."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise errors.DeadlineExceeded(f"no answer within {seconds:.1f} seconds") from None
