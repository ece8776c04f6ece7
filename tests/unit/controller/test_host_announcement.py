"""How a running launcher learns about a changed list of hosts."""

import json
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from mpi_operator.api import annotations
from mpi_operator.controller.host_announcement import stored_change
from mpi_operator.controller.leaving_workers import remaining_times, stored_departures
from mpi_operator.controller.replacement import stored_counts
from mpi_operator.kube import errors
from mpi_operator.kube.resources import PODS, ROLES, Key
from tests.support.faulty_client import refused
from tests.support.observations import (
    NOW,
    VOLCANO,
    a_config_map,
    a_job,
    a_launcher_pod,
    a_worker,
    observed,
)
from tests.support.worlds import World, running_world

CHANGED = annotations.HOSTS_CHANGED
ANNOUNCED = annotations.HOSTS_ANNOUNCED
LIST = "patch ConfigMap pi-config"
COMMAND = ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "train"]
CONTAINER = {"name": "mpi", "image": "example.com/mpi:1", "command": COMMAND}
HOROVOD = {"template": {"spec": {"containers": [CONTAINER]}}}


def notes(pod):
    return pod["metadata"].get("annotations", {})


def announced(world):
    [pod] = world.launcher_pods
    return notes(pod).get(ANNOUNCED)


def changed(world):
    return notes(world.config_map).get(CHANGED)


def running(world):
    """The workers that are not being deleted."""
    return {
        pod["metadata"]["name"]
        for pod in world.cluster.all(PODS)
        if "worker" in pod["metadata"]["name"] and "deletionTimestamp" not in pod["metadata"]
    }


def mark(world, index, cost):
    note = {"metadata": {"annotations": {annotations.POD_DELETION_COST: str(cost)}}}
    world.cluster.patch(PODS, Key("lab", f"pi-worker-{index}"), note)


# --- jobs that are not scaled pay nothing ---------------------------------------------------------


def test_the_first_list_is_not_announced():
    world = World(2).settle()
    world.launcher_runs()
    world.worker_runs(0)
    world.rest()
    world.worker_runs(1)
    world.rest()
    assert world.hosts == {0, 1}
    assert (changed(world), announced(world)) == (None, None)


def test_the_first_list_is_announced_to_a_launcher_that_reads_it():
    world = World(2, launcher=HOROVOD).settle()
    world.launcher_runs()
    world.rest()
    world.all_workers_run()
    world.rest()
    assert changed(world)
    assert announced(world) == changed(world)


def test_a_launcher_that_waits_for_its_workers_has_the_whole_list_from_the_start():
    world = World(2, launcher=HOROVOD, launcherCreationPolicy="WaitForWorkersReady").settle()
    world.all_workers_run()
    world.settle()
    world.launcher_runs()
    world.rest()
    assert (changed(world), announced(world)) == (None, None)


def test_scaling_to_the_same_size_writes_nothing():
    world = running_world()
    world.rest()
    before = world.version
    world.scale(2)
    world.rest()
    assert world.version == before


def test_a_resumed_job_starts_over():
    world = running_world()
    world.scale(1)
    world.rest()
    world.suspend()
    world.rest()
    world.resume()
    world.rest()
    world.all_workers_run()
    world.launcher_runs()
    world.rest()
    assert (changed(world), announced(world)) == (None, None)


# --- jobs that are scaled -------------------------------------------------------------------------


def test_the_list_is_written_then_announced_and_the_worker_leaves_after_that():
    world = running_world(3)
    world.rest()
    world.scale(2)
    requests, wait = world.reconcile()
    told = f"patch Pod {world.launcher_pod.name}"
    assert [each for each in requests if each.startswith("patch")] == [LIST, told]
    assert wait == pytest.approx(5)
    assert world.hosts == {0, 1}
    assert announced(world) == changed(world)
    assert len(world.pods) == 3

    world.pass_time(4.9)
    world.settle()
    assert len(world.pods) == 3
    world.pass_time(0.2)
    world.rest()
    assert set(world.pods) == {"pi-worker-0", "pi-worker-1"}


def test_the_group_and_the_permission_follow_before_the_list():
    by_exec = {annotations.TRANSPORT: annotations.EXEC}
    world = World(2, settings=VOLCANO, annotations=by_exec).start()
    world.scale(3)
    requests, _ = world.reconcile()
    group, role, hosts = (
        next(at for at, each in enumerate(requests) if words in each)
        for words in ("PodGroup pi", "Role pi-launcher", LIST)
    )
    assert max(group, role) < hosts, requests


def test_a_worker_that_joins_is_announced():
    world = running_world()
    world.rest()
    world.scale(3)
    world.rest()
    before = announced(world)
    world.pass_time(2)
    world.worker_runs(2)
    world.rest()
    assert world.hosts == {0, 1, 2}
    assert announced(world) == changed(world) > before


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("30", 30), ("1m", 60), ("soon", 5)])
def test_a_job_chooses_how_long_workers_that_leave_still_run(text, seconds):
    world = running_world(annotations={annotations.SCALE_DOWN_DELAY: text})
    world.scale(1)
    world.settle()
    for _ in range(seconds):
        assert len(world.pods) == 2
        world.pass_time(1)
        world.settle()
    world.rest()
    assert set(world.pods) == {"pi-worker-0"}


CHANGES = [
    pytest.param(lambda world, time: world.scale(3 - time), id="others leave"),
    pytest.param(lambda world, time: world.scale(3 + time % 2), id="one joins and leaves"),
    pytest.param(lambda world, _: world.worker_vanishes(0), id="one is lost again and again"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_worker_leaves_in_time_whatever_else_changes(change):
    world = running_world(5, annotations={annotations.SCALE_DOWN_DELAY: "10"})
    world.scale(3)
    world.settle()
    for time in (1, 2):
        world.pass_time(4)
        change(world, time)
        world.settle()
        world.worker_runs(0)
        world.restart()
    world.pass_time(1.9)
    world.settle()
    assert "pi-worker-4" in running(world)
    world.pass_time(0.2)
    world.settle()
    assert "pi-worker-4" not in running(world)


def test_workers_leave_one_by_one_while_the_list_keeps_changing():
    world = running_world(8, annotations={annotations.SCALE_DOWN_DELAY: "1m"})
    for size in range(7, 1, -1):
        world.scale(size)
        world.settle()
        world.pass_time(20)
        world.settle()
        # Each has a minute, in which two more are told to leave.
        assert len(running(world)) == min(size + 2, 8)
        world.restart()


def test_every_worker_has_all_of_its_delay():
    world = running_world(3, annotations={annotations.SCALE_DOWN_DELAY: "10"})
    world.scale(2)
    world.settle()
    world.pass_time(9)
    world.scale(1)
    world.settle()
    left = []
    for second in range(9, 20):
        world.settle()
        left.append((second, len(running(world))))
        world.pass_time(1)
    assert left == [(9, 3), *((second, 2) for second in range(10, 19)), (19, 1)]


def test_a_worker_of_a_launcher_that_cannot_be_told_leaves_though_the_list_changes():
    world = running_world(4)
    world.client.refuse("patch Pod", refused(403))
    for seconds in range(0, 45, 5):
        world.scale(3 if seconds % 10 else 2)
        world.reconcile()
        world.pass_time(5)
    world.reconcile()
    assert "pi-worker-3" not in running(world)


def test_only_a_list_that_changes_while_workers_leave_stores_when_they_do():
    world = running_world(4)
    world.scale(3)
    world.settle()
    assert annotations.WORKERS_LEAVING not in notes(world.config_map)
    before = announced(world)
    world.pass_time(1)
    world.scale(2)
    world.settle()
    departures = json.loads(notes(world.config_map)[annotations.WORKERS_LEAVING])
    assert list(departures) == ["3"]
    assert datetime.fromisoformat(departures["3"]) == datetime.fromisoformat(before)


def test_a_worker_that_came_back_and_leaves_again_has_a_new_delay():
    world = running_world(3)
    for size in (2, 1, 3, 2):
        world.scale(size)
        world.settle()
        world.pass_time(2)
    world.settle()
    assert len(running(world)) == 3


@pytest.mark.parametrize("text", ["", "soon", "[]", '{"x": 1}', '{"2": "2026-03-01T12:00:00"}'])
def test_departures_that_are_none_are_ignored(text):
    stored = a_config_map(a_job())
    note = {annotations.WORKERS_LEAVING: text}
    stored = replace(stored, metadata=replace(stored.metadata, annotations=note))
    assert stored_departures(stored) == {}


def test_a_worker_that_is_wanted_again_in_time_stays():
    world = running_world()
    before = world.cluster.get(PODS, Key("lab", "pi-worker-1"))["metadata"]["uid"]
    world.scale(1)
    world.settle()
    world.pass_time(2)
    world.scale(2)
    world.rest()
    assert world.hosts == {0, 1}
    assert world.cluster.get(PODS, Key("lab", "pi-worker-1"))["metadata"]["uid"] == before


def test_workers_leave_at_once_where_no_launcher_runs():
    world = World(2).settle()
    world.all_workers_run()
    world.settle()
    world.scale(1)
    world.settle()
    world.kubernetes_acts()
    assert set(world.pods) == {"pi-worker-0"}


def test_an_operator_that_died_before_it_announced_the_list_does_so_later():
    world = running_world()
    world.rest()
    world.scale(1)
    world.client.refuse("patch Pod", errors.ConnectionLost("dead"))
    with pytest.raises(errors.ConnectionLost):
        world.reconcile()
    assert changed(world)
    assert announced(world) is None
    world.client.relent()
    world.restart()
    world.pass_time(1)
    world.reconcile()
    assert announced(world) > changed(world)
    assert len(world.pods) == 2
    world.rest()
    assert len(world.pods) == 1


@pytest.mark.parametrize("code", [403, 404, 409, 422])
def test_a_launcher_that_cannot_be_told_holds_up_nothing(code):
    world = running_world()
    world.scale(1)
    world.client.refuse("patch Pod", refused(code))
    for _ in range(10):
        world.reconcile()
        world.pass_time(5)
    world.kubernetes_acts()
    assert set(world.pods) == {"pi-worker-0"}
    assert world.conditions["Running"] == "True MPIJobRunning"


# --- which workers leave --------------------------------------------------------------------------


def test_the_workers_that_are_cheapest_to_lose_leave_and_the_job_remembers():
    world = running_world(3, annotations={annotations.TRANSPORT: annotations.EXEC})
    mark(world, 1, -1)
    world.scale(2)
    world.rest()
    kept = ["pi-worker-0", "pi-worker-2"]
    assert list(world.pods) == kept
    assert world.hosts == {0, 2}
    assert world.config_map["data"]["hostfile"].splitlines() == [f"{each} slots=1" for each in kept]
    [rule] = world.cluster.get(ROLES, Key("lab", "pi-launcher"))["rules"]
    assert rule["resourceNames"] == kept
    world.restart()
    before = world.version
    world.rest()
    assert world.version == before


def test_a_gap_is_filled_when_the_job_grows():
    world = running_world(3)
    mark(world, 0, -1)
    world.scale(2)
    world.rest()
    world.scale(3)
    world.rest()
    world.all_workers_run()
    world.rest()
    assert world.hosts == {0, 1, 2}
    assert not stored_counts_of(world)


def test_a_lost_worker_behind_a_gap_is_replaced():
    world = running_world(3)
    mark(world, 0, -1)
    world.scale(2)
    world.rest()
    world.worker_vanishes(2)
    world.rest()
    assert list(world.pods) == ["pi-worker-1", "pi-worker-2"]
    assert set(stored_counts_of(world)) == {2}


def test_a_job_that_is_resumed_has_no_gaps():
    world = running_world(3)
    mark(world, 0, -1)
    world.scale(2)
    world.rest()
    world.suspend()
    world.rest()
    world.resume()
    world.rest()
    assert list(world.pods) == ["pi-worker-0", "pi-worker-1"]


# --- what others wrote ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "yesterday", "9999-12-31T23:59:59Z", "2026-03-01T12:00:00"])
def test_a_time_that_is_none_is_ignored(text):
    stored = a_config_map(a_job())
    stored = replace(stored, metadata=replace(stored.metadata, annotations={CHANGED: text}))
    assert stored_change(stored) is None


def test_a_wrong_clock_does_not_keep_workers_for_long():
    job = a_job()
    pod = a_launcher_pod(job)
    tomorrow = NOW + timedelta(days=1)
    told = replace(pod.metadata, annotations={ANNOUNCED: tomorrow.isoformat()})
    surplus = (a_worker(job, 5),)
    seen = observed(job, launcher_pods=(replace(pod, metadata=told),), worker_pods=surplus)
    assert remaining_times(seen, tomorrow, {}, NOW) == {}


@pytest.mark.parametrize("text", ["", "many", "1.5", "99999999999", "²"])
def test_a_cost_that_is_none_is_ignored(text):
    assert annotations.deletion_cost({annotations.POD_DELETION_COST: text}) == 0


def stored_counts_of(world):
    return stored_counts(world.observe().config_map)
