"""The status is stored first, then come events and metrics."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from mpi_operator.api.types import (
    Condition,
    ConditionStatus,
    MPIJobStatus,
    ReplicaStatus,
    ReplicaStatuses,
)
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.controller.events import normal
from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.controller.problems import Problem
from mpi_operator.controller.publish import Publisher
from mpi_operator.kube import errors
from tests.support.faulty_client import refused
from tests.support.worlds import World

pytestmark = pytest.mark.looptime


def condition(kind, status="True"):
    return Condition(type=kind, status=ConditionStatus(status), reason=f"MPIJob{kind}")


CREATED = MPIJobStatus(conditions=(condition("Created"),))
RUNNING = MPIJobStatus(conditions=(condition("Created"), condition("Running")))


def counting(status, active):
    return replace(status, replica_statuses=ReplicaStatuses(worker=ReplicaStatus(active=active)))


class Desk:
    """A publisher for one job."""

    def __init__(self):
        self.world = World()
        self.client, self.events = self.world.client, self.world.events
        self.registry = CollectorRegistry()
        self.counts_changed = None
        self.publisher = Publisher(
            self.client.as_client,
            self.world.operator.caches,
            self.events.as_recorder,
            JobMetrics(self.registry),
        )

    @property
    def job(self):
        return self.world.job

    async def publish(self, status, problems=()):
        published = await self.publisher.publish(
            self.job, status, problems, self.counts_changed, self.world.now
        )
        self.counts_changed = published.counts_changed
        return published

    def counted(self, what):
        return self.registry.get_sample_value(f"mpi_operator_jobs_{what}_total")


async def test_a_status_is_stored_before_its_events():
    desk = Desk()
    await desk.publish(CREATED)
    assert desk.job.status == CREATED
    assert desk.events.reasons == ["MPIJobCreated"]
    assert desk.counted("created") == 1


async def test_a_status_that_is_stored_is_not_written_again():
    desk = Desk()
    await desk.publish(CREATED)
    await desk.publish(CREATED)
    assert desk.client.asked == ["replace status of MPIJob pi"]
    assert desk.events.reasons == ["MPIJobCreated"]


@pytest.mark.parametrize(
    "error",
    [refused(409), refused(404), refused(500), errors.ConnectionLost("no answer")],
    ids=lambda error: type(error).__name__,
)
async def test_a_status_that_is_not_stored_has_no_events(error):
    desk = Desk()
    desk.client.refuse("replace", error)
    with pytest.raises(type(error)):
        await desk.publish(CREATED)
    assert desk.events.reasons == []
    assert desk.counted("created") == 0


async def test_a_status_that_changed_meanwhile_is_not_overwritten():
    desk = Desk()
    known = desk.job
    desk.world.cluster.patch(MPI_JOBS, desk.world.key, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(errors.Conflict):
        await desk.publisher.publish(known, CREATED, (), None, desk.world.now)
    assert desk.events.reasons == []


async def test_a_refused_status_is_reported_and_not_retried_at_once():
    desk = Desk()
    desk.client.refuse("replace", refused(422, "spec.slotsPerWorker: Invalid value"))
    wait = (await desk.publish(CREATED)).requeue_after
    assert wait is None or wait >= timedelta(minutes=1)
    assert desk.events.reasons == ["StatusRefused"]
    assert desk.counted("created") == 0


async def test_counts_are_delayed_without_a_write_or_an_event():
    desk = Desk()
    await desk.publish(CREATED)
    desk.world.pass_time(60)
    assert (await desk.publish(counting(CREATED, 1))).requeue_after == timedelta(seconds=5)
    desk.world.pass_time(4.5)
    assert (await desk.publish(counting(CREATED, 1))).requeue_after == timedelta(seconds=0.5)
    assert desk.job.status == CREATED
    assert desk.events.reasons == ["MPIJobCreated"]
    desk.world.pass_time(0.5)
    assert (await desk.publish(counting(CREATED, 1))).is_stored
    assert desk.job.status == counting(CREATED, 1)


async def test_counts_that_keep_changing_are_written_in_the_end():
    desk = Desk()
    await desk.publish(CREATED)
    written = []
    for active in range(1, 24):
        if (await desk.publish(counting(CREATED, active))).is_stored:
            written.append(active)
        desk.world.pass_time(0.5)
    assert written == [11, 22]


async def test_counts_that_change_back_restart_the_wait():
    desk = Desk()
    await desk.publish(CREATED)
    await desk.publish(counting(CREATED, 1))
    await desk.publish(CREATED)
    desk.world.pass_time(60)
    assert (await desk.publish(counting(CREATED, 1))).requeue_after == timedelta(seconds=5)


async def test_a_change_of_more_than_counts_does_not_wait():
    desk = Desk()
    await desk.publish(CREATED)
    assert (await desk.publish(counting(RUNNING, 1))).is_stored
    assert desk.job.status.conditions == RUNNING.conditions


async def test_our_own_write_is_recognized_when_the_watch_delivers_it():
    desk = Desk()
    published = await desk.publish(CREATED)
    assert published.version == desk.world.manifest["metadata"]["resourceVersion"]


async def test_the_end_is_counted_once():
    desk = Desk()
    ended = MPIJobStatus(conditions=(*CREATED.conditions, condition("Succeeded")))
    await desk.publish(ended)
    await desk.publish(counting(ended, 1))
    assert (desk.counted("successful"), desk.counted("failed")) == (1, 0)
    assert desk.events.reasons == ["MPIJobCreated", "MPIJobSucceeded"]


async def test_a_problem_becomes_a_warning():
    desk = Desk()
    quota = Problem("QuotaExceeded", "exceeded quota")
    waits = replace(condition("Running", "False"), reason=quota.reason)
    await desk.publish(MPIJobStatus(conditions=(*CREATED.conditions, waits)), [quota])
    assert desk.events.reasons == ["MPIJobCreated", "QuotaExceeded"]


async def test_events_are_sent():
    desk = Desk()
    desk.publisher.record(desk.job, [normal("SomethingHappened", "really")])
    assert desk.events.reasons == ["SomethingHappened"]
