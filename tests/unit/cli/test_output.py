"""How a job's story is told."""

import io
import json
from pathlib import Path

import pytest

from mpi_operator.cli.job_stream import Line, PodChanged
from mpi_operator.cli.output import Json, Plain, Verdict
from mpi_operator.local.runs.records import End

LAUNCHER = PodChanged("pi-launcher-x7k2f", "launcher", "Running")
WORKER = PodChanged("pi-worker-0", "worker", "Pending")
LINE = Line("pi-launcher-x7k2f", "launcher", b"hi")
FAILURE = Verdict("pi", End("Failed", "failed: it broke:\n----\nbadly", 7), 1.25)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def spoken(voice_and_place):
    voice, aside = voice_and_place
    for happening in (LAUNCHER, WORKER):
        voice.tell(happening)
    voice.idle()
    return aside.getvalue()


def plain(aside: io.StringIO, *, is_quiet: bool = False) -> tuple[Plain, io.StringIO]:
    return Plain(is_quiet=is_quiet, out=io.StringIO(), aside=aside), aside


def test_on_a_terminal_pods_are_seen_until_the_launcher_speaks():
    voice, aside = plain(Terminal())
    assert "worker-0  is starting" in spoken((voice, aside))
    voice.tell(LINE)
    assert aside.getvalue().endswith("\x1b[2A\x1b[J")
    before = aside.getvalue()
    voice.tell(WORKER._replace(phase="Running"))
    voice.idle()
    assert aside.getvalue() == before


def test_with_another_try_of_the_launcher_they_are_seen_again():
    voice, aside = plain(Terminal())
    spoken((voice, aside))
    voice.tell(LINE)
    voice.tell(LAUNCHER._replace(name="pi-launcher-b"))
    voice.idle()
    assert aside.getvalue().endswith("worker-0  is starting\x1b[0m\n")


@pytest.mark.parametrize(
    ("aside", "is_quiet"),
    [
        pytest.param(io.StringIO(), False, id="no terminal"),
        pytest.param(Terminal(), True, id="quiet"),
    ],
)
def test_elsewhere_nothing_is_drawn(aside, is_quiet):
    assert spoken(plain(aside, is_quiet=is_quiet)) == ""


def test_what_the_job_prints_is_apart_from_the_rest():
    out, aside = io.StringIO(), io.StringIO()
    voice = Plain(out=out, aside=aside)
    voice.say("aside")
    voice.tell(LINE)
    assert (out.getvalue(), aside.getvalue()) == ("launcher | hi\n", "aside\n")


def test_the_verdict_is_one_line():
    voice, aside = plain(io.StringIO())
    voice.close(FAILURE)
    assert aside.getvalue() == "pi failed: it broke: badly (exit code 7, 1.2 s)\n"


def test_what_was_kept_is_told_with_how_to_remove_it():
    voice, aside = plain(io.StringIO())
    voice.close(Verdict("pi", End("Succeeded", "succeeded", 0), 2.0, Path("/place")))
    assert aside.getvalue().splitlines() == [
        "pi succeeded (2.0 s)",
        "its files are in /place until `mpijob delete pi`",
    ]


def test_programs_get_the_whole_verdict():
    out = io.StringIO()
    Json(out).close(FAILURE)
    assert json.loads(out.getvalue()) == {
        "type": "verdict",
        "job": "pi",
        "state": "Failed",
        "exitCode": 7,
        "message": "failed: it broke:\n----\nbadly",
        "seconds": 1.25,
    }
