"""The lines of a remote shell: how they are parsed, and how users read them."""

import pytest

from mpi_operator.build.scripts import Event
from mpi_operator.controller.remote_shell_events import readable, remote_shell_event
from mpi_operator.kube.resources import PODS
from tests.support.observations import remote_shell_line, terminated
from tests.support.worlds import message_of, running_world


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        pytest.param(Event.WAITING, "Launcher has waited 61s for pi-worker-1: reset", id="waiting"),
        pytest.param(Event.GAVE_UP, "Launcher gave up on pi-worker-1 after 61s: reset", id="up"),
        pytest.param(Event.LOST, "Launcher lost pi-worker-1 after 61s: reset", id="lost"),
        pytest.param(Event.CONTINUED, "Launcher continued with pi-worker-1", id="continued"),
    ],
)
def test_users_read_a_sentence_in_place_of_an_event(event, sentence):
    line = remote_shell_line(event, "pi-worker-1", 61, "reset")
    assert readable(f"before\n{line}\nafter") == f"before\n{sentence}\nafter"


@pytest.mark.parametrize("text", ["", "\n", "a\n\nb\n", "mpi-operator: event=", "event=lost"])
def test_other_text_is_left_as_it_is(text):
    assert readable(text) == text


@pytest.mark.parametrize(
    "line",
    [
        "mpi-operator: event=unknown worker=pi-worker-1",
        "mpi-operator: event=lost",
        "mpi-operator: event= worker=pi-worker-1",
    ],
)
def test_a_line_of_another_form_is_no_event(line):
    assert remote_shell_event(line) is None


def test_a_failed_job_reports_a_lost_worker_in_a_sentence():
    world = running_world(policy={"backoffLimit": 0})
    line = remote_shell_line(Event.LOST, "pi-worker-1", 61, "Connection closed")
    ended = {"phase": "Failed", "containerStatuses": terminated(1, line)}
    world.cluster.patch_status(PODS, world.launcher_pod, ended)
    world.kubernetes_acts()
    world.settle()
    lost = "Launcher lost pi-worker-1 after 61s: Connection closed"
    assert message_of(world, "Failed").endswith(f"(exit code 1): {lost}")
