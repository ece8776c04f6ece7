import asyncio
import itertools
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube import errors
from mpi_operator.kube.events import EventRecorder, Limits, ObjectReference, Severity
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.resources import EVENTS

pytestmark = pytest.mark.looptime

JOB = ObjectReference("kubeflow.org/v2beta1", "MPIJob", "pi", "team", "uid-1", "7")
START = datetime(2026, 1, 1, tzinfo=UTC)


def refusal(reason="", code=0, message="", causes=(), retry_after=None):
    details = errors.Details(
        causes=tuple(errors.Cause(reason=cause) for cause in causes),
        retry_after_seconds=retry_after,
    )
    return errors.from_status(errors.Status(message, reason, code, details))


NOT_FOUND = refusal("NotFound")
FORBIDDEN = refusal("Forbidden")
TERMINATING = refusal("Forbidden", causes=["NamespaceTerminating"])
UNAVAILABLE = refusal("ServiceUnavailable")
TOO_MANY = refusal("TooManyRequests", retry_after=20)


class Cluster:
    """Keeps events by name. `failures` are what it answers first; None is success."""

    def __init__(self, *failures, loses_answers=False):
        self.failures = iter(failures)
        self.loses_answers = loses_answers
        self.events, self.writes = {}, []

    async def create(self, resource, manifest):
        name = manifest["metadata"]["name"]
        await self._answer("create", resource, self.loses_answers)
        if name in self.events:
            raise refusal("AlreadyExists")
        self.events[name] = manifest
        self._lose_answer()
        return manifest

    async def patch(self, resource, name, patch, namespace=""):
        await self._answer("patch", resource, self.loses_answers)
        if name not in self.events:
            raise refusal("NotFound")
        assert self.events[name]["metadata"]["namespace"] == namespace
        self.events[name] = self.events[name] | patch
        return self.events[name]

    async def _answer(self, verb, resource, is_kept_back):
        assert resource == EVENTS
        self.writes.append((verb, asyncio.get_running_loop().time()))
        await asyncio.sleep(0)
        failure = None if is_kept_back else next(self.failures, None)
        if failure:
            raise failure

    def _lose_answer(self):
        failure = next(self.failures, None) if self.loses_answers else None
        if failure:
            raise failure

    @property
    def stored(self):
        return [(event["message"], event["count"]) for event in self.events.values()]

    @property
    def verbs(self):
        return [verb for verb, _ in self.writes]


def make_recorder(cluster, **settings):
    def clock():
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    return EventRecorder(cluster, "mpi-operator", **({"clock": clock} | settings))


def boom(events, message="boom", regarding=JOB):
    events.record(regarding, Severity.WARNING, "Failed", message)


async def settle():
    """Let the recorder write what it can without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_an_event_names_its_component_reason_and_object():
    cluster = Cluster()
    async with make_recorder(cluster, instance="mpi-operator-0") as events:
        boom(events)
    (event,) = cluster.events.values()
    assert event["involvedObject"]["uid"] == "uid-1"
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Failed", "boom")
    assert event["source"] == {"component": "mpi-operator"}
    assert (event["reportingComponent"], event["reportingInstance"]) == (
        "mpi-operator",
        "mpi-operator-0",
    )


async def test_the_same_again_changes_the_event():
    cluster = Cluster()
    async with make_recorder(cluster) as events:
        boom(events)
        await asyncio.sleep(60)
        boom(events)
    (event,) = cluster.events.values()
    assert (event["count"], cluster.verbs) == (2, ["create", "patch"])
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:00Z"


async def test_a_storm_is_one_write():
    cluster = Cluster()
    async with make_recorder(cluster) as events:
        for _ in range(1000):
            boom(events)
    assert (cluster.stored, cluster.verbs) == ([("boom", 1000)], ["create"])


async def test_what_was_noted_before_the_start_is_written_too():
    cluster = Cluster()
    events = make_recorder(cluster)
    boom(events)
    async with events:
        pass
    assert cluster.stored == [("boom", 1)]


async def test_an_event_that_is_gone_is_created_anew():
    cluster = Cluster()
    async with make_recorder(cluster) as events:
        boom(events)
        await settle()
        cluster.events.clear()
        boom(events)
    assert cluster.stored == [("boom", 2)]
    assert cluster.verbs == ["create", "patch", "create"]


async def test_a_create_whose_answer_was_lost_makes_no_second_event():
    cluster = Cluster(errors.ConnectionLost(), loses_answers=True)
    async with make_recorder(cluster) as events:
        boom(events)
    assert (cluster.stored, cluster.verbs) == ([("boom", 1)], ["create", "create", "patch"])


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(UNAVAILABLE, id="the server is not ready"),
        pytest.param(refusal("TooManyRequests"), id="the server is busy"),
        pytest.param(errors.NotSent(), id="the server cannot be reached"),
        pytest.param(errors.ConnectionLost(), id="the connection broke"),
    ],
)
async def test_a_transient_error_delays_an_event(failure):
    cluster = Cluster(failure, failure)
    async with make_recorder(cluster) as events:
        boom(events)
    assert cluster.stored == [("boom", 1)]
    waits = [later - earlier for (_, earlier), (_, later) in itertools.pairwise(cluster.writes)]
    assert [0.25 <= waits[0] <= 0.5, 0.5 <= waits[1] <= 1] == [True, True]


async def test_what_happens_while_the_server_is_away_is_in_the_first_write():
    cluster = Cluster(UNAVAILABLE)
    async with make_recorder(cluster) as events:
        boom(events)
        await settle()
        for _ in range(10):
            boom(events)
    assert (cluster.stored, cluster.verbs) == ([("boom", 11)], ["create", "create"])


async def test_the_server_is_given_the_time_it_asks_for():
    cluster = Cluster(TOO_MANY)
    async with make_recorder(cluster, flush_timeout=60) as events:
        boom(events)
    assert [when for _, when in cluster.writes] == [0, 20]


async def test_even_a_very_busy_server_is_asked_again_within_half_a_minute():
    cluster = Cluster(refusal("TooManyRequests", retry_after=3600))
    async with make_recorder(cluster, flush_timeout=60) as events:
        boom(events)
    assert [when for _, when in cluster.writes] == [0, 30]


@pytest.mark.parametrize(
    ("failures", "why", "level"),
    [
        pytest.param([UNAVAILABLE] * 5, "unreachable", logging.WARNING, id="five tries failed"),
        pytest.param([TERMINATING], "namespace_gone", logging.DEBUG, id="the namespace is going"),
        pytest.param([NOT_FOUND], "namespace_gone", logging.DEBUG, id="the namespace is gone"),
        pytest.param([FORBIDDEN], "forbidden", logging.WARNING, id="we may not tell"),
        pytest.param([refusal("Invalid")], "rejected", logging.WARNING, id="it is no valid event"),
        pytest.param([errors.NotLeader()], "rejected", logging.WARNING, id="we lead no more"),
        pytest.param([ValueError("?")], "rejected", logging.ERROR, id="a mistake of ours"),
    ],
)
async def test_an_event_that_cannot_be_written_is_dropped(failures, why, level, caplog):
    caplog.set_level(logging.DEBUG, "mpi_operator.kube.events")
    registry, cluster = CollectorRegistry(), Cluster(*failures)
    async with make_recorder(cluster, metrics=Metrics(registry), flush_timeout=60) as events:
        boom(events, "lost")
        await asyncio.sleep(60)
        boom(events, "stored")
    assert cluster.stored == [("stored", 1)]
    assert registry.get_sample_value("events_dropped_total", {"reason": why}) == 1
    assert [line.levelno for line in caplog.records] == [level]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        pytest.param(Limits(burst=2), "rate_limited", id="an object that talks too much"),
        pytest.param(Limits(waiting=2), "overflow", id="too much at once"),
    ],
)
async def test_what_is_too_much_is_dropped_and_counted(limits, why):
    registry, cluster = CollectorRegistry(), Cluster()
    async with make_recorder(cluster, metrics=Metrics(registry), limits=limits) as events:
        for message in "abcde":
            boom(events, message)
    assert len(cluster.events) == 2
    assert registry.get_sample_value("events_dropped_total", {"reason": why}) == 3


async def test_closing_writes_what_waits():
    cluster = Cluster()
    async with make_recorder(cluster) as events:
        for number in range(100):
            boom(events, regarding=replace(JOB, uid=str(number)))
    assert len(cluster.events) == 100


async def test_closing_times_out(caplog):
    registry, cluster = CollectorRegistry(), Cluster(*[TOO_MANY] * 99)
    async with make_recorder(cluster, metrics=Metrics(registry), flush_timeout=5) as events:
        for message in "abc":
            boom(events, message)
    assert asyncio.get_running_loop().time() == 5
    assert registry.get_sample_value("events_dropped_total", {"reason": "closed"}) == 3
    assert len(caplog.records) == 1


async def test_closing_can_be_cancelled():
    async def use():
        async with make_recorder(Cluster(*[TOO_MANY] * 99)) as events:
            boom(events)

    before = asyncio.all_tasks()
    using = asyncio.create_task(use())
    await asyncio.sleep(1)
    using.cancel()
    await asyncio.wait({using})
    assert using.cancelled()
    assert asyncio.all_tasks() == before


async def test_nothing_is_noted_once_closed():
    registry, cluster = CollectorRegistry(), Cluster()
    async with make_recorder(cluster, metrics=Metrics(registry)) as events:
        pass
    boom(events)
    assert registry.get_sample_value("events_dropped_total", {"reason": "closed"}) == 1
