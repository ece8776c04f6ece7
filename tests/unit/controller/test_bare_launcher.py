"""Jobs that training-operator began: their launcher is a pod, and stays one."""

from typing import Any

import pytest

from mpi_operator.controller.plan import Plan
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, ROLES, Key, Manifest
from tests.support import training_operator
from tests.support.observations import terminated
from tests.support.worlds import World, message_of

V1 = {"mpi-operator.kubeflow.org/written-in": "v1"}
LAUNCHER = Key("lab", "pi-launcher")
NEVER = {"backoffLimit": 0}  # what v1's `Never` becomes


def adopted(workers: int = 2, **job: Any) -> World:
    """A job that runs since the days of training-operator."""
    world = World(workers, annotations=V1, **job)
    for resource, manifest in training_operator.children(world.manifest, workers):
        world.cluster.create(resource, manifest)
    world.all_workers_run()
    launcher_is(world, "Running")
    return world


def launcher_is(world: World, phase: str, **status: Any) -> None:
    world._set_phase(world.cluster.get(PODS, LAUNCHER), phase, **status)


def pods(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.cluster.all(PODS)}


def role(world: World) -> Manifest:
    return world.cluster.get(ROLES, LAUNCHER)


def deadline_of(plan: Plan) -> float:
    return plan.requeue_after.total_seconds() if plan.requeue_after else 0


def test_nothing_that_runs_is_touched():
    world = adopted()
    before, permitted = pods(world), role(world)
    world.rest()
    assert pods(world) == before
    assert world.launcher is None
    assert role(world) == permitted
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert not [name for resource, name in world.created if resource in (PODS, JOBS)]
    labels = [pod["metadata"]["labels"] for pod in world.cluster.all(PODS)]
    assert {each["training.kubeflow.org/operator-name"] for each in labels} == {"mpijob-controller"}


def test_its_script_stays_and_its_hosts_are_kept_up_to_date():
    world = adopted().rest()
    assert world.config_map["data"]["kubexec.sh"] == training_operator.KUBEXEC
    assert world.config_map["data"]["hostfile"] == "pi-worker-0 slots=1\npi-worker-1 slots=1\n"
    assert world.hosts == {0, 1}


@pytest.mark.parametrize("before_we_came", [False, True])
@pytest.mark.parametrize(
    ("phase", "status", "end", "counts"),
    [
        pytest.param("Succeeded", {}, "True MPIJobSucceeded", (1, 0), id="succeeded"),
        pytest.param("Failed", {}, "True MPIJobFailed", (0, 1), id="failed"),
        pytest.param("Failed", {"reason": "Evicted"}, "True Evicted", (0, 1), id="evicted"),
    ],
)
def test_the_phase_of_the_pod_decides(before_we_came, phase, status, end, counts):
    world = adopted(policy=NEVER)
    if not before_we_came:
        world.rest()
    launcher_is(world, phase, **status)
    world.rest()
    assert world.conditions[phase] == end
    found = world.manifest["status"]["replicaStatuses"]["Launcher"]
    assert (found.get("succeeded", 0), found.get("failed", 0)) == counts
    assert world.launcher is None


def test_a_failure_says_how_the_launcher_ended():
    world = adopted(policy=NEVER)
    launcher_is(world, "Failed", containerStatuses=terminated(3, message="no such file"))
    world.rest()
    assert "exit code 3" in message_of(world, "Failed")
    assert "no such file" in message_of(world, "Failed")


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("None", {"pi-launcher", "pi-worker-0", "pi-worker-1"}, id="none"),
        pytest.param("Running", {"pi-launcher"}, id="running"),
        pytest.param("All", set(), id="all"),
    ],
)
def test_the_policy_cleans_the_launcher_as_well(policy, left):
    world = adopted(policy={"cleanPodPolicy": policy}).rest()
    launcher_is(world, "Succeeded")
    world.rest()
    assert set(pods(world)) == left


def test_a_failed_worker_ends_the_job_and_the_launcher():
    world = adopted().rest()
    world.worker_fails(0)
    world.rest()
    assert world.conditions["Failed"] == "True WorkerFailed"
    assert "pi-launcher" not in pods(world)
    assert world.launcher is None


def test_a_launcher_that_was_deleted_is_followed_by_a_job():
    world = adopted().rest()
    world.cluster.delete(PODS, LAUNCHER)
    world.settle()
    assert world.launcher is None, "while the pod ends, there must not be two"
    world.rest()
    assert world.launcher is not None
    assert "Failed" not in world.conditions
    assert "remote-shell" in world.config_map["data"]["kubexec.sh"]
    assert role(world)["rules"][0]["resources"] == ["pods/exec"]


def test_a_suspended_job_loses_its_pods_and_resumes_with_a_job():
    world = adopted().rest()
    world.suspend()
    world.rest()
    assert not pods(world)
    assert world.conditions["Suspended"] == "True MPIJobSuspended"
    assert "Failed" not in world.conditions
    world.resume()
    world.rest()
    assert world.launcher is not None


def test_new_workers_can_be_reached_by_kubectl():
    world = adopted().rest()
    world.scale(3)
    world.rest()
    reading, exec_rule = role(world)["rules"]
    assert reading["resources"] == ["pods"]
    assert exec_rule["resourceNames"] == ["pi-worker-0", "pi-worker-1", "pi-worker-2"]
    assert world.config_map["data"]["kubexec.sh"] == training_operator.KUBEXEC


def test_a_pod_of_the_same_name_and_another_owner_is_no_launcher():
    world = World(annotations=V1)
    stranger = {**world.manifest, "metadata": {**world.manifest["metadata"], "uid": "another"}}
    for resource, manifest in training_operator.children(stranger, 0):
        if resource == PODS:
            world.cluster.create(resource, manifest)
    world.rest()
    assert world.launcher is not None


@pytest.mark.parametrize(
    ("limit", "restarts", "fails"),
    [(None, 9, False), (3, 2, False), (3, 3, True), (0, 0, False), (0, 1, True)],
)
def test_restarts_are_limited(limit, restarts, fails):
    world = adopted(policy={} if limit is None else {"backoffLimit": limit})
    status = {"name": "mpi", "restartCount": restarts, "state": {"running": {}}}
    launcher_is(world, "Running", containerStatuses=[status])
    world.rest()
    assert (world.conditions.get("Failed") == "True BackoffLimitExceeded") == fails


def test_its_time_is_limited():
    world = adopted(policy={"activeDeadlineSeconds": 600})
    world.settle()
    assert 0 < deadline_of(world.plan()) <= 600
    world.pass_time(601)
    world.rest()
    assert world.conditions["Failed"] == "True DeadlineExceeded"
    assert "pi-launcher" not in pods(world)


def test_a_config_map_that_was_adopted_says_that_the_job_is_of_v1():
    world = adopted().rest()
    found = world.cluster.get(CONFIG_MAPS, Key("lab", "pi-config"))["metadata"]
    assert found["annotations"]["mpi-operator.kubeflow.org/profile"] == "v1"
