"""Whole jobs: what happens to them, and the state of the cluster after it."""

import pytest

from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube.resources import JOBS, PODS, SERVICES, Key
from tests.support.observations import VOLCANO
from tests.support.worlds import World, message_of, running_world

LAUNCHER = (JOBS, "pi-launcher")


def test_success():
    world = running_world(policy={"cleanPodPolicy": "Running"})
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert world.hosts == {0, 1}
    world.launcher_completes()
    world.rest()
    assert world.conditions == {
        "Created": "True MPIJobCreated",
        "Running": "False MPIJobRunning",
        "Succeeded": "True MPIJobSucceeded",
    }
    assert world.pods == {}
    assert world.launcher is not None


def test_only_the_last_failed_try_ends_the_job():
    world = running_world(policy={"cleanPodPolicy": "All"})
    world.launcher_pod_fails()
    world.rest()
    assert world.manifest["status"]["replicaStatuses"]["Launcher"]["failed"] == 1
    assert world.conditions["Running"] == "True MPIJobRunning"
    world.launcher_runs()
    world.launcher_fails()
    world.rest()
    assert world.conditions["Failed"] == "True BackoffLimitExceeded"
    assert world.pods == {}


def test_the_launcher_waits_for_workers_that_are_ready():
    world = World(2, launcherCreationPolicy="WaitForWorkersReady").settle()
    world.worker_runs(0)
    world.worker_runs(1, ready=False)
    world.rest()
    assert world.launcher is None
    assert world.job.status.replica_statuses.launcher is None
    world.worker_runs(1)
    world.settle()
    assert world.launcher is not None


def test_a_resumed_launcher_waits_for_workers_that_are_ready():
    policy = {"suspend": True}
    world = World(2, policy=policy, launcherCreationPolicy="WaitForWorkersReady").settle()
    world.resume()
    world.rest()
    assert world.launcher["spec"]["suspend"] is True
    world.all_workers_run()
    world.settle()
    assert world.launcher["spec"]["suspend"] is False


def test_suspended_from_the_start_and_resumed():
    world = World(policy={"suspend": True}).settle()
    assert world.pods == {}
    assert world.job.status.start_time is None
    world.pass_time(60)
    world.resume()
    world.settle()
    assert sorted(world.pods) == ["pi-worker-0", "pi-worker-1"]
    assert world.job.status.start_time == world.now
    assert world.conditions["Suspended"] == "False MPIJobResumed"


def test_suspended_while_it_runs_and_resumed():
    world = running_world()
    world.suspend()
    world.rest()
    assert world.pods == {}
    assert world.hosts == frozenset()
    assert world.conditions["Running"] == "False MPIJobSuspended"
    world.pass_time(60)
    world.resume()
    world.rest()
    world.all_workers_run()
    world.launcher_runs()
    world.settle()
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert world.launcher["spec"]["suspend"] is False
    assert "WorkerReplaced" not in world.events.reasons  # they were suspended, not lost


def test_a_quick_resume_waits_for_the_pods_of_the_last_run_to_go():
    world = running_world()
    world.suspend()
    world.settle()
    world.resume()
    world.settle()
    assert world.launcher["spec"]["suspend"] is True
    world.kubernetes_acts()
    world.settle()
    assert world.pods == {"pi-worker-0": "Pending", "pi-worker-1": "Pending"}
    assert world.launcher["spec"]["suspend"] is False


def test_a_change_during_suspension_reaches_the_launcher():
    world = World(policy={"suspend": True}).settle()
    world.cluster.patch(MPI_JOBS, world.key, launcher_template({"queue": "fast"}))
    world.resume()
    world.settle()
    assert world.launcher["spec"]["template"]["spec"]["nodeSelector"] == {"queue": "fast"}


def launcher_template(node_selector):
    template = {"spec": {"nodeSelector": node_selector}}
    return {"spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}}}}


@pytest.mark.parametrize("launcher_works", [False, True])
def test_an_elastic_job(launcher_works):
    world = running_world(2, runLauncherAsWorker=launcher_works)
    world.scale(4)
    world.settle()
    world.all_workers_run()
    world.rest()
    assert world.hosts == {0, 1, 2, 3}
    world.scale(2)
    world.rest()
    assert sorted(world.pods) == ["pi-worker-0", "pi-worker-1"]
    assert world.hosts == {0, 1}
    assert "WorkerReplaced" not in world.events.reasons
    assert world.created.count((PODS, "pi-worker-1")) == 1


@pytest.mark.parametrize("fate", ["worker_fails", "worker_is_evicted", "worker_vanishes"])
def test_a_worker_that_is_lost_comes_back(fate):
    world = running_world()
    getattr(world, fate)(1)
    world.rest()
    assert world.pods == {"pi-worker-0": "Running", "pi-worker-1": "Pending"}
    assert world.hosts == {0}
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert world.events.reasons.count("WorkerReplaced") == 1
    world.worker_runs(1)
    world.rest()
    assert world.hosts == {0, 1}


def test_a_worker_that_is_lost_repeatedly_reaches_its_replacement_limit():
    world = running_world(policy={"backoffLimit": 2})
    for _ in range(5):
        world.worker_fails(1)
        world.rest()
        world.worker_runs(1)
        world.rest()
    assert world.pods["pi-worker-1"] == "Failed"
    assert "reached its replacement limit" in message_of(world, "Running")
    assert "Failed" not in world.conditions  # it is up to the launcher


def test_a_worker_at_its_replacement_limit_before_the_launcher_starts_fails_the_job():
    policy = {"backoffLimit": 0}
    world = World(2, policy=policy, launcherCreationPolicy="WaitForWorkersReady").settle()
    world.worker_is_evicted(1)
    world.rest()
    assert world.conditions["Failed"] == "True MPIJobEvicted"
    assert LAUNCHER not in world.created


def test_a_launcher_is_deleted_after_its_ttl():
    world = running_world(policy={"ttlSecondsAfterFinished": 100})
    world.pass_time(1)
    world.launcher_completes()
    world.settle()
    world.pass_time(99)
    assert world.settle().launcher is not None
    world.pass_time(1)
    assert world.settle().launcher is None
    assert world.rest().created.count(LAUNCHER) == 1


def test_a_job_that_is_deleted_after_its_ttl():
    annotations = {"mpi-operator.kubeflow.org/ttl-deletes-job": "true"}
    world = running_world(policy={"ttlSecondsAfterFinished": 0}, annotations=annotations)
    world.launcher_completes()
    world.rest()
    assert world.objects() == {}


def test_a_launcher_that_was_deleted_after_the_end_is_not_run_again():
    world = running_world()
    world.launcher_completes()
    world.settle()
    world.cluster.remove(JOBS, Key("lab", "pi-launcher"))
    world.restart()
    world.rest()
    assert world.created.count(LAUNCHER) == 1


def test_a_name_that_is_taken_and_then_freed():
    world = World()
    ours = {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }
    foreign = {"metadata": {"name": "pi", "namespace": "lab", "labels": ours}, "spec": {}}
    world.cluster.create(SERVICES, foreign)
    world.settle()
    assert world.conditions["Running"] == "False ErrResourceExists"
    assert world.pods == {}
    world.cluster.remove(SERVICES, Key("lab", "pi"))
    world.settle()
    assert world.conditions["Running"] == "False MPIJobStarting"
    assert len(world.pods) == 2


def test_a_pod_group_follows_the_job():
    world = World(2, settings=VOLCANO, launcherCreationPolicy="WaitForWorkersReady")
    assert members(world.settle()) == 2
    world.all_workers_run()
    assert members(world.settle()) == 3
    world.suspend()
    assert members(world.rest()) is None
    world.resume()
    assert members(world.settle()) == 2


def members(world):
    seen = world.observe()
    return seen.pod_group.spec["minMember"] if seen.pod_group else None


def test_hosts_that_come_one_by_one_are_written_together():
    world = World(20).settle()
    writes = set()
    for index in range(20):
        world.worker_runs(index)
        world.pass_time(0.3)
        world.settle()
        writes.add(world.config_map["metadata"]["resourceVersion"])
    # The hosts come within 6s: one write after 5s, and one when all are there.
    assert world.hosts == set(range(20))
    assert len(writes) <= 3


def test_an_invalid_edit_does_not_stop_a_running_job():
    world = running_world(rules=False)
    world.cluster.patch(MPI_JOBS, world.key, {"spec": {"slotsPerWorker": -1}})
    world.settle()
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert "slotsPerWorker" in message_of(world, "Running")
    world.launcher_completes()
    assert world.settle().conditions["Succeeded"] == "True MPIJobSucceeded"
