"""What is observed of a job in the cluster."""

import pytest

from mpi_operator.controller.cached_types import MPI_JOBS, PRIORITY_CLASSES
from mpi_operator.controller.job_state import JobState
from mpi_operator.controller.observed import Observed, Taken
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.status import status_of
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES
from tests.support.observations import (
    NOW,
    PLAIN,
    PLUGINS,
    a_job,
    a_manifest,
    a_worker,
    observed,
    terminated,
    unschedulable,
)
from tests.support.worlds import World

OURS = {
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-name": "pi",
}
WORKER = OURS | {"training.kubeflow.org/job-role": "worker"}


def a_foreign_object(name, labels=OURS, owner="uid-of-another-pi"):
    # Of a kind that the cluster does not know, so its garbage collector leaves it alone.
    kind = {"apiVersion": "example.com/v1", "kind": "Other"}
    owners = [{**kind, "name": "pi", "uid": owner, "controller": True}]
    metadata = {"name": name, "namespace": "lab", "labels": labels, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {}}


def seen_in(world):
    seen: Observed | None = world.observe()
    assert seen is not None
    return seen


def test_there_is_no_such_job():
    world = World()
    world.cluster.remove(MPI_JOBS, world.key)
    assert world.observe() is None


def test_a_job_that_is_being_deleted_is_left_to_kubernetes():
    world = World()
    world.cluster.patch(MPI_JOBS, world.key, {"metadata": {"finalizers": ["example.com/hold"]}})
    world.cluster.delete(MPI_JOBS, world.key)
    assert world.observe() is None


@pytest.mark.parametrize(
    ("manager", "is_ours"),
    [
        (None, True),
        ("", True),
        ("kubeflow.org/mpi-operator", True),
        ("kueue.x-k8s.io/multikueue", False),
        ("example.com/other", False),
    ],
)
def test_which_manager_makes_a_job_ours(manager, is_ours):
    world = World(rules=False, policy={"managedBy": manager})
    assert (world.observe() is not None) == is_ours


@pytest.mark.parametrize("spec", [None, [], "spec", {"runPolicy": []}, {"runPolicy": None}, {}])
def test_an_invalid_job_is_observed_with_its_validation_errors(spec):
    world = World(rules=False)
    world.cluster.replace(MPI_JOBS, world.manifest | {"spec": spec})
    seen = seen_in(world)
    assert seen.validation_errors
    assert make_plan(seen, PLAIN, NOW).actions == ()
    assert status_of(seen, [], NOW).conditions


@pytest.mark.parametrize("status", [None, [], {"conditions": "none"}, {"startTime": "soon"}])
def test_a_garbage_status_stops_no_job(status):
    world = World()
    world.cluster.set_status(MPI_JOBS, world.key, status)
    assert seen_in(world).validation_errors == ""


def test_the_objects_of_a_job_are_observed():
    world = World(settings=PLUGINS).settle()
    world.all_workers_run()
    world.launcher_runs()
    seen = seen_in(world)
    assert seen.service
    assert seen.config_map
    assert seen.pod_group
    assert seen.launcher
    assert [pod.metadata.key for pod in seen.launcher_pods] == [world.launcher_pod]
    assert sorted(seen.workers) == [0, 1]
    assert seen.taken == ()


@pytest.mark.parametrize(
    ("resource", "name", "labels"),
    [
        (SERVICES, "pi", OURS),
        (CONFIG_MAPS, "pi-config", OURS),
        (JOBS, "pi-launcher", OURS),
        (PODS, "pi-worker-1", WORKER),
    ],
)
def test_a_name_that_another_owner_has_is_taken(resource, name, labels):
    world = World()
    world.cluster.create(resource, a_foreign_object(name, labels))
    assert seen_in(world).taken == (Taken(resource.kind, name),)


@pytest.mark.parametrize("name", ["pi-worker-2", "pi-worker-x", "other"])
def test_names_that_the_job_does_not_need_are_not_taken(name):
    world = World(2)
    world.cluster.create(PODS, a_foreign_object(name, WORKER))
    seen = seen_in(world)
    assert seen.taken == ()
    assert seen.worker_pods == ()


def test_pods_of_another_launcher_are_not_ours():
    world = World().settle()
    world.cluster.create(
        PODS, a_foreign_object("pi-launcher-x", OURS, owner="uid-of-another-launcher")
    )
    assert seen_in(world).launcher_pods == ()


def test_priorities_are_known_where_gangs_are():
    world = World(settings=PLUGINS)
    world.cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    assert seen_in(world).priorities == {"high": 1000}


def test_another_job_of_the_same_name_is_not_confused_with_it():
    world = World().settle()
    world.launcher_runs()
    assert seen_in(world).state.has_launcher_pod
    world.cluster.remove(MPI_JOBS, world.key)
    world.cluster.create(MPI_JOBS, a_manifest())
    assert seen_in(world).state == JobState(world.job.metadata.uid)


def test_when_hosts_changed():
    world = World(3).settle()
    world.worker_runs(0)
    first = seen_in(world).state.host_change
    world.pass_time(0.3)
    same = seen_in(world).state.host_change
    world.worker_runs(1)
    second = seen_in(world).state.host_change
    assert first == same
    assert (second.first, second.last) == (NOW, world.now)


def test_since_when_a_launcher_has_done_its_work():
    world = World().settle()
    world.launcher_runs()
    assert seen_in(world).state.launcher_done_since is None
    world.launcher_pod_succeeds()
    first = seen_in(world).state.launcher_done_since
    world.pass_time(0.3)
    assert (first, seen_in(world).state.launcher_done_since) == (NOW, NOW)


def test_a_correct_host_list_has_no_pending_change():
    world = World(2).settle()
    world.all_workers_run()
    world.settle()
    assert seen_in(world).state.host_change is None


# --- order ------------------------------------------------------------------------------------


def test_the_order_of_pods_in_the_cache_does_not_matter():
    job = a_job(3)
    pods = [
        a_worker(job, 0, "Pending", conditions=unschedulable()),
        a_worker(job, 1, "Failed", containerStatuses=terminated(1)),
        a_worker(job, 2, "Pending", conditions=unschedulable("another reason")),
    ]
    one, other = observed(job, pods), observed(job, reversed(pods))
    assert make_plan(one, PLAIN, NOW) == make_plan(other, PLAIN, NOW)


def test_lost_workers_are_listed_in_order():
    job = a_job(3)
    pods = [a_worker(job, index, deleted=NOW - NOW.replace(hour=11)) for index in range(3)]
    one, other = (
        make_plan(observed(job, each, hosts=()), PLAIN, NOW) for each in (pods, pods[::-1])
    )
    assert one.problems == other.problems
