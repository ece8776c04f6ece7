"""A candidate: competes for a Lease and renews it.

Runs on any event loop and with any client; the `elector` gives it its own thread.
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
from .fence import LeaseFence, steady_clock
from .lease import Claim, Observation, Timing, Wait

T = TypeVar("T")

logger = logging.getLogger(__name__)

_ADVICE: dict[type[errors.KubeError], str] = {
    errors.Forbidden: "allow get, create, update and watch of leases.coordination.k8s.io there",
    errors.NotFound: "create the namespace, or choose one that exists for the lease",
}

# The shortest wait. Our clock may be slightly behind the event loop's, and we would busy-wait for
# the difference.
_TICK = 0.001


class Candidate:
    """A process that wants the lease: `win` it, `hold` it, `release` it."""

    def __init__(
        self,
        client: Client,
        key: Key,
        identity: str,
        timing: Timing,
        fence: LeaseFence,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        self._client = client
        self._key = key
        self._identity = identity
        self._timing = timing
        self._fence = fence
        self._clock = clock
        self._seen = Observation(since=clock())
        self._claimed_at = float("-inf")
        self._has_claimed = False
        self._reported: set[type[errors.KubeError]] = set()

    async def win(self) -> None:
        """Wait until the lease is ours."""
        while True:
            try:
                return await self._compete()
            except errors.NotLeader:
                raise
            except errors.KubeError as error:
                self._report(error)
            await asyncio.sleep(self._timing.retry_seconds * random.uniform(1.0, 1.2))

    async def hold(self) -> NoReturn:
        """Renew the lease; NotLeader when it is lost."""
        while True:
            await asyncio.sleep(self._claimed_at + self._timing.renew_interval - self._clock())
            while not await self._renew():  # noqa: ASYNC110 - a pause between tries, not a poll
                await asyncio.sleep(max(_TICK, min(self._pause, self._fence.remaining())))

    async def release(self) -> None:
        """Remove our name from the Lease, so that the next leader need not wait.

        Only while the lease is certainly ours. After losing it, or after a write without an answer,
        it must expire: that write may still be on its way, and must not meet another leader's.
        """
        if not self._has_claimed or (self._fence.was_opened and not self._fence.is_open):
            return
        if self._fence.is_doubtful:
            logger.info(
                "Lease not released but left to expire, because a write may still land",
                extra=self._facts(),
            )
            return
        self._fence.close("the lease was released")
        try:
            await _within(self._timing.renew_seconds, self._give_back())
        except errors.KubeError as error:
            facts = self._facts(error=str(error))
            logger.warning("Could not release the Lease, it will expire", extra=facts)

    async def _compete(self) -> None:
        """Wait until the lease is free and take it; a KubeError if we cannot tell who holds it."""
        await self._read(self._timing.renew_seconds)
        while True:
            step = lease.next_step(self._seen, self._clock(), self._identity, self._timing)
            if isinstance(step, Wait):
                await self._stand_by(step)
            elif await self._claim(step, self._timing.renew_seconds):
                return
            else:
                await asyncio.sleep(self._pause)

    async def _stand_by(self, step: Wait) -> None:
        """Watch the Lease until there is something to do, so a release is noticed at once.

        A watch may hang without an error, so we trust its silence only until the lease expires.
        Then we try to take it, and a Conflict means that the holder has renewed it.
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
        raise errors.ConnectionLost("the server closed the watch of the lease")

    async def _renew(self) -> bool:
        """Try once, in half the time left, so that a dead connection leaves time for a retry."""
        limit = self._fence.remaining() / 2
        step = lease.next_step(self._seen, self._clock(), self._identity, self._timing)
        try:
            return isinstance(step, Claim) and await self._claim(step, limit)
        except errors.NotLeader:
            raise
        except errors.KubeError as error:
            self._report(error)
            return False

    async def _claim(self, claim: Claim, limit: float) -> bool:
        """Write our name into the Lease; false if another candidate was faster."""
        self._has_claimed = True
        sent_at = self._clock()
        try:
            stored = await _within(limit, self._write(claim))
        except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
            if claim is Claim.CREATE and isinstance(error, errors.NotFound):
                raise  # the namespace is missing, not the Lease
            await self._read(limit)
            return False
        self._see(stored)
        self._claimed_at = sent_at
        self._reported.clear()
        return self._fence.extend(sent_at + self._timing.renew_seconds)

    async def _write(self, claim: Claim) -> Manifest:
        at = datetime.now(UTC)
        manifest = lease.claimed(claim, self._seen, self._key, self._identity, self._timing, at)
        if claim is Claim.CREATE:
            return await self._client.create(LEASES, manifest)
        return await self._client.replace(LEASES, manifest)

    async def _give_back(self) -> None:
        while True:
            await self._read(self._timing.renew_seconds)
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

    async def _read(self, limit: float) -> None:
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
        if holder != self._identity and self._fence.was_opened:
            self._fence.close(f"the lease is held by {holder or 'no process'}")

    def _report(self, error: errors.KubeError) -> None:
        """Log an error and what helps against it, but each kind of error only once."""
        level = logging.DEBUG if type(error) in self._reported else logging.WARNING
        self._reported.add(type(error))
        advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "")
        logger.log(
            level,
            "Cannot read or write the Lease",
            extra=self._facts(error=str(error), advice=advice),
        )

    def _facts(self, **more: object) -> dict[str, object]:
        return {"lease": str(self._key), "identity": self._identity, **more}

    @property
    def _pause(self) -> float:
        """Seconds between tries: short enough not to lose the lease."""
        return self._timing.renew_seconds / 10


async def _within(seconds: float, call: Awaitable[T]) -> T:
    """The answer of a call; DeadlineExceeded if it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        message = f"timed out after {seconds:.1f}s waiting for the response"
        raise errors.DeadlineExceeded(message) from None
