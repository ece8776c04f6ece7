"""One reconcile of a job, with everything that decides and writes, on the local cluster."""

import pytest

from mpi_operator.api.annotations import LOST_WORKERS, MAX_WORKER_REPLACEMENTS
from mpi_operator.build.scripts import Event
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube import errors
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import JOBS, PODS, SERVICES, Key
from mpi_operator.local.times import timestamp
from tests.support.faulty_client import refused
from tests.support.observations import (
    RUNNING_MESSAGE,
    remote_shell_line,
    terminated,
    unschedulable,
)
from tests.support.worlds import World, message_of, running_world, virtual_loop

CAUSE = "Could not resolve hostname pi-worker-1.pi.lab.svc: Name or service not known"
WAITS = remote_shell_line(Event.WAITING, seconds=35, cause=CAUSE)
QUOTA = refused(403, "exceeded quota: pods")


def test_a_job_from_creation_to_success():
    world = running_world(policy={"cleanPodPolicy": "All"})
    world.launcher_completes()
    world.settle()
    world.kubernetes_acts()
    world.settle()
    assert world.pods == {}
    assert world.events.reasons == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]


def test_a_whole_job_takes_few_writes_beyond_its_objects():
    world = running_world(200)
    assert len(world.client.asked) <= 4 + 200 + 5


def test_nothing_is_written_about_a_settled_job():
    world = running_world()
    world.restart()
    asked, _ = world.reconcile()
    assert asked == []


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue"])
def test_a_job_that_others_manage_is_left_alone(manager):
    world = World(policy={"managedBy": manager})
    assert world.reconcile() == ([], None)
    assert world.events.reasons == []


@pytest.mark.parametrize("key", [Key("lab", "unknown"), Key("", "a/b")])
def test_a_job_that_is_not_there(key):
    assert World().reconcile(key) == ([], None)


def test_an_invalid_job_gets_a_status_and_nothing_else():
    world = World(rules=False, slotsPerWorker=-1)
    asked, wait = world.reconcile()
    assert asked == ["replace status of MPIJob pi"]
    assert world.conditions["Running"] == "False ValidationError"
    assert world.events.reasons == ["MPIJobCreated", "ValidationError"]
    assert wait is None


def test_a_job_that_becomes_valid_continues():
    world = World(rules=False, slotsPerWorker=-1)
    world.settle()
    world.cluster.patch(MPI_JOBS, world.key, {"spec": {"slotsPerWorker": 1}})
    world.start()
    assert world.conditions["Running"] == "True MPIJobRunning"


# --- conflicts --------------------------------------------------------------------------------


def test_a_status_conflict_writes_no_event_and_requeues():
    world = World()
    world.client.refuse("replace status of MPIJob", refused(409))
    _, wait = world.reconcile()
    assert world.events.reasons == []
    assert wait == pytest.approx(0.1)
    world.client.relent()
    world.settle()
    assert world.events.reasons == ["MPIJobCreated"]


@pytest.mark.parametrize("what", ["replace status of MPIJob", "create Service"])
def test_stale_caches_are_waited_for_longer_each_time(what):
    world = World()
    world.client.refuse(what, refused(409))
    waits = [(world.reconcile())[1] for _ in range(12)]
    assert waits[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert waits[-1] == pytest.approx(30)
    world.client.relent()
    world.settle()
    world.client.refuse("replace status of MPIJob", refused(409))
    world.suspend()
    assert (world.reconcile())[1] == pytest.approx(0.1)


def test_a_lost_connection_reaches_the_queue_after_the_status_is_stored():
    world = World()
    world.client.refuse("create Pod", errors.ConnectionLost("no answer"))
    with pytest.raises(errors.ConnectionLost):
        world.reconcile()
    assert world.conditions == {"Created": "True MPIJobCreated"}


def test_a_status_that_is_refused_is_not_written_in_a_loop():
    world = running_world()
    world.launcher_completes()
    world.client.refuse("replace status of MPIJob", refused(422, "Invalid"))
    _, wait = world.reconcile()
    assert wait is None or wait >= 1


# --- refusals ---------------------------------------------------------------------------------


def test_a_refusal_is_reported_in_the_status():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    world.reconcile()
    assert world.conditions["Running"] == "False QuotaExceeded"
    assert world.events.reasons == ["MPIJobCreated", "QuotaExceeded"]


def test_a_refused_write_is_not_retried_at_once():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    _, wait = world.reconcile()
    asked, again = world.reconcile()
    assert asked == []
    assert 1 <= wait <= 2
    assert again == pytest.approx(wait)


def test_a_refused_write_is_retried_when_it_is_due():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    _, wait = world.reconcile()
    world.pass_time(wait)
    asked, longer = world.reconcile()
    assert "create Pod pi-worker-0" in asked
    assert longer >= wait


def test_back_off_has_a_maximum():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    waits = []
    for _ in range(20):
        _, wait = world.reconcile()
        world.pass_time(wait)
        waits.append(wait)
    assert 150 <= waits[-1] <= 300
    assert world.events.reasons == ["MPIJobCreated", "QuotaExceeded"]


def test_another_spec_is_tried_at_once():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    world.reconcile()
    world.scale(1)
    asked, _ = world.reconcile()
    assert "create Pod pi-worker-0" in asked


def test_a_job_continues_when_the_cause_is_gone():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    _, wait = world.reconcile()
    world.client.relent()
    world.pass_time(wait)
    world.start()
    assert world.conditions["Running"] == "True MPIJobRunning"


def test_an_invalid_template_fails_the_job():
    world = World()
    world.client.refuse("create Pod", refused(422, "spec.containers[0].image: Required"))
    world.reconcile()
    assert world.conditions["Failed"] == "True InvalidPodTemplate"
    assert world.launcher is None
    assert world.events.reasons == ["MPIJobCreated", "InvalidPodTemplate"]


def test_an_invalid_template_does_not_fail_a_job_that_runs():
    world = running_world()
    world.client.refuse("create Pod", refused(422, "spec.containers[0].image: Required"))
    world.scale(3)
    world.reconcile()
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert "Failed" not in world.conditions


def test_a_failed_worker_is_not_deleted_before_it_is_counted():
    world = running_world()
    world.worker_fails(1)
    world.client.refuse("patch ConfigMap", refused(403, "may not"))
    world.reconcile()
    world.reconcile()
    assert world.pods["pi-worker-1"] == "Failed"
    assert not any(each.startswith("delete") for each in world.client.asked)


def test_replacements_are_reported_when_they_are_counted():
    world = running_world()
    world.events.reasons.clear()
    world.worker_fails(1)
    world.settle()
    assert world.events.reasons == ["WorkerReplaced"]
    assert world.pods == {"pi-worker-0": "Running", "pi-worker-1": "Pending"}


def test_a_refusal_that_follows_another_one_waits_too():
    world = World()
    world.client.refuse("create Pod", QUOTA)
    world.reconcile()
    world.client.refuse("create Service", refused(403, "services are forbidden"))
    world.cluster.remove(SERVICES, Key("lab", "pi"))
    first, _ = world.reconcile()
    second, _ = world.reconcile()
    assert "create Service pi" in first
    assert second == []


def test_a_reworded_problem_is_reported_without_any_other_event():
    world = World()
    world.settle()
    unschedule(world, "0/3 nodes are available")
    world.pass_time(10)
    world.settle()
    unschedule(world, "0/4 nodes are available")
    wait = world.settle().wait
    assert "0/3 nodes" in message_of(world, "Running")
    world.pass_time(wait)
    assert world.settle().wait is None
    assert "0/4 nodes" in message_of(world, "Running")


def unschedule(world, message):
    status = {"phase": "Pending", "conditions": unschedulable(message)}
    world.cluster.patch_status(PODS, Key("lab", "pi-worker-0"), status)


def test_a_refused_clean_up_is_reported_once_and_retried():
    world = running_world(policy={"cleanPodPolicy": "All"})
    world.client.refuse("delete Pod", refused(403, "pods is forbidden"))
    world.launcher_completes()
    world.reconcile()
    for _ in range(3):
        _, wait = world.reconcile()
        world.pass_time(wait)
    assert world.events.reasons[-2:] == ["MPIJobSucceeded", "Forbidden"]
    assert world.events.messages[-1].endswith("was not deleted: pods is forbidden")
    world.client.relent()
    world.settle()
    world.kubernetes_acts()
    assert world.pods == {}


def test_a_launcher_whose_pod_was_lost_has_time_to_get_another():
    world = running_world()
    world.cluster.remove(PODS, world.launcher_pod)
    world.pass_time(3600)
    _, wait = world.reconcile()
    assert world.conditions["Running"] == "True MPIJobRunning"
    for _ in range(2):  # first the counts are written
        world.pass_time(wait)
        _, wait = world.reconcile()
    assert world.conditions["Running"] == "False LauncherPodMissing"


def test_a_restart_does_not_retract_that_a_launcher_has_no_pod():
    world = World()
    world.settle()
    started = {"active": 0, "startTime": timestamp(world.now)}
    world.cluster.patch_status(JOBS, Key("lab", "pi-launcher"), started)
    world.pass_time(60)
    world.settle()
    assert world.conditions["Running"] == "False LauncherPodMissing"
    world.restart()
    asked, _ = world.reconcile()
    assert asked == []


def test_deletions_are_not_remembered_forever():
    world = World()
    for _ in range(3):
        world.start()
        world.suspend()
        world.settle()
        world.kubernetes_acts()
        world.settle()
        world.resume()
        world.settle()
    assert world.operator.job_states.of(world.job).deleted == frozenset()


# --- when to reconcile again ------------------------------------------------------------------


def test_a_running_job_is_reconciled_when_something_happens():
    world = running_world(0, runLauncherAsWorker=True)
    assert world.reconcile() == ([], None)


def reading_log(world):
    """The requests that read the launcher's log."""
    return [f"log mpi of Pod {world.launcher_pod.name}"]


def waiting():
    """A job whose launcher waits for a worker, as its status reports."""
    world = running_world()
    world.pass_time(30)
    world.printed = b"one\n" + WAITS.encode() + b"\n\xff\n"
    assert world.reconcile() == (reading_log(world), 0)
    world.settle()
    assert message_of(world, "Running").endswith(f"waiting for pi-worker-1: {CAUSE}")
    return world


def test_a_launcher_log_is_read_and_its_waits_are_reported():
    world = waiting()
    assert world.events.reasons[-1] == "LauncherWaits"
    assert world.reconcile() == ([], 30)
    assert world.client.logs == [
        LogOptions(container="mpi", tail_lines=2000, since_seconds=120, limit_bytes=256 * 1024)
    ]


def test_a_wait_that_is_over_is_no_longer_reported():
    world = waiting()
    world.printed = b""
    world.pass_time(30)
    world.settle()
    assert message_of(world, "Running") == RUNNING_MESSAGE
    assert world.reconcile() == ([], 60)


def test_a_single_failure_to_read_the_log_changes_nothing():
    world = waiting()
    world.client.refuse("log", refused(503))
    world.pass_time(30)
    assert world.reconcile() == (reading_log(world), 0)
    assert world.reconcile() == ([], 30)
    assert message_of(world, "Running").endswith(CAUSE)


def test_a_log_that_cannot_be_read_for_long_is_no_longer_reported():
    world = waiting()
    world.client.refuse("log", refused(403))
    for _ in range(5):
        world.pass_time(30)
        world.settle()
    assert message_of(world, "Running") == RUNNING_MESSAGE


def test_a_restarted_operator_reports_the_same():
    world = waiting()
    events = len(world.events.reasons)
    world.restart()
    assert world.reconcile() == (reading_log(world), 0)
    assert world.reconcile() == ([], 30)
    assert len(world.events.reasons) == events


def test_a_missing_permission_to_read_logs_is_a_warning_once(caplog):
    world = running_world()
    world.client.refuse("log", refused(403, "pods/log is forbidden"))
    for _ in range(3):
        world.pass_time(60)
        world.settle()
    assert world.client.asked.count(*reading_log(world)) > 1
    [record] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "not allowed to get pods/log" in record.message
    assert record.error == "pods/log is forbidden"


@pytest.mark.parametrize("error", [refused(403), refused(500), refused(404)])
def test_a_launcher_log_that_cannot_be_read_is_tried_again_later(error):
    world = running_world()
    world.client.refuse("log", error)
    world.pass_time(30)
    assert world.reconcile() == (reading_log(world), 0)
    assert world.reconcile() == ([], 30)
    assert "LauncherWaits" not in world.events.reasons


def test_a_node_that_does_not_answer_delays_no_other_job():
    world = running_world()
    world.pass_time(30)
    world.client.takes = 60
    began = virtual_loop().time()
    assert world.reconcile() == (reading_log(world), 0)
    assert virtual_loop().time() - began == pytest.approx(3)


def test_a_plan_is_executed_before_the_launcher_log_is_read():
    world = running_world()
    world.pass_time(30)
    world.worker_vanishes(1)
    asked, wait = world.reconcile()
    assert asked[-1] == reading_log(world)[0]
    assert "create Pod pi-worker-1" in asked
    assert wait == 0


def test_a_finished_job_is_requeued_at_once_to_clean_up():
    world = running_world()
    world.launcher_completes()
    assert (world.reconcile())[1] == 0


def test_a_job_past_its_ttl_is_not_reconciled_in_a_loop():
    world = running_world(policy={"ttlSecondsAfterFinished": 10})
    world.pass_time(1)
    world.launcher_completes()
    wait = world.settle().wait
    assert wait == pytest.approx(10)
    world.pass_time(11)
    assert world.settle().wait is None
    assert world.launcher is None


def test_counts_are_written_when_they_are_due():
    world = World()
    world.settle()
    world.worker_runs(0)
    wait = world.settle().wait
    assert world.manifest["status"]["replicaStatuses"]["Worker"]["active"] == 0
    for _ in range(2):  # the list of hosts waits as well, less long
        world.pass_time(wait)
        wait = world.settle().wait
    assert world.manifest["status"]["replicaStatuses"]["Worker"]["active"] == 1


# --- restarts ---------------------------------------------------------------------------------


def test_a_restart_between_counting_and_deleting_counts_once():
    world = running_world(policy={"backoffLimit": 1})
    world.worker_fails(1)
    world.client.refuse("delete Pod", errors.ConnectionLost("the operator died"))
    with pytest.raises(errors.ConnectionLost):
        world.reconcile()
    world.restart()
    world.client.relent()
    world.settle()
    assert world.pods["pi-worker-1"] == "Pending"


@pytest.mark.parametrize("is_restarted", [False, True], ids=["the same process", "another one"])
def test_the_cause_of_a_launcher_failure_outlives_its_pod(is_restarted):
    world = running_world(policy={"backoffLimit": 0})
    [ended] = terminated(134, "Segmentation fault")
    again = {"name": "mpi", "restartCount": 1, "lastState": ended["state"]}
    world.cluster.patch_status(PODS, world.launcher_pod, {"containerStatuses": [again]})
    world.settle()
    if is_restarted:
        world.restart()
    pod = world.launcher_pod
    world.launcher_fails()
    world.cluster.remove(PODS, pod)
    world.settle()
    assert message_of(world, "Failed").endswith("(exit code 134): Segmentation fault")


def test_a_lost_lease_causes_no_requeue():
    world = World()
    world.client.refuse("create Service", errors.NotLeader("the lease is over"))
    _, wait = world.reconcile()
    assert wait is None


def test_a_launcher_that_ends_while_a_plan_is_carried_out_is_judged():
    world = running_world(
        annotations={LOST_WORKERS: "fail", MAX_WORKER_REPLACEMENTS: "1"},
        policy={"backoffLimit": 0},
    )
    world.pass_time(60)
    world.worker_vanishes(1)

    def end(request):
        if str(request).startswith("create Pod"):
            world.launcher_completes()
            world.observe()  # the caches hear of it

    world.client.after = end
    _, wait = world.reconcile()
    assert (wait, world.conditions["Running"]) == (0, "True MPIJobRunning")
    world.settle()
    assert world.conditions["Failed"] == "True WorkerLost"


# --- errors -----------------------------------------------------------------------------------


def fail(world, seconds):
    """Reconcile again and again."""
    for _ in range(int(seconds)):
        with pytest.raises(errors.ServerError):
            world.reconcile()
        world.pass_time(1)


def test_a_job_whose_reconciles_keep_failing_gets_one_event():
    world = World()
    world.client.refuse("create Pod", refused(500, "etcd is full"))
    fail(world, 30)
    assert "OperatorError" not in world.events.reasons
    fail(world, 3)
    assert world.events.reasons.count("OperatorError") == 1
    assert world.events.messages[-1].endswith("ServerError: etcd is full")


def test_errors_that_pass_are_forgotten():
    world = World()
    world.client.refuse("create Pod", refused(500))
    fail(world, 25)
    world.client.relent()
    world.start()
    world.client.refuse("create Pod", refused(500))
    world.worker_vanishes(1)
    fail(world, 25)
    assert "OperatorError" not in world.events.reasons
