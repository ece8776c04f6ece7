"""Which workers a launcher waits for, and when its log is read."""

from datetime import timedelta

import pytest

from mpi_operator.build.scripts import Event
from mpi_operator.build.settings import Settings
from mpi_operator.controller.job_state import LogReading
from mpi_operator.controller.launcher_log import check_log, current_reading, waits_in
from mpi_operator.controller.plan import make_plan
from tests.support.mpijobs import template
from tests.support.observations import (
    NOW,
    PLAIN,
    a_job,
    a_launcher_pod,
    observed,
    remote_shell_line,
    started,
    workers,
)

JOB = a_job(3)
UID = "uid-of-launcher-0"
ALONE = a_job(0, runLauncherAsWorker=True)
NO_SSH = Settings(is_local=True)


def says(worker, cause="connect to host x port 22: Connection refused"):
    return remote_shell_line(Event.WAITING, worker, seconds=35, cause=cause)


def running(seconds, **status):
    age = timedelta(minutes=30)
    return a_launcher_pod(JOB, age=age, containerStatuses=started(seconds), **status)


def log_reading(*lines, ago=0, uid=UID):
    waits = waits_in(JOB, [line.encode() for line in lines])
    return LogReading(uid, NOW - timedelta(seconds=ago), waits)


def seen(seconds=60, reading=None, *, job=JOB, phases=("Running",) * 3):
    pods = (running(seconds),) if seconds is not None else ()
    return observed(job, workers(job, *phases), launcher_pods=pods, log_reading=reading)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param(
            [says("pi-worker-1")],
            "pi-worker-1: connect to host x port 22: Connection refused",
            id="one",
        ),
        pytest.param(
            [says("pi-worker-1", "a"), says("pi-worker-0", "b"), says("pi-worker-1", "c")],
            "2 workers, for example pi-worker-0: b",
            id="several",
        ),
        pytest.param(
            [says("pi-worker-2")], None, id="one that does not run: it has its own reason"
        ),
        pytest.param(
            [says("pi-worker-7"), says("x"), says("")], None, id="hosts that are not workers"
        ),
        pytest.param(["mpi-operator: event=waiting worker="], None, id="half a line"),
        pytest.param([remote_shell_line(Event.LOST, cause="a")], None, id="another event"),
        pytest.param(
            ["loss 0.1 [1,0]<stderr>:" + says("pi-worker-1", "a: b")],
            "pi-worker-1: a: b",
            id="behind others",
        ),
    ],
)
def test_what_a_launcher_waits_for(lines, message):
    known = seen(60, log_reading(*lines), phases=("Running", "Running", "Pending"))
    problems = check_log(known, PLAIN, NOW).problems
    assert [each.message for each in problems] == (
        [f"Launcher is waiting for {message}"] if message else []
    )


def test_causes_are_cut_to_fit_into_a_status():
    [(_, cause)] = waits_in(JOB, [says("pi-worker-1", "x" * 10_000).encode()]).items()
    assert len(cause) == 200


def test_any_output_of_a_launcher_can_be_parsed():
    assert waits_in(JOB, [b"\xff\x00", says("pi-worker-1").encode() + b"\xff"])


@pytest.mark.parametrize(
    ("known", "wait"),
    [
        pytest.param(seen(10), 20, id="first after 30s"),
        pytest.param(seen(100, log_reading(ago=10)), 80, id="then in as long as it had run"),
        pytest.param(
            seen(100, log_reading(says("pi-worker-1"), ago=10)), 20, id="sooner if it waits"
        ),
        pytest.param(seen(10, log_reading(ago=60)), 20, id="again after 30s for another container"),
    ],
)
def test_when_the_launcher_log_is_read_next(known, wait):
    request = make_plan(known, PLAIN, NOW).log_request
    assert request is not None
    assert not request.is_due
    assert request.wait == timedelta(seconds=wait)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(seen(30), id="after 30s"),
        pytest.param(seen(600, log_reading(ago=300)), id="after twice as long"),
        pytest.param(seen(60, log_reading(says("pi-worker-1"), ago=30)), id="while it waits"),
    ],
)
def test_a_launcher_log_is_read_now(known):
    request = make_plan(known, PLAIN, NOW).log_request
    assert request is not None
    assert request.is_due


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(seen(None), id="none runs"),
        pytest.param(seen(60, job=ALONE, phases=()), id="the job has no workers"),
        pytest.param(
            observed(
                JOB,
                workers(JOB, *("Running",) * 3),
                launcher_pods=(running(60, conditions=[{"type": "Ready", "status": "False"}]),),
            ),
            id="its node is silent",
        ),
    ],
)
def test_when_the_launcher_log_is_never_read(known):
    assert check_log(known, PLAIN, NOW).request is None


def test_the_container_whose_log_is_read():
    request = check_log(seen(60), PLAIN, NOW).request
    assert request is not None
    assert (request.pod, request.uid, request.container) == (
        "pi-launcher-0",
        UID,
        "mpi",
    )


def own_shell():
    pod = template()
    pod["spec"]["containers"][0]["env"] = [{"name": "OMPI_MCA_plm_rsh_agent", "value": "/my/rsh"}]
    return {"template": pod}


@pytest.mark.parametrize(
    ("job", "settings"),
    [
        pytest.param(JOB, NO_SSH, id="without ssh"),
        pytest.param(a_job(3, launcher=own_shell()), PLAIN, id="its own"),
    ],
)
def test_a_job_without_our_remote_shell_has_no_log_request(job, settings):
    assert check_log(seen(60, job=job), settings, NOW).request is None


WAITED = log_reading(says("pi-worker-1"), ago=5)


@pytest.mark.parametrize(
    ("before", "known", "after"),
    [
        pytest.param(
            None,
            seen(600),
            LogReading(UID, NOW, is_assumed=True),
            id="a launcher that has run for long counts as read",
        ),
        pytest.param(None, seen(10), log_reading(ago=10), id="one that has just started does not"),
        pytest.param(WAITED, seen(600), WAITED, id="what was read is kept"),
        pytest.param(
            log_reading(says("pi-worker-1"), uid="another"),
            seen(40),
            log_reading(ago=40),
            id="of this one only",
        ),
        pytest.param(WAITED, seen(None), None, id="and only while it runs"),
    ],
)
def test_which_log_reading_is_current(before, known, after):
    assert current_reading(before, known, NOW) == after
