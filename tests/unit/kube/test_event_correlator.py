from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator.kube.event_correlator import (
    COMBINED,
    Drop,
    EventCorrelator,
    Limits,
    ObjectReference,
    Occurrence,
    Severity,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = ObjectReference("kubeflow.org/v2beta1", "MPIJob", "pi", "team", "uid-1", "7")


def happened(message="boom", reason="Failed", regarding=JOB, severity=Severity.WARNING):
    return Occurrence(regarding, severity, reason, message)


def after(seconds):
    return NOW + timedelta(seconds=seconds)


def write(correlator):
    """What a cluster that always answers would be written: (create or bump, count, message)."""
    writes = []
    while record := correlator.take():
        verb = "bump" if record.is_stored else "create"
        writes.append((verb, record.count, record.occurrence.message))
        record.stored_count = record.count
    return writes


def story(events, limits=None):
    """Everything that is written when each event is written before the next one happens."""
    correlator, writes = EventCorrelator(limits), []
    for seconds, event in events:
        correlator.add(event, after(seconds))
        writes += write(correlator)
    return writes


@pytest.mark.parametrize(
    ("events", "writes"),
    [
        pytest.param([(0, happened())], [("create", 1, "boom")], id="news are a new event"),
        pytest.param(
            [(0, happened()), (5, happened())],
            [("create", 1, "boom"), ("bump", 2, "boom")],
            id="the same again changes the event",
        ),
        pytest.param(
            [(0, happened()), (5, happened(regarding=replace(JOB, resource_version="8")))],
            [("create", 1, "boom"), ("bump", 2, "boom")],
            id="a new version of the object is the same object",
        ),
        pytest.param(
            [(0, happened()), (5, happened(regarding=replace(JOB, uid="uid-2")))],
            [("create", 1, "boom"), ("create", 1, "boom")],
            id="a new object of the same name is another one",
        ),
        pytest.param(
            [(0, happened()), (5, happened(severity=Severity.NORMAL))],
            [("create", 1, "boom"), ("create", 1, "boom")],
            id="another severity is another event",
        ),
        pytest.param(
            [(0, happened()), (5, happened(reason="Evicted"))],
            [("create", 1, "boom"), ("create", 1, "boom")],
            id="another reason is another event",
        ),
        pytest.param(
            [(0, happened("one")), (5, happened("two"))],
            [("create", 1, "one"), ("create", 1, "two")],
            id="another message is another event",
        ),
    ],
)
def test_what_is_written(events, writes):
    assert story(events) == writes


@pytest.mark.parametrize(
    ("seconds", "writes"),
    [
        pytest.param(
            [0, 0, 0, 0],
            [("create", 1, COMBINED + "2"), ("bump", 2, COMBINED + "3")],
            id="too many at once share one event, which shows the latest",
        ),
        pytest.param(
            [0, 599, 599, 600],
            [("create", 1, COMBINED + "2"), ("create", 1, "3")],
            id="after ten minutes the first one no longer counts",
        ),
        pytest.param(
            [0, 300, 600, 900],
            [("create", 1, "2"), ("create", 1, "3")],
            id="a slow trickle stays as it is",
        ),
    ],
)
def test_similar_events_beyond_two_are_combined(seconds, writes):
    events = [(when, happened(str(number))) for number, when in enumerate(seconds)]
    assert story(events, Limits(similar=2))[2:] == writes


def test_a_message_with_its_own_event_keeps_it_when_others_are_combined():
    events = [(0, happened(message)) for message in ("a", "b", "c", "a")]
    assert story(events, Limits(similar=2))[-1] == ("bump", 2, "a")


def test_by_default_ten_messages_stand_alone():
    events = [(0, happened(str(number))) for number in range(12)]
    combined = [message for _, _, message in story(events) if message.startswith(COMBINED)]
    assert combined == [COMBINED + "10", COMBINED + "11"]


def test_a_storm_while_the_first_one_waits_is_one_write():
    correlator = EventCorrelator()
    assert {correlator.add(happened(), after(second)) for second in range(1000)} == {None}
    assert write(correlator) == [("create", 1000, "boom")]


def test_a_storm_of_messages_is_eleven_writes():
    correlator = EventCorrelator()
    for number in range(1000):
        correlator.add(happened(str(number)), NOW)
    assert write(correlator)[10:] == [("create", 990, COMBINED + "999")]


def test_what_happens_during_a_write_is_written_next():
    correlator = EventCorrelator()
    correlator.add(happened(), NOW)
    record = correlator.take()
    assert record
    correlator.add(happened(), NOW)
    record.stored_count = 1
    assert write(correlator) == [("bump", 2, "boom")]


def test_the_budget_of_an_object_is_twenty_five_writes_and_one_every_five_minutes():
    every_minute = [(60 * minute, happened()) for minute in range(100)]
    in_vain = 100 - 25 - 99 // 5
    assert len(story(every_minute)) == 100 - in_vain


def test_what_exceeds_the_budget_is_still_counted():
    events = [(0, happened()) for _ in range(100)] + [(300, happened())]
    assert story(events)[-1] == ("bump", 101, "boom")


def test_what_exceeds_the_budget_is_said_to_be_dropped():
    correlator = EventCorrelator(Limits(burst=1))
    correlator.add(happened("one"), NOW)
    assert correlator.add(happened("two"), NOW) is Drop.RATE_LIMITED


def test_each_object_has_its_own_budget():
    other = replace(JOB, name="other", uid="uid-2")
    events = [(0, happened()), (0, happened(regarding=other))]
    assert len(story(events, Limits(burst=1))) == 2


def test_new_events_go_out_before_repeated_ones():
    correlator = EventCorrelator()
    correlator.add(happened("old"), NOW)
    write(correlator)
    correlator.add(happened("old"), NOW)
    correlator.add(happened("new"), NOW)
    assert write(correlator) == [("create", 1, "new"), ("bump", 2, "old")]


def test_when_too_many_wait_the_oldest_repeat_goes():
    correlator = EventCorrelator(Limits(waiting=2))
    for message in "ab":
        correlator.add(happened(message), NOW)
    write(correlator)
    assert [correlator.add(happened(message), NOW) for message in "abc"] == [
        None,
        None,
        Drop.OVERFLOW,
    ]
    assert write(correlator) == [("create", 1, "c"), ("bump", 2, "b")]


def test_when_only_new_events_wait_the_oldest_is_dropped():
    correlator = EventCorrelator(Limits(waiting=2))
    dropped = [correlator.add(happened(message), NOW) for message in "abc"]
    assert dropped == [None, None, Drop.OVERFLOW]
    assert write(correlator) == [("create", 1, "b"), ("create", 1, "c")]


def test_a_forgotten_event_is_created_again():
    events = [(0, happened(message)) for message in "abca"]
    assert story(events, Limits(remembered=2))[-1] == ("create", 1, "a")


def test_memory_does_not_grow_with_the_number_of_objects():
    correlator = EventCorrelator(Limits(remembered=10, waiting=10))
    for number in range(1000):
        correlator.add(happened(regarding=replace(JOB, uid=str(number))), NOW)
    remembered = (correlator._records, correlator._budgets, correlator._similar, correlator)
    assert [len(memory) for memory in remembered] == [10] * 4


def record_of(event, now=NOW):
    correlator = EventCorrelator()
    correlator.add(event, now)
    return correlator.take()


def test_the_whole_event():
    correlator = EventCorrelator()
    correlator.add(happened(), NOW)
    correlator.add(happened(), after(61))
    nanoseconds = int(NOW.timestamp()) * 10**9
    record = correlator.take()
    assert record
    assert record.to_manifest("mpi-operator", "mpi-operator-0") == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"pi.{nanoseconds:x}", "namespace": "team"},
        "involvedObject": {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "name": "pi",
            "namespace": "team",
            "uid": "uid-1",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "Failed",
        "message": "boom",
        "source": {"component": "mpi-operator"},
        "reportingComponent": "mpi-operator",
        "reportingInstance": "mpi-operator-0",
        "firstTimestamp": "2026-01-01T12:00:00Z",
        "lastTimestamp": "2026-01-01T12:01:01Z",
        "count": 2,
    }


def test_a_reference_is_read_from_a_manifest():
    metadata = {"name": "pi", "namespace": "team", "uid": "uid-1", "resourceVersion": "7"}
    manifest = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata}
    reference = ObjectReference.to(manifest)
    assert (reference, reference.resource_version) == (JOB, "7")


def test_events_about_cluster_wide_objects_live_in_the_default_namespace():
    record = record_of(happened(regarding=ObjectReference("v1", "Node", "node-1")))
    event = record.to_manifest("mpi-operator", "")
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        pytest.param("pi", "pi", id="a short name stays"),
        pytest.param("a.b-c.0", "a.b-c.0", id="so do dots and dashes"),
        pytest.param("x" * 253, "x" * 236, id="a long one is cut"),
        pytest.param("x" * 234 + "-.x", "x" * 234, id="and ends in a letter where it is cut"),
        pytest.param("system:node", "event", id="a name that events cannot have is left out"),
    ],
)
def test_the_name_of_an_event(name, stem):
    event_name = record_of(happened(regarding=replace(JOB, name=name))).name
    assert event_name.rpartition(".")[0] == stem
    assert len(event_name) <= 253


def test_names_differ_though_the_clock_stands_still_or_goes_back():
    correlator = EventCorrelator()
    for number in range(20):
        correlator.add(happened(str(number), reason=str(number)), after(-number // 2))
    names = set()
    while record := correlator.take():
        names.add(record.name)
    assert len(names) == 20


@pytest.mark.parametrize(
    ("message", "written"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="what fits stays"),
        pytest.param("x" * 1025, "x" * 1021 + "...", id="what does not is cut"),
        pytest.param("é" * 600, "é" * 510 + "...", id="the server counts bytes"),
        pytest.param("\ud800", "?", id="what is not text is replaced"),
    ],
)
def test_long_messages_are_cut(message, written):
    assert record_of(happened(message)).occurrence.message == written


def test_combined_messages_are_cut_as_well():
    limits = Limits(similar=0)
    assert len(story([(0, happened("x" * 1024))], limits)[0][2]) == 1024


def test_long_reasons_are_cut():
    assert len(record_of(happened(reason="x" * 200)).occurrence.reason) == 128
