"""The state of each pod, in lines that change in place."""

import io

import pytest

from mpi_operator.cli.job_output import progress
from mpi_operator.cli.job_output.job_stream import PodChanged
from mpi_operator.cli.job_output.progress import Screen

UP_ONE, UP_TWO = "\x1b[1A\x1b[J", "\x1b[2A\x1b[J"


def worker(index: int, phase: str = "Running", detail: str = "") -> PodChanged:
    return PodChanged(f"pi-worker-{index}", "worker", phase, detail)


LAUNCHER = PodChanged("pi-launcher-x7k2f", "launcher", "Pending")


@pytest.mark.parametrize(
    ("pods", "lines"),
    [
        pytest.param([], [], id="no pods"),
        pytest.param(
            [worker(1), worker(0, "Pending"), LAUNCHER],
            ["  launcher  starting", "  worker-0  starting", "  worker-1  running"],
            id="the launcher first, then workers by index",
        ),
        pytest.param(
            [worker(10), worker(9)], ["  worker-9   running", "  worker-10  running"], id="ten"
        ),
        pytest.param([worker(0, "Gone")], [], id="gone"),
        pytest.param(
            [worker(0, "Pending", "no room\nreally")],
            ["  worker-0  starting: no room"],
            id="why it is pending",
        ),
        pytest.param(
            [*map(worker, range(9)), worker(9, "Pending")],
            [
                *(f"  worker-{index}  running" for index in range(8)),
                "  2 more workers, 1 running",
            ],
            id="too many",
        ),
    ],
)
def test_a_line_for_each_pod(pods, lines):
    assert progress.lines(pods) == lines


def test_new_lines_replace_the_old_ones():
    out = io.StringIO()
    screen = Screen(out)
    screen.show(["a", "b"])
    screen.show(["a", "b"])
    screen.show(["c"])
    screen.clear()
    screen.clear()
    a, b, c = (f"\x1b[2m{letter}\x1b[0m\n" for letter in "abc")
    assert out.getvalue() == a + b + UP_TWO + c + UP_ONE


def test_a_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    out = io.StringIO()
    Screen(out).show(["x" * 30])
    assert out.getvalue().count("x") == 9
