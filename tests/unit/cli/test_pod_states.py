"""How pods are shown: while their job runs, and when it is over."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpi_operator.cli.job_output.job_stream import detail_of
from mpi_operator.cli.job_output.outcome import interrupted
from mpi_operator.cli.job_output.pod_column import state_of
from mpi_operator.cli.known_jobs.local_jobs import FinishedJob
from mpi_operator.cli.known_jobs.printers import as_table
from mpi_operator.cli.verbs.describe import description
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.runs.finished import FinishedRun
from mpi_operator.local.runs.records import Record
from tests.support.mpijobs import mpijob

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = {"terminated": {"exitCode": 7, "reason": "Error"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 0.2s restarting"}}
RUNNING: Manifest = {"running": {}}


def pod(name="pi-launcher-x", phase="Running", *, created="00", deleted=False, **status):
    role = "worker" if "worker" in name else "launcher"
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": f"2026-01-01T00:00:{created}Z",
            "labels": {"training.kubeflow.org/job-role": role},
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
        },
        "status": {"phase": phase, **status},
    }


def init(state, last=None):
    return {"initContainerStatuses": [{"name": "setup", "state": state, "lastState": last or {}}]}


def main(state, last=None, restarts=0):
    status = {"name": "l", "state": state, "lastState": last or {}, "restartCount": restarts}
    return {"containerStatuses": [status]}


@pytest.mark.parametrize(
    ("shown", "is_over", "state"),
    [
        pytest.param(pod(), False, "Running", id="running"),
        pytest.param(pod(deleted=True), False, "Terminating", id="terminating"),
        pytest.param(pod(), True, "Ended", id="of an ended job"),
        pytest.param(pod(phase="Pending"), True, "Ended", id="never started"),
        pytest.param(pod(**main(BACK_OFF, FAILED, 1)), True, "Failed", id="not restarted"),
        pytest.param(pod(deleted=True), True, "Ended", id="deleted at the end"),
        pytest.param(pod(phase="Failed"), True, "Failed", id="failed"),
        pytest.param(pod(phase="Succeeded", deleted=True), True, "Succeeded", id="succeeded"),
        pytest.param(pod(phase="Failed", **init(FAILED)), False, "Init:Error", id="init failed"),
        pytest.param(pod(phase="Pending", **init(FAILED)), False, "Init:Error", id="init ended"),
        pytest.param(
            pod(phase="Pending", **init(BACK_OFF, FAILED)),
            False,
            "Init:CrashLoopBackOff",
            id="init waits for its restart",
        ),
        pytest.param(
            pod(phase="Pending", **init(BACK_OFF, FAILED)), True, "Init:Error", id="init gave up"
        ),
        pytest.param(pod(phase="Pending", **init(DONE)), False, "Pending", id="init is done"),
        pytest.param(
            pod(phase="Pending", **init(RUNNING, FAILED)), False, "Pending", id="init runs again"
        ),
    ],
)
def test_states(shown, is_over, state):
    assert state_of(shown, is_over=is_over) == state


@pytest.mark.parametrize(
    ("shown", "detail"),
    [
        pytest.param(pod(**main(BACK_OFF, FAILED, 1)), "", id="it may never be restarted"),
        pytest.param(
            pod(**main(RUNNING, FAILED, 2)), "restart 2 after exit code 7", id="restarted"
        ),
        pytest.param(pod(**main(RUNNING)), "", id="running"),
        pytest.param(
            pod(**main({"waiting": {"reason": "ContainerCreating", "message": "no x"}})),
            "no x",
            id="something is missing",
        ),
        pytest.param(
            pod(**init(FAILED)), "init container setup failed with exit code 7", id="init failed"
        ),
    ],
)
def test_details(shown, detail):
    assert detail_of(shown) == detail


def test_list_and_describe_agree_about_a_job_that_was_scaled_down_and_interrupted():
    job = mpijob("pi", worker={"replicas": 2})
    job["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    job["status"] = {"replicaStatuses": {"Worker": {"active": 2}}}
    found = FinishedJob("1-a", FinishedRun(Path("/1-a"), Record([])), job, interrupted(2))
    pods = [
        *(pod(f"pi-worker-{index}", deleted=index > 1) for index in range(4)),
        pod("pi-worker-0", created="01"),
        pod(),
    ]
    text = "\n".join(description(found, pods, [], NOW))
    assert as_table([found]).splitlines()[1].split()[:4] == ["pi", "1-a", "Interrupted", "2"]
    assert "running" not in text
    shown = [line.split()[:2] for line in text.partition("\npods\n")[2].splitlines() if line]
    assert shown[:3] == [
        ["pi-launcher-x", "Ended"],
        ["pi-worker-0", "Ended"],
        ["pi-worker-1", "Ended"],
    ]
