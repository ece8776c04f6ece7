"""Workers that are lost, and a launcher that succeeds nevertheless."""

import dataclasses
from datetime import timedelta

import msgspec
import pytest

from mpi_operator.api.decode import decode_job
from mpi_operator.build.scripts import Event
from mpi_operator.controller.events import status_events
from mpi_operator.controller.job_state import JobState
from mpi_operator.controller.launcher_log import lost_contacts
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.replacement import Count
from mpi_operator.controller.status import status_of
from mpi_operator.local.times import timestamp
from tests.support.observations import (
    NOW,
    PLAIN,
    SUCCEEDED_MESSAGE,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_manifest,
    a_worker,
    complete,
    observed,
    remote_shell_line,
    started,
    terminated,
    workers,
)

RAN = timedelta(minutes=5)
LOST = remote_shell_line(
    Event.LOST, seconds=7, cause="Connection to pi-worker-1 closed by remote host."
)
WENT_ON = remote_shell_line(Event.CONTINUED, "pi-worker-0")
SURVIVES = {"mpi-operator.kubeflow.org/lost-workers": "survive"}
FAILS = {"mpi-operator.kubeflow.org/lost-workers": "Fail"}
LATER = NOW + timedelta(seconds=75)
DURING = Count(1, "", NOW - timedelta(seconds=5))
BEFORE = Count(1, "", NOW - RAN - timedelta(seconds=1))
CREATED_JUST_BEFORE = {
    "type": "Created",
    "status": "True",
    "lastTransitionTime": timestamp(BEFORE.at),
}


def running(*others, **changes):
    """A job whose launcher and workers have been running for five minutes, for the only time."""
    began = timestamp(NOW - RAN)
    condition = {"type": "Running", "status": "True", "lastTransitionTime": began}
    status = {"startTime": began, "conditions": [*others, condition]}
    return a_job(status=status, **{"policy": {"backoffLimit": 0}, **changes})


JOB = running()
LOST_WORKER = "Launcher lost pi-worker-1"
GONE = f"{LOST_WORKER} (the pod is gone)"
BOTH = workers(JOB, "Running", "Running")
CREATED_WITH_IT = a_launcher_pod(
    JOB, "Succeeded", age=NOW - BEFORE.at, containerStatuses=terminated(0, LOST)
)
FIRST = BOTH[:1]


def ended(pods=BOTH, output="", *, job=JOB, pod=None, **more):
    """The launcher has just ended with exit code 0 and this output."""
    left = terminated(0, output)
    launcher_pod = pod or a_launcher_pod(job, "Succeeded", age=RAN, containerStatuses=left)
    return observed(
        job,
        pods,
        launcher=a_launcher(job, **complete()),
        launcher_pods=(launcher_pod,),
        **({"hosts": (0, 1)} | more),
    )


def done(pods=BOTH, *, job=JOB, since=NOW):
    """The launcher's pod has completed, first seen at that time; its Job has no condition yet."""
    pod = a_launcher_pod(job, "Succeeded", age=RAN, containerStatuses=terminated(0))
    return observed(
        job,
        pods,
        launcher=a_launcher(job),
        launcher_pods=(pod,),
        hosts=(0, 1),
        launcher_done_since=since,
    )


def judged(seen, now=LATER):
    """The last condition of the status, and its events."""
    plan = make_plan(seen, PLAIN, now)
    assert plan.actions == ()
    status = status_of(seen, plan.problems, now)
    events = status_events(seen.job.status, status, plan.problems)
    last = status.conditions[-1]
    return last, [
        (each.severity.value, each.reason) for each in events if each.reason != "MPIJobCreated"
    ]


@pytest.mark.parametrize(
    ("seen", "how"),
    [
        pytest.param(ended(FIRST, LOST), "(the pod is gone)", id="a pod that vanished"),
        pytest.param(
            ended((*FIRST, a_worker(JOB, 1, deleted=timedelta(0))), LOST),
            "(the pod was deleted)",
            id="a pod that ends",
        ),
        pytest.param(
            ended(
                (
                    *FIRST,
                    a_worker(
                        JOB, 1, "Failed", containerStatuses=terminated(137, reason="OOMKilled")
                    ),
                ),
                LOST,
            ),
            "(container mpi ended with exit code 137 (OOMKilled))",
            id="a pod that failed",
        ),
        pytest.param(
            ended(output=LOST, counts={1: Count(1, "uid", DURING.at, "exit code 137, OOMKilled")}),
            "(exit code 137, OOMKilled)",
            id="a pod that is replaced already",
        ),
        pytest.param(
            ended(counts={1: BEFORE}, job=running(CREATED_JUST_BEFORE), pod=CREATED_WITH_IT),
            "(the pod is gone)",
            id="in the second in which it began to run, which the status calls the next one",
        ),
        pytest.param(
            ended(FIRST, f"{LOST}\n{WENT_ON}\n{LOST}"), "(the pod is gone)", id="a second time"
        ),
    ],
)
def test_a_launcher_that_lost_a_worker_and_began_nothing_else_has_not_succeeded(seen, how):
    last, events = judged(seen)
    assert (last.type, last.reason) == ("Failed", "WorkerLost")
    assert last.message.startswith(f"{LOST_WORKER} after 7s: Connection to ")
    assert how in last.message
    assert events == [("Warning", "WorkerLost")]


def test_a_job_with_the_annotation_needs_every_worker():
    last, events = judged(ended(FIRST, job=running(annotations=FAILS)))
    assert (last.type, last.reason) == ("Failed", "WorkerLost")
    assert GONE in last.message
    assert events == [("Warning", "WorkerLost")]


def launched_by(*command, **changes):
    """A running job whose launcher runs this, as its template says."""
    manifest = a_manifest(policy={"backoffLimit": 0}, **changes)
    template = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    template["spec"]["containers"][0]["command"] = list(command)
    return msgspec.structs.replace(JOB, spec=decode_job(manifest).spec)


MPIRUN = launched_by("mpirun", "-n", "2", "/home/mpiuser/pi")
CAN_DO_WITHOUT = msgspec.structs.replace(MPIRUN, metadata=running(annotations=SURVIVES).metadata)
BRIEF = timedelta(seconds=3)
EARLY = Count(1, "", NOW - timedelta(seconds=60))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(ended(FIRST, job=MPIRUN), id="a worker that is gone"),
        pytest.param(ended(counts={1: DURING}, job=MPIRUN), id="one that is replaced already"),
        pytest.param(ended(FIRST, job=launched_by("/opt/bin/mpiexec", "pi")), id="with its path"),
        pytest.param(
            ended((*FIRST, a_worker(JOB, 1, age=BRIEF)), counts={1: EARLY}, job=MPIRUN),
            id="one that ended a while after it was deleted, and is replaced already",
        ),
        pytest.param(
            ended(FIRST, hosts=(0,), counts={1: EARLY}, job=MPIRUN),
            id="one that did, and is replaced later",
        ),
    ],
)
def test_mpirun_alone_ends_because_it_lost_a_worker_in_its_last_seconds(seen):
    last, events = judged(seen)
    assert (last.type, last.reason) == ("Failed", "WorkerLost")
    assert GONE in last.message
    assert "lost-workers: survive" in last.message
    assert events == [("Warning", "WorkerLost")]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(ended(counts={1: EARLY}, job=MPIRUN), id="it was lost long before"),
        pytest.param(ended(FIRST, job=launched_by("sh", "-c", "mpirun pi")), id="by a script"),
        pytest.param(ended(FIRST, job=launched_by("horovodrun", "pi")), id="by another program"),
        pytest.param(
            ended(FIRST, job=launched_by("mpirun", "--with-ft", "ulfm", "pi")),
            id="by one that can continue",
        ),
        pytest.param(
            ended(FIRST, job=launched_by("mpirun", "pi", mpiImplementation="MPICH")),
            id="by one that fails when it loses a worker",
        ),
        pytest.param(ended(FIRST, job=CAN_DO_WITHOUT), id="by one that says so"),
    ],
)
def test_a_launcher_that_may_have_continued_has_succeeded(seen):
    last, events = judged(seen)
    assert last.type == "Succeeded"
    assert LOST_WORKER in last.message
    assert events == [("Normal", "MPIJobSucceeded"), ("Warning", "WorkerLost")]


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        pytest.param(
            ended(FIRST),
            f"{GONE}, 1 of 2 workers, while it ran, and exited with code 0. Work on that worker "
            "probably did not complete",
            id="a launcher that did not say so, as that of Horovod",
        ),
        pytest.param(
            ended(FIRST, f"{LOST}\n{WENT_ON}"),
            LOST_WORKER,
            id="a launcher that went on",
        ),
        pytest.param(
            ended(FIRST, LOST, job=running(annotations=SURVIVES)),
            LOST_WORKER,
            id="a program that can do without",
        ),
        pytest.param(ended(counts={1: DURING}), LOST_WORKER, id="one that was replaced"),
        pytest.param(
            ended((), counts={0: DURING}),
            "Launcher lost 2 of 2 workers while it ran, including pi-worker-0 (the pod is gone), "
            "and exited with code 0. Work on those workers probably did not complete",
            id="several",
        ),
        pytest.param(
            ended((), job=running(workers=1), counts={0: DURING}),
            "Launcher lost pi-worker-0 (the pod is gone), its only worker, while it ran, and",
            id="the only one",
        ),
        pytest.param(ended(output=LOST), f"{LOST_WORKER} after 7s", id="the session alone"),
        pytest.param(
            ended((*FIRST, a_worker(JOB, 1, conditions=[{"type": "Ready", "status": "False"}]))),
            "has stopped reporting",
            id="a node that is silent",
        ),
    ],
)
def test_a_job_that_may_have_run_without_a_worker_succeeds_with_a_warning(seen, sentence):
    last, events = judged(seen)
    assert last.type == "Succeeded"
    assert last.message.startswith(f"{SUCCEEDED_MESSAGE} ")
    assert sentence in last.message
    assert events == [("Normal", "MPIJobSucceeded"), ("Warning", "WorkerLost")]


RESTARTED = [each | {"restartCount": 1} for each in terminated(0)]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(ended(), id="nothing happened"),
        pytest.param(
            ended(job=running(annotations=FAILS)),
            id="nothing happened to a job that needs every worker",
        ),
        pytest.param(ended(output="the loss is 0.1"), id="a launcher with other output"),
        pytest.param(ended(counts={1: BEFORE}), id="a worker was replaced before the job ran"),
        pytest.param(
            ended(
                counts={1: DURING},
                pod=a_launcher_pod(JOB, "Succeeded", age=RAN, containerStatuses=RESTARTED),
            ),
            id="it may have been before the launcher's last start",
        ),
        pytest.param(ended(FIRST, hosts=(0,)), id="a worker that never ran"),
        pytest.param(ended((*FIRST, a_worker(JOB, 1, "Succeeded"))), id="a worker that was done"),
    ],
)
def test_a_job_that_lost_no_worker_just_succeeded(seen):
    last, events = judged(seen)
    assert last.message == SUCCEEDED_MESSAGE
    assert events == [("Normal", "MPIJobSucceeded")]


[RUNS] = started(RAN.total_seconds())


def leaving(*containers, age=RAN, **status):
    """A worker that is being deleted, and has 20s left."""
    return a_worker(
        JOB,
        1,
        age=age,
        deleted=timedelta(seconds=-20),
        containerStatuses=list(containers or (RUNS,)),
        **status,
    )


DONE = {"name": "setup", "state": {"terminated": {"exitCode": 0}}}
DELETED = Count(1, "uid-of-pi-worker-1", NOW - timedelta(seconds=5))
AFTER = NOW + timedelta(seconds=5)


@pytest.mark.parametrize("job", [MPIRUN, running(annotations=FAILS)], ids=["mpirun", "needs all"])
@pytest.mark.parametrize(
    ("count", "worker"),
    [
        pytest.param(DELETED, leaving(), id="it alone"),
        pytest.param(DELETED, leaving(initContainerStatuses=[DONE]), id="after its preparations"),
        pytest.param(DURING, leaving(), id="counted before counts had names"),
    ],
)
def test_a_worker_that_is_being_deleted_and_outlives_the_launcher_was_not_lost(job, count, worker):
    seen = ended((*FIRST, worker), hosts=(0,), counts={1: count}, job=job)
    soon = make_plan(seen, PLAIN, NOW + timedelta(seconds=2))
    assert soon.requeue_after == timedelta(seconds=3)
    last, events = judged(seen, AFTER)
    assert last.message == SUCCEEDED_MESSAGE
    assert events == [("Normal", "MPIJobSucceeded")]


SILENT = [{"type": "Ready", "status": "False"}]
[OTHER] = started(RAN.total_seconds(), name="proxy")


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            ended((*FIRST, leaving(age=BRIEF)), counts={1: DURING}, job=MPIRUN),
            id="after another one",
        ),
        pytest.param(
            ended(
                (*FIRST, leaving()),
                counts={1: Count(2, DELETED.uid, DELETED.at, before=DURING.at)},
                job=running(annotations=FAILS),
            ),
            id="after another one, and counted itself",
        ),
        pytest.param(
            ended((*FIRST, leaving(RUNS, OTHER)), job=MPIRUN),
            id="while others are still terminating",
        ),
        pytest.param(
            ended((*FIRST, leaving(conditions=SILENT)), job=MPIRUN), id="on a silent node"
        ),
        pytest.param(ended((*FIRST, leaving()), LOST, job=MPIRUN), id="that the launcher lost"),
        pytest.param(ended((*FIRST, leaving(*terminated(143))), job=MPIRUN), id="that has ended"),
    ],
)
def test_a_worker_that_is_being_deleted_may_still_be_lost(seen):
    last, _ = judged(seen, AFTER)
    assert (last.type, last.reason) == ("Failed", "WorkerLost")


def started_again(output=""):
    [status] = terminated(0, output)
    restarted = [status | {"restartCount": 1}]
    return a_launcher_pod(JOB, "Succeeded", age=RAN, containerStatuses=restarted)


@pytest.mark.parametrize(
    ("pods", "output", "verdict"),
    [
        pytest.param(BOTH, "", "Succeeded", id="which may have been before"),
        pytest.param(BOTH, LOST, "Failed", id="which its output reports"),
        pytest.param(FIRST, "", "Failed", id="and was never replaced"),
    ],
)
def test_a_launcher_that_was_started_again_may_lose_a_worker_too(pods, output, verdict):
    seen = ended(pods, hosts=(0,), counts={1: DURING}, job=MPIRUN, pod=started_again(output))
    assert judged(seen)[0].type == verdict


def test_the_clock_of_a_node_is_not_used():
    begun = timedelta(seconds=3)
    seen = dataclasses.replace(
        ended((*FIRST, leaving()), counts={1: DELETED}, job=MPIRUN),
        state=JobState(launcher_done_since=NOW + begun),
    )
    assert make_plan(seen, PLAIN, AFTER).requeue_after == begun


def test_a_worker_lost_before_the_launcher_started_does_not_matter():
    last, _ = judged(ended(FIRST, hosts=(0,), counts={1: BEFORE}, job=MPIRUN))
    assert last.message == SUCCEEDED_MESSAGE


def test_a_verdict_waits_for_reports_of_lost_workers():
    seen = ended(output=LOST)
    just_now = NOW + timedelta(seconds=2.5)
    plan = make_plan(seen, PLAIN, just_now)
    assert plan.requeue_after == timedelta(seconds=72.5)
    assert status_of(seen, plan.problems, just_now).completion_time is None
    assert judged(ended(FIRST, LOST), just_now)[0].type == "Failed"


NEEDS_ALL = running(annotations=FAILS, mpiImplementation="MPICH")
SOON, ENOUGH = NOW + timedelta(seconds=1), NOW + timedelta(seconds=1.5)


@pytest.mark.parametrize(
    ("job", "since", "now", "wait"),
    [
        pytest.param(MPIRUN, NOW, SOON, 0.5, id="Open MPI may have lost a worker"),
        pytest.param(NEEDS_ALL, NOW, SOON, 0.5, id="a job that needs every worker may have, too"),
        pytest.param(MPIRUN, None, SOON, 1.5, id="the time of the end is unknown"),
        pytest.param(MPIRUN, NOW, ENOUGH, None, id="its node would have reported by now"),
        pytest.param(
            running(mpiImplementation="MPICH"), NOW, NOW, None, id="MPICH would have failed"
        ),
    ],
)
def test_nodes_get_time_to_report_lost_workers(job, since, now, wait):
    seen = done(job=job, since=since)
    plan = make_plan(seen, PLAIN, now)
    status = status_of(seen, plan.problems, now)
    assert plan.actions == ()
    assert plan.requeue_after == (timedelta(seconds=wait) if wait else None)
    assert (status.completion_time is None) == bool(wait)


DYING = a_worker(
    JOB,
    1,
    conditions=[{"type": "Ready", "status": "False", "reason": "PodFailed"}],
    containerStatuses=terminated(137, reason="OOMKilled"),
)


@pytest.mark.parametrize(
    ("pods", "verdict"),
    [
        pytest.param(BOTH, "Succeeded", id="no worker"),
        pytest.param(FIRST, "Failed", id="one that is gone"),
        pytest.param((*FIRST, DYING), "Failed", id="one whose phase its node has not changed yet"),
    ],
)
def test_a_worker_lost_meanwhile_counts(pods, verdict):
    assert judged(done(pods, job=MPIRUN), ENOUGH)[0].type == verdict


def test_a_job_whose_outcome_is_undecided_reports_nothing():
    begun = a_job(policy={"suspend": True})
    seen = done(job=begun)
    status = status_of(seen, make_plan(seen, PLAIN, SOON).problems, SOON)
    assert [each.type for each in status.conditions] == ["Created"]
    assert status.replica_statuses == begun.status.replica_statuses


def test_a_job_that_has_become_invalid_fails_too():
    invalid = dataclasses.replace(ended(output=LOST), validation_errors="spec.x: is not known")
    assert make_plan(invalid, PLAIN, NOW).requeue_after == timedelta(seconds=75)
    lost = dataclasses.replace(ended(FIRST, LOST), validation_errors="spec.x: is not known")
    assert judged(lost)[0].type == "Failed"


def test_a_verdict_without_a_loss_needs_no_requeue():
    assert make_plan(ended(), PLAIN, NOW).requeue_after is None


@pytest.mark.parametrize(
    ("output", "workers"),
    [
        pytest.param("", [], id="no output"),
        pytest.param(f"step 7\n{LOST}\n", ["pi-worker-1"], id="among other lines"),
        pytest.param(f"{LOST}\n{WENT_ON}\n", [], id="it went on"),
        pytest.param(
            f"{LOST}\n{WENT_ON}\n{LOST.replace('worker-1', 'worker-2')}",
            ["pi-worker-2"],
            id="it went on, and lost another",
        ),
    ],
)
def test_which_workers_were_lost_last(output, workers):
    assert [contact.worker for contact in lost_contacts(output)] == workers
