"""A queue of the keys of objects to reconcile.

    add ──────────────────────────────► waiting ── get ──► working ── done ──► (gone)
    add_after, retry ─► delayed ─ time ────▲ ▲                 │
                                             └── again ◄── add ┘

It holds keys and not events: however often an object changes, its key waits once, and the worker
sees the object as it is then. A key is with one worker at most; if it is added meanwhile, it waits
again afterwards, at the end of the queue.

It belongs to one event loop and needs no locks. All delays share one timer, and a key that neither
waits nor fails takes no memory.
"""

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from .backoff import Backoff
from .delay_queue import DelayQueue
from .noop_metrics import NOOP_METRICS

if TYPE_CHECKING:
    from .metrics import Metrics

K = TypeVar("K", bound=Hashable)


class QueueClosed(Exception):
    """The queue was closed."""


class WorkQueue(Generic[K]):
    """Keys that wait for a worker, each once, first in, first out."""

    def __init__(
        self,
        name: str,
        *,
        base_delay: float = 0.05,
        max_delay: float = 300.0,
        metrics: "Metrics | None" = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._backoff = Backoff(base_delay, max_delay)
        self._random = random
        # An OrderedDict, because finding the first key of a plain dict skips all removed ones.
        self._waiting: OrderedDict[K, float] = OrderedDict()
        self._working: dict[K, float] = {}
        self._again: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._delayed: DelayQueue[K] = DelayQueue()
        self._timer: asyncio.TimerHandle | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._count_into(metrics or NOOP_METRICS)

    def _count_into(self, metrics: "Metrics") -> None:
        self._depth = metrics.queue_depth.labels(self.name)
        self._adds = metrics.queue_adds.labels(self.name)
        self._retries = metrics.queue_retries.labels(self.name)
        self._wait_seconds = metrics.queue_wait_seconds.labels(self.name)
        self._work_seconds = metrics.queue_work_seconds.labels(self.name)

    def __len__(self) -> int:
        """How many keys a worker could take now, not counting delayed ones."""
        return len(self._waiting)

    def add(self, key: K) -> None:
        """Have the key handled (again): now, or when its worker is done."""
        if self._closed or key in self._waiting or key in self._again:
            return
        self._adds.inc()
        if key in self._working:
            self._again[key] = _now()
        else:
            self._enqueue(key, _now())

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key after a delay; of several delays per key the earliest counts.

        `add` does not cancel it: handling a key before the time does not replace handling it then.
        """
        if seconds <= 0:
            self.add(key)
        elif not self._closed:
            self._delayed.put(key, _now() + seconds)
            self._set_timer()

    def retry(self, key: K) -> None:
        """Add the key after a delay that grows with each failure since `forget`."""
        if self._closed:
            return
        self._failures[key] = self.failures(key) + 1
        self._retries.inc()
        self.add_after(key, self._backoff.delay(self._failures[key], self._random()))

    def forget(self, key: K) -> None:
        """The key was handled without an error: its next failure counts as its first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key was retried since `forget`."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Take the key that has waited longest; QueueClosed once the queue is closed.

        Call `done` when finished with the key. Cancelling loses no key.
        """
        while not self._waiting:
            if self._closed:
                raise QueueClosed(self.name)
            await self._wait_for_key()
        key, since = self._waiting.popitem(last=False)
        self._working[key] = _now()
        self._depth.set(len(self._waiting))
        self._wait_seconds.observe(self._working[key] - since)
        return key

    def done(self, key: K) -> None:
        """Return a key from `get`; if it was added meanwhile, it waits again."""
        self._work_seconds.observe(_now() - self._working.pop(key))
        since = self._again.pop(key, None)
        if since is not None:
            self._enqueue(key, since)

    def close(self) -> None:
        """End every `get`, now and later. Drop all keys: the next start lists the objects again."""
        self._closed = True
        for keys in (self._waiting, self._again, self._failures, self._delayed):
            keys.clear()
        self._depth.set(0)
        if self._timer:
            self._timer.cancel()
        while self._getters:
            self._wake_getter()

    def _enqueue(self, key: K, since: float) -> None:
        self._waiting[key] = since
        self._depth.set(len(self._waiting))
        self._wake_getter()

    async def _wait_for_key(self) -> None:
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            self._leave(getter)
            raise

    def _leave(self, getter: asyncio.Future[None]) -> None:
        if getter in self._getters:
            self._getters.remove(getter)
        elif self._waiting:
            # Woken and cancelled at the same time: wake another one for the key.
            self._wake_getter()

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self) -> None:
        """Keep the one timer at the time of the first delayed key."""
        when = self._delayed.next_time()
        if when is None or (self._timer and self._timer.when() <= when):
            return
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._add_due, when)

    def _add_due(self, when: float) -> None:
        self._timer = None
        # Event loops call up to a clock tick early, so `when` may still be in the future.
        for key in self._delayed.pop_due(max(when, _now())):
            self.add(key)
        self._set_timer()


def _now() -> float:
    return asyncio.get_running_loop().time()
