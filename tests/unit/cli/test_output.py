"""How `mpijob run` shows a job."""

import io
import json
from pathlib import Path

import pytest

from mpi_operator.cli.job_output.job_stream import Line, PodChanged
from mpi_operator.cli.job_output.outcome import SUCCEEDED
from mpi_operator.cli.job_output.output import JsonOutput, TextOutput, Verdict
from mpi_operator.local.runs.records import End

LAUNCHER = PodChanged("pi-launcher-x7k2f", "launcher", "Running")
WORKER = PodChanged("pi-worker-0", "worker", "Pending")
LINE = Line("pi-launcher-x7k2f", "launcher", b"hi")
FAILURE = Verdict("pi", End("Failed", "failed: it broke:\n----\nbadly", 7), 1.25)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def text_output(err: io.StringIO, *, is_quiet: bool = False) -> TextOutput:
    return TextOutput(is_quiet=is_quiet, out=io.StringIO(), err=err)


def show_pods(output: TextOutput) -> None:
    for pod in (LAUNCHER, WORKER):
        output.show(pod)
    output.refresh()


def test_a_terminal_shows_pods_until_the_launcher_prints():
    err = Terminal()
    output = text_output(err)
    show_pods(output)
    assert "worker-0  starting" in err.getvalue()
    output.show(LINE)
    assert err.getvalue().endswith("\x1b[2A\x1b[J")
    before = err.getvalue()
    output.show(WORKER._replace(phase="Running"))
    output.refresh()
    assert err.getvalue() == before


def test_the_next_attempt_of_the_launcher_shows_them_again():
    err = Terminal()
    output = text_output(err)
    show_pods(output)
    output.show(LINE)
    output.show(LAUNCHER._replace(name="pi-launcher-b"))
    output.refresh()
    assert err.getvalue().endswith("worker-0  starting\x1b[0m\n")


def test_a_terminal_shows_the_progress_that_a_program_reports_below_its_lines():
    err, out, now = Terminal(), io.StringIO(), [0.0]
    output = TextOutput(prefix="none", out=out, err=err, clock=lambda: now[0])
    for step in (10, 20):
        output.show(LINE._replace(printed=f"progress: step={step} total=100 loss=0.5".encode()))
        output.refresh()
        now[0] += 5
    assert err.getvalue().endswith("[####----------------] 20/100  loss 0.5  40s left\x1b[0m\n")
    assert err.getvalue().count("\x1b[1A\x1b[J") == 1
    assert out.getvalue().count("\n") == 2


def test_the_bar_waits_for_the_end_of_a_line():
    err = Terminal()
    output = text_output(err)
    output.show(LINE._replace(printed=b"progress: step=1 total=2"))
    output.show(LINE._replace(printed=b"half of a", end=b""))
    output.refresh()
    assert err.getvalue() == ""
    output.show(LINE._replace(printed=b" line"))
    output.refresh()
    assert "1/2" in err.getvalue()


@pytest.mark.parametrize(
    ("err", "is_quiet"),
    [
        pytest.param(io.StringIO(), False, id="no terminal"),
        pytest.param(Terminal(), True, id="quiet"),
    ],
)
def test_no_terminal_shows_no_pods(err, is_quiet):
    show_pods(text_output(err, is_quiet=is_quiet))
    assert err.getvalue() == ""


def test_only_the_lines_of_the_job_go_to_stdout():
    out, err = io.StringIO(), io.StringIO()
    output = TextOutput(out=out, err=err)
    output.notice("notice")
    output.show(LINE)
    assert (out.getvalue(), err.getvalue()) == ("hi\n", "notice\n")


def test_the_verdict_is_one_line():
    err = io.StringIO()
    text_output(err).close(FAILURE)
    assert err.getvalue() == "pi failed: it broke: badly (exit code 7, 1.2s)\n"


def test_kept_files_are_reported_with_the_command_that_removes_them():
    err = io.StringIO()
    text_output(err).close(Verdict("pi", SUCCEEDED, 2.0, Path("/place")))
    assert err.getvalue().splitlines() == [
        "pi succeeded (2.0s)",
        "pi left its files in /place",
        "mpijob delete pi  # removes them",
    ]


def test_programs_get_the_whole_verdict():
    out = io.StringIO()
    JsonOutput(out).close(FAILURE)
    verdict = json.loads(out.getvalue())
    assert verdict.pop("time").endswith("Z")
    assert verdict == {
        "type": "verdict",
        "job": "pi",
        "state": "Failed",
        "exitCode": 7,
        "message": "failed: it broke:\n----\nbadly",
        "seconds": 1.25,
    }


def records(out: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_record_about_an_object_is_not_repeated():
    out = io.StringIO()
    output = JsonOutput(out)
    for pod in (WORKER, WORKER, WORKER._replace(phase="Running"), LAUNCHER, WORKER):
        output.show(pod)
    assert [(each["pod"], each["phase"]) for each in records(out)] == [
        ("pi-worker-0", "Pending"),
        ("pi-worker-0", "Running"),
        ("pi-launcher-x7k2f", "Running"),
        ("pi-worker-0", "Pending"),
    ]


def test_programs_get_whole_lines_with_their_stream_and_time():
    out = io.StringIO()
    output = JsonOutput(out)
    output.show(LINE._replace(printed=b"half ", end=b"", is_stderr=True))
    output.show(LINE)
    output.show(LINE._replace(printed=b"a line", is_stderr=True))
    output.show(LINE._replace(printed=b"no end", end=b""))
    output.close(FAILURE)
    lines = [each for each in records(out) if each["type"] == "log"]
    assert [(each["stream"], each["line"]) for each in lines] == [
        ("stdout", "hi"),
        ("stderr", "half a line"),
        ("stdout", "no end"),
    ]
    assert all(each["time"].endswith("Z") for each in records(out))


def test_quiet_hides_everything_but_errors():
    err = io.StringIO()
    output = text_output(err, is_quiet=True)
    output.notice("notice")
    output.close(Verdict("pi", SUCCEEDED, 2.0))
    assert err.getvalue() == ""
    output.close(FAILURE)
    assert err.getvalue() == "pi failed: it broke: badly (exit code 7, 1.2s)\n"


def test_the_cause_of_a_failure_replaces_its_message():
    end = End("Failed", "failed: long story", 1, "ValueError: \x1b[31mboom")
    assert Verdict("pi", end, 1.0).line == (
        "pi failed: ValueError: \\x1b[31mboom (exit code 1, 1.0s)"
    )


@pytest.mark.parametrize(
    ("cause", "last"),
    [
        pytest.param("exit code 7, badly", "exit code 7, badly (1.0s)", id="its own"),
        pytest.param(
            "pi-worker-0: container mpi failed with exit code 3",
            "pi-worker-0: container mpi failed with exit code 3 (exit code 7, 1.0s)",
            id="that of a worker",
        ),
    ],
)
def test_the_exit_code_of_a_job_is_said_once(cause, last):
    assert Verdict("pi", End("Failed", "failed", 7, cause), 1.0).line == f"pi failed: {last}"


def test_with_several_jobs_pods_have_whole_names_until_a_launcher_prints():
    out, err = io.StringIO(), Terminal()
    output = TextOutput(prefix="pod", has_several_jobs=True, out=out, err=err)
    show_pods(output)
    assert "pi-worker-0        starting" in err.getvalue()
    output.show(LINE)
    before = err.getvalue()
    output.show(LAUNCHER._replace(name="tau-launcher-b"))
    output.refresh()
    assert err.getvalue() == before
    assert out.getvalue() == "pi-launcher-x7k2f | hi\n"
