"""Sends a request until it is answered: credentials, retries, deadline, fence, metrics."""

import asyncio
import copy
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from . import errors
from .config import Credential, Credentials
from .leader_election.fence import Fence
from .metrics import Metrics
from .requests import Request
from .retry import delay_before_retry
from .transport import Timeouts

T = TypeVar("T")

# One try of a request, with a credential and a time limit in seconds; code and result.
Try = Callable[[Credential, float], Awaitable[tuple[int, T]]]


class Sender:
    """Retries a request until it is answered, refused for good, or out of time."""

    def __init__(
        self,
        credentials: Credentials,
        timeouts: Timeouts,
        metrics: Metrics,
        slots: asyncio.Semaphore,
        fence: Fence | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._credentials = credentials
        self._timeouts = timeouts
        self._metrics = metrics
        self._slots = slots
        self._fence = fence
        self._clock = clock

    def fenced_by(self, fence: Fence) -> "Sender":
        """The same sender, which asks the fence before each write."""
        fenced = copy.copy(self)
        fenced._fence = fence
        return fenced

    async def send(self, request: Request, attempt: Try[T]) -> T:
        """The result of the first `attempt` that succeeds."""
        # A login may take a user a minute. That must not use up the deadline or occupy a slot.
        await self._credentials.current()
        # Held between tries too: a server that answers 429 wants fewer concurrent requests.
        async with self._slots:
            return await self._until_answered(request, attempt)

    async def open(self, request: Request, attempt: Try[T]) -> T:
        """The same for a stream, which takes no slot because it may take long to begin."""
        await self._credentials.current()
        return await self._until_answered(request, attempt)

    async def _until_answered(self, request: Request, attempt: Try[T]) -> T:
        deadline = self._clock() + self._timeouts.deadline
        was_refused = False
        for number in itertools.count():
            credential = await self._credentials.current()
            try:
                return await self._once(request, attempt, credential, deadline)
            except errors.KubeError as error:
                if was_refused and isinstance(error, errors.Unauthorized):
                    raise
                delay = await self._delay(request, error, credential, number)
                if delay is None or self._clock() + delay >= deadline:
                    raise
                was_refused = was_refused or isinstance(error, errors.Unauthorized)
                reason = type(error).__name__  # not its message, which varies
                self._metrics.retries.labels(request.verb, request.resource, reason).inc()
            await asyncio.sleep(delay)
        raise AssertionError("unreachable")

    async def _once(
        self, request: Request, attempt: Try[T], credential: Credential, deadline: float
    ) -> T:
        started = self._clock()
        limit = self._time_limit(request, deadline - started)
        code = "<error>"
        try:
            status, result = await attempt(credential, limit)
            code = str(status)
        except errors.ApiError as error:
            code = str(error.code)
            self._doubt(request, isinstance(error, errors.ServerError))
            raise
        except errors.NotSent:
            raise
        except BaseException:  # cancellation too: the request may be on its way
            self._doubt(request, True)
            raise
        finally:
            seconds = self._clock() - started
            self._metrics.request(request.verb, request.resource, code, seconds)
        return result

    def _doubt(self, request: Request, may_still_land: bool) -> None:
        if self._fence is not None and may_still_land and not request.is_read:
            self._fence.doubt()

    def _time_limit(self, request: Request, left: float) -> float:
        if left <= 0:  # credentials took all the time; a limit of 0 would mean no limit
            raise errors.NotSent(f"{request.verb} {request.path}: no time left to send it")
        if request.is_read:
            return min(self._timeouts.read, left)
        allowed = min(self._timeouts.write, left)
        return allowed if self._fence is None else min(allowed, self._fence.remaining())

    async def _delay(
        self, request: Request, error: errors.KubeError, credential: Credential, number: int
    ) -> float | None:
        if isinstance(error, errors.Unauthorized):
            # Refused before it did anything: try once more with a new credential, if there is one.
            return 0.0 if await self._credentials.refused(credential) else None
        return delay_before_retry(
            error, is_read=request.is_read, attempt=number, random=random.random
        )
