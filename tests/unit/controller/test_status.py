"""What the status of a job says. Spec 3.2 to 3.5, with its defects corrected."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec.structs import replace as changed

from mpi_operator.api.types import Condition, ConditionStatus, ConditionType, MPIJobStatus
from mpi_operator.controller.observed import Observed
from mpi_operator.controller.problems import Problem
from mpi_operator.controller.status import decide_status, status_of
from tests.support.observations import (
    A_WHILE,
    NOW,
    RUNNING_MESSAGE,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_worker,
    complete,
    failed,
    observed,
    with_status,
    workers,
)

EARLIER = NOW - timedelta(minutes=10)
LATER = NOW + timedelta(minutes=10)
QUOTA = Problem("QuotaExceeded", "Pod pi-worker-0 was not created: exceeded quota")
FATAL = Problem("InvalidPodTemplate", "Pod pi-worker-0 was not created: Invalid", is_fatal=True)
SUSPEND = {"policy": {"suspend": True}}


def status_now(seen):
    """The status of a job without problems."""
    return status_of(seen, [], NOW)


def conditions(status):
    """The conditions in short, in their order."""
    return [f"{each.type}={each.status.value} {each.reason}" for each in status.conditions]


def the(status, kind):
    [found] = [each for each in status.conditions if each.type == kind]
    return found


def condition(kind, status="True", reason="", since=EARLIER, message=""):
    return Condition(
        type=kind,
        status=ConditionStatus(status),
        reason=reason or f"MPIJob{kind}",
        message=message,
        last_update_time=since,
        last_transition_time=since,
    )


CREATED = condition("Created")
RUNNING = condition("Running", message=RUNNING_MESSAGE)
SUSPENDED = condition("Suspended", message="MPIJob suspended")


def job_with(*known, workers=2, start_time=EARLIER, **changes):
    """A job that was reconciled before."""
    status = MPIJobStatus(conditions=known, start_time=start_time)
    return with_status(a_job(workers, **changes), status)


def running(job, *phases, launcher_phase="Running", **more):
    """A job with a launcher pod and workers in these phases."""
    return observed(
        job,
        workers(job, *(phases or ["Running"] * job.spec.worker_count)),
        launcher=a_launcher(job, active=1),
        launcher_pods=(a_launcher_pod(job, launcher_phase),),
        **more,
    )


def ended(job, status, **more):
    return observed(job, launcher=a_launcher(job, **status), **more)


# --- conditions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "problems", "expected"),
    [
        pytest.param(
            Observed(a_job()), [], ["Created=True MPIJobCreated"], id="the first reconcile"
        ),
        pytest.param(
            Observed(a_job(**SUSPEND)),
            [],
            [
                "Created=True MPIJobCreated",
                "Running=False MPIJobSuspended",
                "Suspended=True MPIJobSuspended",
            ],
            id="suspended from the start",
        ),
        pytest.param(
            running(job_with(CREATED)),
            [],
            ["Created=True MPIJobCreated", "Running=True MPIJobRunning"],
            id="all pods run",
        ),
        pytest.param(
            running(job_with(CREATED), "Running", "Pending"),
            [],
            ["Created=True MPIJobCreated"],
            id="a worker does not run yet",
        ),
        pytest.param(
            running(job_with(CREATED), "Running"),
            [],
            ["Created=True MPIJobCreated"],
            id="a worker is not there yet",
        ),
        pytest.param(
            running(job_with(CREATED), launcher_phase="Pending"),
            [],
            ["Created=True MPIJobCreated"],
            id="the launcher does not run yet",
        ),
        pytest.param(
            observed(job_with(CREATED), workers(a_job(), "Running", "Running")),
            [],
            ["Created=True MPIJobCreated"],
            id="there is no launcher yet",
        ),
        pytest.param(
            running(job_with(CREATED, RUNNING), "Running", "Failed"),
            [],
            ["Created=True MPIJobCreated", "Running=True MPIJobRunning"],
            id="a worker failed, and the job continues",
        ),
        pytest.param(
            running(job_with(CREATED, RUNNING), launcher_phase="Failed"),
            [],
            ["Created=True MPIJobCreated", "Running=True MPIJobRunning"],
            id="the launcher is tried again",
        ),
        pytest.param(
            observed(job_with(CREATED, RUNNING, **SUSPEND), launcher=a_launcher(a_job())),
            [],
            [
                "Created=True MPIJobCreated",
                "Running=False MPIJobSuspended",
                "Suspended=True MPIJobSuspended",
            ],
            id="suspended while it ran",
        ),
        pytest.param(
            observed(
                job_with(CREATED, SUSPENDED, condition("Running", "False", "MPIJobSuspended"))
            ),
            [],
            [
                "Running=False MPIJobSuspended",
                "Suspended=False MPIJobResumed",
                "Created=True MPIJobCreated",
            ],
            id="resumed, and not running yet",
        ),
        pytest.param(
            ended(job_with(CREATED, RUNNING), complete()),
            [],
            [
                "Created=True MPIJobCreated",
                "Running=False MPIJobRunning",
                "Succeeded=True MPIJobSucceeded",
            ],
            id="succeeded",
        ),
        pytest.param(
            ended(job_with(CREATED, RUNNING), failed("DeadlineExceeded")),
            [],
            [
                "Created=True MPIJobCreated",
                "Running=False MPIJobRunning",
                "Failed=True DeadlineExceeded",
            ],
            id="failed",
        ),
        pytest.param(
            ended(job_with(CREATED), complete()),
            [],
            [
                "Created=True MPIJobCreated",
                "Running=False MPIJobRunning",
                "Succeeded=True MPIJobSucceeded",
            ],
            id="succeeded before it was seen running",
        ),
        pytest.param(
            Observed(a_job(), validation_errors="spec: is wrong"),
            [Problem("ValidationError", "spec: is wrong")],
            ["Running=False ValidationError", "Created=True MPIJobCreated"],
            id="invalid",
        ),
    ],
)
def test_the_conditions_of_a_job(seen, problems, expected):
    assert conditions(status_of(seen, problems, NOW)) == expected


@pytest.mark.parametrize(
    ("seen", "kind", "message"),
    [
        (Observed(a_job()), "Created", "MPIJob lab/pi is created."),
        (running(job_with(CREATED)), "Running", "MPIJob lab/pi is running."),
        (Observed(a_job(**SUSPEND)), "Suspended", "MPIJob suspended"),
        (Observed(a_job(**SUSPEND)), "Running", "MPIJob lab/pi is suspended."),
        (observed(job_with(CREATED, SUSPENDED)), "Suspended", "MPIJob resumed"),
        (
            ended(job_with(CREATED), complete()),
            "Succeeded",
            "MPIJob lab/pi successfully completed.",
        ),
        (
            ended(job_with(CREATED), complete()),
            "Running",
            "MPIJob lab/pi is finished but Running condition was never set.",
        ),
    ],
)
def test_the_sentences_of_conditions(seen, kind, message):
    assert the(status_of(seen, [], NOW), kind).message == message


def test_a_job_that_ran_keeps_its_running_reason_when_it_ends():
    job = job_with(CREATED, RUNNING)
    pod = a_launcher_pod(job)  # the cache of pods is behind that of Jobs
    status = status_now(ended(job, complete(), launcher_pods=(pod,)))
    assert the(status, "Running") == changed(RUNNING, status=ConditionStatus.FALSE)
    assert status.replica_statuses.launcher.active == 0


@pytest.mark.parametrize("end", [complete(), failed()], ids=["succeeded", "failed"])
def test_the_end_is_the_newest_condition_and_comes_last(end):
    just_now = condition("Running", since=NOW)
    status = status_now(ended(job_with(CREATED, just_now), end))
    *others, last = status.conditions
    newest = max(each.last_transition_time for each in others)
    assert last.last_transition_time - newest >= timedelta(seconds=1)
    assert last.type in ("Succeeded", "Failed")


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([CREATED, condition("Running", since=NOW)], id="it was seen to run just now"),
        pytest.param([CREATED, condition("Running", since=EARLIER)], id="it ran for long"),
        pytest.param([CREATED], id="it was not seen running"),
        pytest.param([], id="there are no conditions"),
        pytest.param(
            [Condition(type="Running", status=ConditionStatus.TRUE)], id="a condition without times"
        ),
    ],
)
@pytest.mark.parametrize("end", [complete(NOW - A_WHILE), failed(at=NOW - A_WHILE)])
def test_a_job_never_ran_after_it_completed(known, end):
    status = status_now(ended(job_with(*known), end))
    ran = the(status, "Running")
    assert not ran.is_true
    assert (ran.last_transition_time or EARLIER) <= status.completion_time
    assert (ran.last_update_time or EARLIER) <= status.completion_time


def test_a_job_that_was_resumed_and_ended_unseen_is_not_suspended():
    job = job_with(CREATED, SUSPENDED, condition("Running", "False", "MPIJobSuspended"))
    status = status_of(ended(job, complete(NOW - A_WHILE)), [], NOW)
    assert "Suspended=False MPIJobResumed" in conditions(status)
    assert conditions(status)[-1] == "Succeeded=True MPIJobSucceeded"


def test_a_job_that_is_suspended_and_becomes_invalid_is_not_resumed():
    stored = condition("Running", "False", "MPIJobSuspended")
    job = job_with(CREATED, SUSPENDED, stored, **SUSPEND)
    invalid = Problem("ValidationError", "spec: is wrong")
    status = status_of(Observed(job, validation_errors="spec: is wrong"), [invalid], NOW)
    assert conditions(status) == [
        "Created=True MPIJobCreated",
        "Running=False ValidationError",
        "Suspended=True MPIJobSuspended",
    ]


@pytest.mark.parametrize(
    "end", [condition("Succeeded"), condition("Failed")], ids=["succeeded", "failed"]
)
def test_a_finished_status_stays_the_same(end):
    job = job_with(CREATED, changed(RUNNING, status=ConditionStatus.FALSE), end)
    job = with_status(job, changed(job.status, completion_time=NOW))
    seen = running(job)
    assert status_of(seen, [FATAL], LATER) == job.status


def test_an_end_without_its_time_gets_one():
    job = job_with(CREATED, condition("Failed", since=EARLIER))
    assert status_of(observed(job), [], NOW).completion_time == EARLIER


# --- problems ---------------------------------------------------------------------------------


def test_a_problem_is_reported_when_the_job_does_not_run():
    ran = the(status_of(Observed(a_job()), [QUOTA], NOW), "Running")
    assert (ran.status, ran.reason, ran.message) == ("False", QUOTA.reason, QUOTA.message)


def test_a_running_job_stays_running_and_reports_its_problem():
    seen = running(job_with(CREATED, RUNNING), "Running")
    ran = the(status_of(seen, [QUOTA], NOW), "Running")
    assert (ran.is_true, ran.reason) == (True, "MPIJobRunning")
    assert ran.message == f"{RUNNING_MESSAGE} {QUOTA.message}"


def test_a_job_stops_running_when_its_launcher_does_and_there_is_a_problem():
    seen = running(job_with(CREATED, RUNNING), launcher_phase="Pending")
    assert the(status_of(seen, [QUOTA], NOW), "Running").reason == "QuotaExceeded"


@pytest.mark.parametrize(
    ("known", "after"),
    [
        pytest.param(condition("Running", "False", "QuotaExceeded"), "MPIJobStarting", id="quota"),
        pytest.param(
            condition("Running", "False", "MPIJobStarting"), "MPIJobStarting", id="nothing since"
        ),
        pytest.param(
            condition("Running", "False", "MPIJobSuspended"), "MPIJobSuspended", id="a suspension"
        ),
    ],
)
def test_a_problem_that_has_passed_is_no_longer_reported(known, after):
    status = status_of(observed(job_with(CREATED, known)), [], NOW)
    assert the(status, "Running").reason == after


def test_a_running_job_does_not_report_old_problems():
    seen = running(job_with(CREATED, condition("Running", "False", "QuotaExceeded")))
    ran = the(status_of(seen, [], NOW), "Running")
    assert (ran.is_true, ran.message) == (True, RUNNING_MESSAGE)


def test_a_suspended_job_reports_its_problem():
    status = status_of(Observed(a_job(**SUSPEND)), [QUOTA], NOW)
    assert "Suspended=True MPIJobSuspended" in conditions(status)
    assert "Running=False QuotaExceeded" in conditions(status)


@pytest.mark.parametrize(
    ("age", "is_reworded"), [(1, False), (29, False), (30, True)], ids=["1s", "29s", "30s"]
)
def test_a_reworded_message_of_the_same_problem_waits(age, is_reworded):
    known = condition("Running", "False", "QuotaExceeded", NOW - timedelta(seconds=age), "before")
    status = status_of(observed(job_with(CREATED, known)), [QUOTA], NOW)
    assert (the(status, "Running").message == QUOTA.message) == is_reworded


@pytest.mark.parametrize(
    ("message", "problems", "is_due"),
    [
        pytest.param("before", [QUOTA], True, id="another message"),
        pytest.param(QUOTA.message, [QUOTA], False, id="the same message"),
        pytest.param("before", [], False, id="no problem any more"),
    ],
)
def test_a_delayed_message_is_requeued_for(message, problems, is_due):
    just_now = NOW - timedelta(seconds=1)
    known = condition("Running", "False", "QuotaExceeded", just_now, message)
    seen = observed(job_with(CREATED, known))
    wait = decide_status(seen, problems, NOW).requeue_after
    assert wait == (timedelta(seconds=30) if is_due else None)


@pytest.mark.parametrize(
    ("launcher", "has_failed"),
    [
        pytest.param(None, True, id="there is no launcher"),
        pytest.param(a_launcher(a_job(), suspend=True), True, id="the launcher is suspended"),
        pytest.param(a_launcher(a_job()), False, id="the launcher is under way"),
    ],
)
def test_a_fatal_problem_ends_a_job_that_has_not_started(launcher, has_failed):
    status = status_of(observed(a_job(), launcher=launcher), [QUOTA, FATAL], NOW)
    assert ("Failed=True InvalidPodTemplate" in conditions(status)) == has_failed
    assert (status.completion_time == NOW) == has_failed


def test_a_launcher_that_succeeded_overrides_any_problem():
    status = status_of(ended(job_with(CREATED), complete()), [FATAL], NOW)
    assert conditions(status)[-1] == "Succeeded=True MPIJobSucceeded"


# --- counts -----------------------------------------------------------------------------------


def counts(replicas):
    return (replicas.active, replicas.succeeded, replicas.failed) if replicas else None


@pytest.mark.parametrize(
    ("seen", "launcher", "worker"),
    [
        pytest.param(Observed(a_job()), None, (0, 0, 0), id="nothing yet"),
        pytest.param(running(a_job(8)), (1, 0, 0), (8, 0, 0), id="all run"),
        pytest.param(
            running(a_job(8), *["Pending"] * 8), (1, 0, 0), (0, 0, 0), id="pending counts nowhere"
        ),
        pytest.param(
            running(a_job(5), "Running", "Failed", "Failed", "Succeeded", "Unknown"),
            (1, 0, 0),
            (1, 1, 2),
            id="by phase",
        ),
        pytest.param(
            observed(a_job(16), workers(a_job(16), *["Running"] * 16)),
            None,
            (16, 0, 0),
            id="no launcher yet",
        ),
        pytest.param(
            observed(
                a_job(0, runLauncherAsWorker=True),
                launcher=a_launcher(a_job(), active=1, failed=1),
                launcher_pods=(
                    a_launcher_pod(a_job(), "Failed"),
                    a_launcher_pod(a_job(), number=1),
                ),
            ),
            (1, 0, 1),
            (0, 0, 0),
            id="a second try runs",
        ),
        pytest.param(
            observed(
                a_job(),
                launcher=a_launcher(a_job(), active=1),
                launcher_pods=(a_launcher_pod(a_job(), "Pending"),),
            ),
            (0, 0, 0),
            (0, 0, 0),
            id="active for the Job is not running yet",
        ),
        pytest.param(
            running(a_job(8, **SUSPEND)), (1, 0, 0), (0, 0, 0), id="suspended, the launcher ending"
        ),
        pytest.param(
            observed(
                a_job(8),
                workers(a_job(8), *["Running"] * 8),
                launcher=a_launcher(a_job(), failed=1, **complete()),
                launcher_pods=(a_launcher_pod(a_job()),),
            ),
            (0, 1, 1),
            (0, 0, 0),
            id="succeeded after a failed try",
        ),
        pytest.param(
            observed(a_job(8), launcher=a_launcher(a_job(), failed=2, **failed())),
            (0, 0, 2),
            (0, 0, 0),
            id="failed",
        ),
        pytest.param(
            observed(a_job(None, runLauncherAsWorker=True)), None, None, id="no worker spec"
        ),
        pytest.param(
            observed(a_job(1), [a_worker(a_job(1), 0), a_worker(a_job(9), 8)]),
            None,
            (1, 0, 0),
            id="pods of a formerly larger size do not count",
        ),
        pytest.param(
            observed(a_job(1), [a_worker(a_job(1), 0, deleted=timedelta(0))]),
            None,
            (0, 0, 0),
            id="what is ending does not count",
        ),
    ],
)
def test_how_many_pods_there_are(seen, launcher, worker):
    found = status_of(seen, [], NOW).replica_statuses
    assert counts(found.launcher) == launcher
    assert counts(found.worker) == worker


# --- times and other fields -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "start"),
    [
        pytest.param(Observed(a_job()), NOW, id="the first reconcile"),
        pytest.param(Observed(a_job(**SUSPEND)), None, id="suspended from the start"),
        pytest.param(
            Observed(a_job(), validation_errors="wrong"), None, id="invalid from the start"
        ),
        pytest.param(running(job_with(CREATED, RUNNING)), EARLIER, id="later"),
        pytest.param(observed(job_with(CREATED, RUNNING, **SUSPEND)), EARLIER, id="suspended"),
        pytest.param(observed(job_with(CREATED, SUSPENDED)), NOW, id="resumed"),
        pytest.param(
            observed(job_with(CREATED, SUSPENDED, start_time=None)), NOW, id="resumed at last"
        ),
    ],
)
def test_when_a_job_started(seen, start):
    assert status_of(seen, [], NOW).start_time == start


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([], id="it was never reconciled"),
        pytest.param([CREATED, SUSPENDED], id="not reconciled since it was resumed"),
    ],
)
def test_a_job_never_started_after_it_completed(known):
    job = job_with(*known, start_time=None)
    status = status_now(ended(job, complete(NOW - A_WHILE)))
    assert status.start_time <= status.completion_time


@pytest.mark.parametrize(
    ("launcher", "completed"),
    [
        pytest.param(complete(NOW - A_WHILE), NOW - A_WHILE, id="succeeded, when the Job did"),
        pytest.param(failed(at=NOW - A_WHILE), NOW - A_WHILE, id="failed, when the Job did"),
        pytest.param(
            {"conditions": [{"type": "Complete", "status": "True"}]},
            NOW,
            id="succeeded, time unknown",
        ),
        pytest.param({"active": 1}, None, id="not yet"),
        pytest.param(
            {"conditions": [{"type": "Failed", "status": "False"}]}, None, id="not at all"
        ),
    ],
)
def test_when_a_job_completed(launcher, completed):
    seen = ended(job_with(CREATED, condition("Running", since=EARLIER)), launcher)
    assert status_of(seen, [], NOW).completion_time == completed


def test_a_status_says_which_spec_it_is_about():
    assert status_of(Observed(a_job(generation=7)), [], NOW).observed_generation == 7


@pytest.mark.parametrize(
    ("known", "generation"),
    [
        pytest.param(1, 7, id="by us: updated"),
        pytest.param(None, None, id="by an operator that does not set it: no write for that alone"),
    ],
)
def test_a_finished_job_keeps_its_observed_generation_up_to_date(known, generation):
    ended = MPIJobStatus(
        conditions=(condition("Succeeded"),),
        completion_time=NOW,
        observed_generation=known,
    )
    job = with_status(a_job(generation=7), ended)
    assert status_of(Observed(job), [], NOW) == changed(ended, observed_generation=generation)


def test_a_status_selects_the_workers():
    assert status_of(Observed(a_job()), [], NOW).selector == (
        "training.kubeflow.org/operator-name=mpi-operator,"
        "training.kubeflow.org/job-name=pi,training.kubeflow.org/job-role=worker"
    )


@pytest.mark.parametrize("problems", [[], [QUOTA], [FATAL]], ids=["none", "quota", "fatal"])
@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(Observed(a_job()), id="first reconcile"),
        pytest.param(Observed(a_job(**SUSPEND)), id="suspended"),
        pytest.param(Observed(a_job(), validation_errors="wrong"), id="invalid"),
        pytest.param(running(a_job()), id="running"),
        pytest.param(running(a_job(), "Running", "Failed"), id="running, a worker failed"),
        pytest.param(running(job_with(CREATED, RUNNING), launcher_phase="Failed"), id="retrying"),
        pytest.param(observed(job_with(CREATED, SUSPENDED)), id="resumed"),
        pytest.param(ended(job_with(CREATED), complete()), id="succeeded"),
        pytest.param(ended(job_with(CREATED, RUNNING), failed()), id="failed"),
    ],
)
def test_a_status_that_is_stored_stays_as_long_as_nothing_happens(seen, problems):
    status = status_of(seen, problems, NOW.replace(microsecond=123456))
    stored = replace(seen, job=with_status(seen.job, status))
    assert status_of(stored, problems, LATER) == status


@pytest.mark.parametrize("kind", [ConditionType.SUCCEEDED, ConditionType.FAILED])
def test_no_condition_says_that_a_job_did_not_end(kind):
    for seen in (Observed(a_job()), running(a_job()), ended(job_with(CREATED), complete())):
        found = [each for each in status_of(seen, [], NOW).conditions if each.type == kind]
        assert all(each.is_true for each in found)
