"""What a real API server makes of our events."""

from dataclasses import replace

import pytest

from mpi_operator.kube.client import Selector
from mpi_operator.kube.event_correlator import COMBINED
from mpi_operator.kube.events import EventRecorder, ObjectReference, Severity
from mpi_operator.kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES
from tests.support.waiting import until

pytestmark = pytest.mark.api


async def make_config_map(client, namespace, name="subject"):
    manifest = {"metadata": {"name": name, "namespace": namespace}}
    created = await client.create(CONFIG_MAPS, manifest)
    return ObjectReference.to({"apiVersion": "v1", "kind": "ConfigMap"} | created)


async def events_about(client, regarding, namespace=None):
    """The events of an object, found as `kubectl describe` finds them."""
    listing = await client.list(
        EVENTS,
        regarding.namespace if namespace is None else namespace,
        Selector(fields=f"involvedObject.uid={regarding.uid},involvedObject.name={regarding.name}"),
    )
    return listing.items


def recorder(client):
    return EventRecorder(client, "mpi-operator", instance="mpi-operator-0")


async def test_fifty_times_the_same_is_one_event(client, namespace):
    subject = await make_config_map(client, namespace)
    async with recorder(client) as events:
        for _ in range(50):
            events.record(subject, Severity.WARNING, "Failed", "boom")
    (event,) = await events_about(client, subject)
    assert (event["count"], event["type"], event["reason"]) == (50, "Warning", "Failed")
    assert event["source"] == {"component": "mpi-operator"}
    assert event["reportingComponent"] == "mpi-operator"
    assert event["involvedObject"]["resourceVersion"] == subject.resource_version


async def test_forty_messages_are_eleven_events(client, namespace):
    subject = await make_config_map(client, namespace)
    async with recorder(client) as events:
        for number in range(40):
            events.record(subject, Severity.NORMAL, "Progress", f"step {number}")
    counts = {event["message"]: event["count"] for event in await events_about(client, subject)}
    alone = {f"step {number}": 1 for number in range(10)}
    assert counts == alone | {f"{COMBINED}step 39": 30}


async def record_until_told(client, events, subject, count):
    """Record the same thing once more, and wait until the server says how often it happened."""
    events.record(subject, Severity.NORMAL, "Created", "there it is")

    async def is_told():
        return [event["count"] for event in await events_about(client, subject)] == [count]

    await until(is_told)


async def test_the_same_later_changes_the_event(client, namespace):
    subject = await make_config_map(client, namespace)
    async with recorder(client) as events:
        for count in (1, 2, 3):
            await record_until_told(client, events, subject, count)


async def test_a_deleted_event_is_created_anew(client, namespace):
    subject = await make_config_map(client, namespace)
    async with recorder(client) as events:
        await record_until_told(client, events, subject, 1)
        await client.delete_collection(EVENTS, namespace)
        await record_until_told(client, events, subject, 2)


async def test_the_longest_names_and_messages_are_accepted(client, namespace):
    subject = await make_config_map(client, namespace, "x" * 253)
    async with recorder(client) as events:
        events.record(subject, Severity.WARNING, "R" * 500, "é" * 5000)
    (event,) = await events_about(client, subject)
    assert len(event["message"].encode()) <= 1024


async def test_events_about_a_cluster_wide_object_are_stored(client, namespace):
    found = await client.get(NAMESPACES, namespace)
    subject = ObjectReference.to({"apiVersion": "v1", "kind": "Namespace"} | found)
    async with recorder(client) as events:
        events.record(subject, Severity.NORMAL, "Seen", "a namespace")
    (event,) = await events_about(client, subject, "default")
    assert event["message"] == "a namespace"


async def test_a_missing_namespace_is_not_an_error(client, namespace, caplog):
    subject = await make_config_map(client, namespace)
    async with recorder(client) as events:
        events.record(replace(subject, namespace="gone"), Severity.NORMAL, "Lost", "no namespace")
        events.record(subject, Severity.NORMAL, "Kept", "a namespace")
    assert [event["reason"] for event in await events_about(client, subject)] == ["Kept"]
    assert not caplog.records
