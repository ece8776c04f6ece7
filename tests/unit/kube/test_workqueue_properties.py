"""Any sequence of calls, compared with a queue made of plain lists and dicts."""

import asyncio

import looptime
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.workqueue import WorkQueue

KEYS = st.sampled_from("abcde")
SECONDS = st.integers(0, 30)
BACKOFF = Backoff(base=1, cap=16)


class Model:
    """What a work queue promises, with no thought of speed."""

    def __init__(self):
        self.now = 0.0
        self.waiting, self.working, self.again = [], [], []
        self.delayed = {}

    def add(self, key):
        line = self.again if key in self.working else self.waiting
        if key not in line:
            line.append(key)

    def add_after(self, key, seconds):
        when = self.now + seconds
        if seconds == 0:
            self.add(key)
        elif when < self.delayed.get(key, when + 1):
            self.delayed.pop(key, None)
            self.delayed[key] = when

    def advance(self, seconds):
        self.now += seconds
        for key in sorted(self.delayed, key=lambda key: self.delayed[key]):
            if self.delayed[key] <= self.now:
                del self.delayed[key]
                self.add(key)

    def get(self):
        self.working.append(self.waiting.pop(0))
        return self.working[-1]

    def done(self, key):
        self.working.remove(key)
        if key in self.again:
            self.again.remove(key)
            self.waiting.append(key)


class WorkQueueMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.loop = looptime.new_event_loop(start=0)
        self.model = Model()
        self.queue = WorkQueue[str](
            "test", base_delay=BACKOFF.base, max_delay=BACKOFF.cap, random=lambda: 0.0
        )

    def on_loop(self, function, *args):
        async def call():
            return function(*args)

        return self.loop.run_until_complete(call())

    @rule(key=KEYS)
    def add(self, key):
        self.on_loop(self.queue.add, key)
        self.model.add(key)

    @rule(key=KEYS, seconds=SECONDS)
    def add_after(self, key, seconds):
        self.on_loop(self.queue.add_after, key, seconds)
        self.model.add_after(key, seconds)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds):
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.model.advance(seconds)

    @precondition(lambda self: self.model.waiting)
    @rule()
    def get(self):
        busy = list(self.model.working)
        key = self.loop.run_until_complete(self.queue.get())
        assert key == self.model.get(), "the key that has waited longest"
        assert key not in busy, "one worker at a time"

    @precondition(lambda self: self.model.working)
    @rule(data=st.data())
    def succeed(self, data):
        key = data.draw(st.sampled_from(self.model.working))
        self.on_loop(self.queue.forget, key)
        self.on_loop(self.queue.done, key)
        self.model.done(key)

    @precondition(lambda self: self.model.working)
    @rule(data=st.data())
    def fail(self, data):
        key = data.draw(st.sampled_from(self.model.working))
        delay = BACKOFF.delay(self.queue.failures(key) + 1, 0.0)
        self.on_loop(self.queue.retry, key)
        self.on_loop(self.queue.done, key)
        self.model.add_after(key, delay)
        self.model.done(key)

    @precondition(lambda self: not self.model.waiting)
    @rule(key=KEYS)
    def cancel_a_getter_just_as_a_key_comes(self, key):
        async def call():
            getter = asyncio.create_task(self.queue.get())
            await asyncio.sleep(0)
            self.queue.add(key)
            getter.cancel()
            await asyncio.wait({getter})

        self.loop.run_until_complete(call())
        self.model.add(key)

    @invariant()
    def both_agree(self):
        assert len(self.queue) == len(self.model.waiting)

    def teardown(self):
        """In the end everything that was asked for is handled, and then there is nothing left."""
        self.time_passes(30)
        for key in list(self.model.working):
            self.on_loop(self.queue.done, key)
            self.model.done(key)
        while self.model.waiting:
            self.get()
            self.on_loop(self.queue.done, self.model.working[0])
            self.model.done(self.model.working[0])
        self.time_passes(30)
        assert len(self.queue) == 0
        assert not self.model.delayed
        self.loop.close()


TestWorkQueue = WorkQueueMachine.TestCase
TestWorkQueue.settings = settings(max_examples=100, stateful_step_count=40)
