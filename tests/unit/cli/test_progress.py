"""Who is how far, in lines that change in place."""

import io

import pytest

from mpi_operator.cli import progress
from mpi_operator.cli.job_stream import PodChanged
from mpi_operator.cli.progress import Screen

UP_ONE, UP_TWO = "\x1b[1A\x1b[J", "\x1b[2A\x1b[J"


def worker(number: int, phase: str = "Running", detail: str = "") -> PodChanged:
    return PodChanged(f"pi-worker-{number}", "worker", phase, detail)


LAUNCHER = PodChanged("pi-launcher-x7k2f", "launcher", "Pending")


@pytest.mark.parametrize(
    ("pods", "lines"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param(
            [worker(1), worker(0, "Pending"), LAUNCHER],
            ["  launcher  is starting", "  worker-0  is starting", "  worker-1  runs"],
            id="the launcher first, then workers by number",
        ),
        pytest.param([worker(10), worker(9)], ["  worker-9   runs", "  worker-10  runs"], id="ten"),
        pytest.param([worker(0, "Gone")], [], id="gone"),
        pytest.param(
            [worker(0, "Pending", "no room\nreally")],
            ["  worker-0  is starting: no room"],
            id="why it is not further",
        ),
        pytest.param(
            [*map(worker, range(9)), worker(9, "Pending")],
            [
                *(f"  worker-{number}  runs" for number in range(8)),
                "  and 2 more workers, of which 1 run",
            ],
            id="too many",
        ),
    ],
)
def test_a_line_for_each_pod(pods, lines):
    assert progress.lines(pods) == lines


def test_what_is_shown_replaces_what_was_shown():
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
