"""A launcher that lost a worker and exited with 0 is tried again, in a new Job."""

import dataclasses
from datetime import timedelta
from itertools import pairwise

import pytest

from mpi_operator.api.annotations import (
    FORCE_DELETE_LOST_WORKERS,
    INIT_TIMEOUT,
    LAUNCHER_RETRIES,
    LOST_WORKERS,
    MAX_WORKER_REPLACEMENTS,
    WRITTEN_IN,
)
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.retry_count import (
    LauncherRetries,
    retries_annotation,
    stored_retries,
)
from mpi_operator.controller.status import status_of
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS
from tests.support.faulty_client import refused
from tests.support.observations import (
    NOW,
    PLAIN,
    a_config_map,
    a_job,
    a_launcher,
    a_launcher_pod,
    complete,
    observed,
    terminated,
    workers,
)
from tests.support.plans import names_created, names_deleted
from tests.support.worlds import message_of, running_world

NEEDS_ALL = {LOST_WORKERS: "fail"}


def a_world(*, annotations=None, **job):
    """A running job that fails if it loses a worker."""
    world = running_world(annotations={**NEEDS_ALL, **(annotations or {})}, **job)
    world.pass_time(60)
    return world


def lose_a_worker(world, index=1):
    """The launcher loses a worker, and ends with 0."""
    world.worker_vanishes(index)
    world.launcher_completes()
    world.pass_time(10)
    return world.rest()


def come_back(world):
    """The workers are back, and the next launcher runs."""
    world.all_workers_run()
    world.pass_time(2)
    world.rest()
    world.launcher_runs()
    return world.rest()


def uid(manifest):
    return manifest["metadata"]["uid"]


def owners(pod):
    return [(each["kind"], each["name"]) for each in pod["metadata"].get("ownerReferences", ())]


def restarts(world):
    """The messages about launchers that are restarted."""
    recorded = zip(world.events.reasons, world.events.messages, strict=True)
    return [message for reason, message in recorded if reason == "LauncherRestarted"]


def test_it_is_tried_again_when_the_worker_is_back():
    world = a_world()
    first = uid(world.launcher)
    lose_a_worker(world)
    assert world.launcher is None  # until the worker runs again
    assert world.pods == {"pi-worker-0": "Running", "pi-worker-1": "Pending"}
    assert world.conditions == {"Created": "True MPIJobCreated", "Running": "True MPIJobRunning"}
    come_back(world)
    assert uid(world.launcher) != first
    world.launcher_completes()
    world.rest()
    assert world.conditions["Succeeded"] == "True MPIJobSucceeded"
    assert "Failed" not in world.conditions
    assert world.created.count((JOBS, "pi-launcher")) == 2


def test_the_pod_of_each_try_stays_and_belongs_to_the_job():
    world = a_world()
    lose_a_worker(world)
    come_back(world)
    lose_a_worker(world, 0)
    come_back(world)
    phases = sorted(pod["status"]["phase"] for pod in world.launcher_pods)
    assert phases == ["Running", "Succeeded", "Succeeded"]
    assert sorted(owners(pod) for pod in world.launcher_pods) == [
        [("Job", "pi-launcher")],
        [("MPIJob", "pi")],
        [("MPIJob", "pi")],
    ]


def test_each_try_is_reported_once():
    world = a_world(policy={"backoffLimit": 3})
    lose_a_worker(world)
    come_back(world)
    lose_a_worker(world)
    [first, second] = restarts(world)
    assert first.startswith(
        "Launcher will be restarted (1 of 3) once all workers are running. "
        "Cause: Launcher lost pi-worker-1 "
    )
    assert second.startswith("Launcher will be restarted (2 of 3)")


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_it_is_tried_as_often_as_the_limit_says(limit):
    world = a_world(policy={"backoffLimit": limit}, annotations={MAX_WORKER_REPLACEMENTS: "9"})
    for _ in range(limit):
        lose_a_worker(world)
        assert "Failed" not in world.conditions
        world.pass_time(600)  # replacements of one worker come later and later
        world.rest()
        come_back(world)
    lose_a_worker(world)
    assert world.conditions["Failed"] == "True WorkerLost"
    assert world.created.count((JOBS, "pi-launcher")) == limit + 1
    why_not_again = f"Launcher reached its restart limit ({limit})"
    assert message_of(world, "Failed").endswith(why_not_again) == (limit > 0)


def test_without_a_limit_it_is_that_of_jobs():
    world = a_world()
    lose_a_worker(world)
    come_back(world)
    assert world.launcher["spec"]["backoffLimit"] == 5


def test_tries_of_its_pods_count():
    world = a_world(policy={"backoffLimit": 2})
    world.launcher_pod_fails(1)
    world.launcher_runs()
    world.rest()
    lose_a_worker(world)
    assert restarts(world)[-1].startswith("Launcher will be restarted (2 of 2)")
    come_back(world)
    assert world.launcher["spec"]["backoffLimit"] == 0
    assert world.manifest["status"]["replicaStatuses"]["Launcher"]["failed"] == 1
    lose_a_worker(world)
    assert world.conditions["Failed"] == "True WorkerLost"


def test_tries_in_its_pod_count():
    job = a_job(policy={"backoffLimit": 3}, annotations=NEEDS_ALL)
    ended = [{**terminated(0)[0], "restartCount": 2}]
    pod = a_launcher_pod(job, "Succeeded", containerStatuses=ended)
    seen = observed(
        job,
        workers(job, "Running"),
        hosts=(0, 1),
        launcher=a_launcher(job, **complete()),
        launcher_pods=(pod,),
    )
    [event] = retry_events(make_plan(seen, PLAIN, NOW))
    assert "(3 of 3)" in event.message


def retry_events(plan):
    return [
        event
        for action in plan.actions
        for event in getattr(action, "events", ())
        if event.reason == "LauncherRestarted"
    ]


def test_tries_after_it_count_on():
    world = a_world(policy={"backoffLimit": 4})
    lose_a_worker(world)
    come_back(world)
    world.launcher_pod_fails(1)
    world.rest()
    assert restarts(world)[-1].startswith("Launcher is being restarted (2 of 4)")
    world.launcher_fails()
    world.rest()
    assert world.conditions["Failed"] == "True BackoffLimitExceeded"
    launcher = world.manifest["status"]["replicaStatuses"]["Launcher"]
    assert launcher == {"active": 0, "succeeded": 0, "failed": 4}  # and one that lost a worker


def test_the_deadline_counts_from_the_first_try():
    world = a_world(policy={"activeDeadlineSeconds": 1000})
    world.worker_vanishes(1)
    world.launcher_completes()
    world.settle()
    world.pass_time(240)
    world.all_workers_run()
    world.settle()
    assert world.launcher["spec"]["activeDeadlineSeconds"] == 700
    world.launcher_runs()
    world.pass_time(700)
    world.rest()
    assert world.conditions["Failed"] == "True DeadlineExceeded"
    assert (world.now - NOW).total_seconds() <= 1010


def test_the_deadline_may_pass_while_no_launcher_exists():
    world = a_world(policy={"activeDeadlineSeconds": 1000, "ttlSecondsAfterFinished": 60})
    lose_a_worker(world)
    world.pass_time(1000)
    world.rest()
    assert world.conditions["Failed"] == "True DeadlineExceeded"
    assert message_of(world, "Failed") == "Job was active longer than 1000s"
    world.pass_time(60)
    world.rest()
    assert world.launcher_pods == []


def test_a_suspended_job_starts_afresh():
    world = a_world(policy={"backoffLimit": 3})
    lose_a_worker(world)
    come_back(world)
    world.suspend()
    world.rest()
    assert LAUNCHER_RETRIES not in world.config_map["metadata"].get("annotations", {})
    world.resume()
    world.rest()
    come_back(world)
    assert world.launcher["spec"]["backoffLimit"] == 3
    lose_a_worker(world)
    assert restarts(world)[-1].startswith("Launcher will be restarted (1 of 3)")


@pytest.mark.parametrize("reconciles", [0, 1, 2, 3])
def test_a_job_that_is_suspended_meanwhile_has_a_launcher_to_resume(reconciles):
    world = a_world(policy={"backoffLimit": 3})
    world.worker_vanishes(1)
    world.launcher_completes()
    world.pass_time(10)
    for _ in range(reconciles):
        world.reconcile()
    world.suspend()
    world.rest()
    assert world.conditions["Suspended"] == "True MPIJobSuspended"
    assert world.launcher["spec"]["suspend"] is True
    assert LAUNCHER_RETRIES not in world.config_map["metadata"].get("annotations", {})
    world.resume()
    world.rest()
    come_back(world)
    world.launcher_completes()
    world.rest()
    assert world.conditions["Succeeded"] == "True MPIJobSucceeded"


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_older_versions_report_it_as_restarting(version):
    world = a_world(annotations={WRITTEN_IN: version})
    lose_a_worker(world)
    assert "Running" not in world.conditions
    assert world.conditions["Restarting"] == "True MPIJobRestarting"
    world.all_workers_run()
    world.pass_time(2)
    world.rest()
    assert world.launcher is not None
    assert world.conditions["Restarting"] == "True MPIJobRestarting"
    world.launcher_runs()
    world.rest()
    assert world.conditions["Running"] == "True MPIJobRunning"
    assert "Restarting" not in world.conditions


def test_it_waits_for_a_worker_whose_node_is_silent():
    world = a_world()
    unready = [{"type": "Ready", "status": "False"}]
    world._set_worker(1, "Running", conditions=unready)
    world.launcher_completes()
    world.pass_time(10)
    world.rest()
    assert world.launcher is None
    assert world.conditions["Running"] == "False NodeUnreachable"
    world.worker_runs(1)
    world.rest()
    assert world.launcher is not None


def test_it_waits_for_workers_that_are_ready_where_the_launcher_does():
    world = a_world(launcherCreationPolicy="WaitForWorkersReady")
    lose_a_worker(world)
    world.worker_runs(1, ready=False)
    world.pass_time(2)
    world.rest()
    assert world.launcher is None
    come_back(world)
    assert world.launcher is not None


def test_it_begins_in_another_second_than_that_of_the_loss():
    """Else the loss would count against the new try: times in the cluster are whole seconds."""
    world = a_world()
    world.launcher_completes()  # before its Job is seen to be complete, all of it happens
    world.worker_vanishes(1)
    world.settle()
    world.worker_runs(1)
    world.settle()
    assert world.launcher is None
    assert 0 < world.wait <= 1
    world.pass_time(1)
    world.settle()
    assert world.launcher is not None


def test_a_start_that_is_limited_is_over():
    world = a_world(annotations={INIT_TIMEOUT: "30"})
    lose_a_worker(world)
    world.pass_time(600)
    world.rest()
    assert "Failed" not in world.conditions


def test_it_is_not_tried_where_a_worker_is_not_replaced():
    world = a_world(annotations={MAX_WORKER_REPLACEMENTS: "0"})
    lose_a_worker(world)
    assert world.conditions["Failed"] == "True WorkerLost"
    assert restarts(world) == []


def test_a_job_fails_whose_worker_never_comes_back():
    world = a_world(annotations={MAX_WORKER_REPLACEMENTS: "1"})
    lose_a_worker(world)
    world.worker_fails(1)
    world.rest()
    assert world.conditions["Failed"] == "True WorkerFailed"
    assert world.launcher is None


def test_a_bare_launcher_is_not_tried_again():
    job = a_job(annotations=NEEDS_ALL)
    pod = a_launcher_pod(job, "Succeeded", containerStatuses=terminated(0))
    seen = observed(
        job,
        workers(job, "Running"),
        hosts=(0, 1),
        launcher=a_launcher(job, **complete()),
        launcher_pods=(pod,),
        bare_launcher=pod,
    )
    plan = make_plan(seen, PLAIN, NOW)
    assert status_of(seen, plan.problems, NOW).conditions[-1].reason == "WorkerLost"


def test_it_waits_until_its_job_is_complete():
    """Until then the Job tracks its pods with a finalizer that only it removes."""
    world = a_world()
    world.worker_vanishes(1)
    world.launcher_pod_succeeds()
    for _ in range(3):
        world.pass_time(10)
        world.settle()
    assert world.launcher is not None
    assert world.conditions == {"Created": "True MPIJobCreated", "Running": "True MPIJobRunning"}
    world.kubernetes_acts()
    world.rest()
    assert world.launcher is None
    assert not any("finalizers" in pod["metadata"] for pod in world.launcher_pods)


def test_the_count_is_stored_before_anything_is_deleted():
    world = a_world()
    world.worker_vanishes(1)
    world.launcher_completes()
    world.pass_time(10)
    before = len(world.client.asked)
    world.rest()
    [pod] = world.launcher_pods
    steps = [
        "patch ConfigMap pi-config",
        f"patch Pod {pod['metadata']['name']}",
        "delete Job pi-launcher",
    ]
    asked = [each for each in world.client.asked[before:] if each in steps]
    assert asked == steps


def test_a_count_that_is_refused_is_reported_and_nothing_is_deleted():
    world = a_world()
    world.worker_vanishes(1)
    world.launcher_completes()
    world.pass_time(10)
    world.client.refuse("patch ConfigMap", refused(403, "no such right", "Forbidden"))
    world.settle()
    assert world.conditions["Running"] == "False Forbidden"
    assert world.launcher is not None
    assert restarts(world) == []
    world.client.relent()
    world.pass_time(600)
    world.rest()
    come_back(world)
    assert world.conditions["Running"] == "True MPIJobRunning"


@pytest.mark.parametrize("kind", [JOBS, PODS, CONFIG_MAPS])
def test_silent_watches_double_nothing(kind):
    world = a_world()
    world.worker_vanishes(1)
    world.launcher_completes()
    world.pass_time(10)
    world.reconcile()
    world.freeze(kind)
    for _ in range(4):
        world.reconcile()
        world.pass_time(1)
    world.thaw(kind)
    world.rest()
    come_back(world)
    assert world.created.count((JOBS, "pi-launcher")) == 2
    assert len(restarts(world)) == 1


@pytest.mark.parametrize(
    ("job", "left"),
    [
        pytest.param({"policy": {"cleanPodPolicy": "All"}}, 2, id="v2beta1 keeps launchers"),
        pytest.param(
            {"policy": {"cleanPodPolicy": "All"}, "annotations": {WRITTEN_IN: "v1"}}, 0, id="v1"
        ),
        pytest.param(
            {"policy": {"cleanPodPolicy": "Running"}, "annotations": {WRITTEN_IN: "v1"}},
            2,
            id="v1, those that run",
        ),
        pytest.param({"policy": {"ttlSecondsAfterFinished": 60}}, 0, id="after its time to live"),
    ],
)
def test_pods_of_former_tries_are_cleaned_up_with_the_launcher(job, left):
    world = a_world(**job)
    lose_a_worker(world)
    come_back(world)
    world.launcher_completes()
    world.pass_time(100)
    world.rest()
    world.pass_time(100)
    world.rest()
    assert "Succeeded" in world.conditions
    assert len(world.launcher_pods) == left


def test_a_forced_deletion_brings_the_worker_back():
    world = a_world(annotations={FORCE_DELETE_LOST_WORKERS: "true"})
    world.worker_is_drained(1)  # and its node never confirms it
    world.client.relent()
    world.launcher_runs()
    world._set_launcher_pods("Succeeded")
    for _ in range(8):
        world.pass_time(10)
        world.settle()
    assert world.launcher is None
    come_back(world)
    assert world.launcher is not None


@pytest.mark.parametrize(
    "text", ["", "[]", "[1", "[-1, 0]", '["x"]', "{}", "[1, 0, 7]", "[" * 3000]
)
def test_what_was_not_written_by_us_counts_for_nothing(text):
    known = a_config_map(a_job())
    known.metadata.annotations[LAUNCHER_RETRIES] = text
    assert stored_retries(known).used == 0


def test_what_is_stored_is_read():
    retries = LauncherRetries(3, 1, "uid", NOW)
    known = a_config_map(a_job())
    known.metadata.annotations.update(retries_annotation(retries))
    assert stored_retries(known) == retries


def test_the_next_launcher_waits_for_the_last_one_to_go():
    job = a_job(annotations=NEEDS_ALL)
    launcher = a_launcher(job, **complete())
    retries = LauncherRetries(1, 0, launcher.metadata.uid, NOW - timedelta(minutes=5))
    seen = dataclasses.replace(
        observed(job, workers(job, "Running", "Running"), launcher=launcher), retries=retries
    ).retiring(retries)
    plan = make_plan(seen, PLAIN, NOW)
    assert names_deleted(plan) == ["Job pi-launcher"]
    assert names_created(plan) == []
    gone = dataclasses.replace(seen, retired=None)
    assert names_created(make_plan(gone, PLAIN, NOW)) == ["Job pi-launcher"]


def test_its_status_never_goes_back():
    world = a_world(policy={"backoffLimit": 2})
    seen = []

    def look(_):
        seen.append(world.manifest["status"])

    world.client.after = look
    lose_a_worker(world)
    come_back(world)
    lose_a_worker(world)
    come_back(world)
    world.launcher_completes()
    world.rest()
    for before, after in pairwise(seen):
        assert is_later(before, after)
    assert "completionTime" in world.manifest["status"]


def is_later(before, after):
    ended = {each["type"] for each in before["conditions"]} & {"Succeeded", "Failed"}
    failed = [
        each["replicaStatuses"].get("Launcher", {}).get("failed", 0) for each in (before, after)
    ]
    return failed == sorted(failed) and ended <= {each["type"] for each in after["conditions"]}
