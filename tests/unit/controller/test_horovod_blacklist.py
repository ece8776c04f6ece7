"""Workers that are back, and that Horovod does not use."""

import shlex
from datetime import timedelta

import pytest

from mpi_operator.api import annotations
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.problems import ProblemReason
from mpi_operator.local.times import timestamp
from tests.support.observations import (
    NOW,
    PLAIN,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_worker,
    observed,
    started,
)
from tests.support.worlds import message_of, running_world

REASON = ProblemReason.HOST_BLACKLISTED
ELASTIC = "horovodrun -np 2 --min-np 1 --host-discovery-script /etc/mpi/discover_hosts.sh train"
FORGIVING = ELASTIC.replace("--min-np 1", "--blacklist-cooldown-range 10 300 --min-np 1")
V1 = {annotations.WRITTEN_IN: "v1"}


def launcher(command):
    container = {"name": "mpi", "image": "example.com/mpi:1", "command": shlex.split(command)}
    return {"template": {"spec": {"containers": [container]}}}


def comes_back(world, index):
    world.rest()
    world.worker_runs(index)
    world.rest()


@pytest.mark.parametrize("written_in", [{}, V1], ids=["v2beta1", "v1"])
@pytest.mark.parametrize("loss", ["worker_fails", "worker_vanishes", "worker_is_drained"])
def test_a_worker_that_is_back_is_reported_with_what_helps(loss, written_in):
    world = running_world(launcher=launcher(ELASTIC), annotations=written_in)
    getattr(world, loss)(1)
    world.rest()
    assert REASON not in world.events.reasons
    comes_back(world, 1)
    said = (
        "Worker pi-worker-1 came back but is probably unused: horovodrun needs "
        "--blacklist-cooldown-range 10 300 to use a host again after a rank failed on it"
    )
    assert world.events.messages[world.events.reasons.index(REASON)] == said
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert said in message_of(world, "Running")
    before = world.version
    world.restart()
    world.rest()
    assert world.version == before
    assert world.events.reasons.count(REASON) == 1


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(FORGIVING, id="Horovod forgives"),
        pytest.param(ELASTIC.replace("--min-np", "--blacklist-c 10 300 --min-np"), id="cut short"),
        pytest.param("horovodrun -np 2 --hostfile /etc/mpi/hostfile train", id="not elastic"),
        pytest.param("python elastic.py --hosts /etc/mpi/discover_hosts.sh", id="not Horovod"),
    ],
)
def test_nothing_is_reported_where_the_worker_is_used_again(command):
    world = running_world(launcher=launcher(command))
    world.worker_vanishes(1)
    comes_back(world, 1)
    assert REASON not in world.events.reasons


def test_a_job_that_grows_has_nothing_to_report():
    world = running_world(launcher=launcher(ELASTIC))
    world.scale(3)
    comes_back(world, 2)
    assert REASON not in world.events.reasons


def test_it_is_over_when_the_worker_leaves():
    world = running_world(3, launcher=launcher(ELASTIC))
    world.worker_vanishes(2)
    comes_back(world, 2)
    assert "pi-worker-2 came back but is probably unused" in message_of(world, "Running")
    world.scale(2)
    world.rest()
    world.pass_time(31)
    world.rest()
    assert message_of(world, "Running") == "MPIJob lab/pi is running."


def problems(worker, launcher_age=timedelta(minutes=5)):
    job = a_job(launcher=launcher(ELASTIC))
    pod = a_launcher_pod(job, containerStatuses=started(launcher_age.total_seconds()))
    workers = [a_worker(job, index, containerStatuses=[worker]) for index in range(2)]
    seen = observed(job, workers, launcher=a_launcher(job), launcher_pods=[pod])
    found = make_plan(seen, PLAIN, NOW).problems
    return [each.message for each in found if each.reason == REASON]


def restarted(seconds):
    ended = {"exitCode": 137, "finishedAt": timestamp(NOW - timedelta(seconds=seconds))}
    [now] = started(seconds - 1)
    return now | {"restartCount": 1, "lastState": {"terminated": ended}}


def test_workers_whose_container_was_restarted_are_reported_together():
    [message] = problems(restarted(60))
    assert message.startswith("Worker pi-worker-0 (and 1 more) came back but is probably unused")


def test_a_launcher_that_began_later_has_blacklisted_nothing():
    assert problems(restarted(60), launcher_age=timedelta(seconds=30)) == []


def test_a_container_that_was_not_restarted_has_failed_no_rank():
    assert problems(started(60)[0]) == []
