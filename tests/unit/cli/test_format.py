"""Short text for people."""

from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator.cli.format import age, counted, gist, table

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")],
)
def test_an_age_has_one_unit(seconds, text):
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


def test_an_unknown_time_has_no_age():
    assert age(None, NOW) == "-"


def test_columns_are_aligned():
    assert table([("A", "B"), ("long", "")], "> ") == "> A     B\n> long"


BANNER = """Job has reached the specified backoff limit: -------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated.
-------------------------"""


@pytest.mark.parametrize(
    ("message", "line"),
    [
        pytest.param("it broke", "it broke", id="one line"),
        pytest.param("----\n\n  it broke\nbadly\n", "it broke", id="a frame"),
        pytest.param(
            BANNER,
            "Job has reached the specified backoff limit: prterun detected that one or more "
            "processes exited with non-zero status",
            id="a colon joins the next line",
        ),
        pytest.param("error:", "error", id="a colon at the end"),
        pytest.param("x" * 200, "x" * 159 + "…", id="long"),
        pytest.param("----", "----", id="only a frame"),
        pytest.param("", "", id="empty"),
    ],
)
def test_the_gist_of_a_message_is_one_line(message, line):
    assert gist(message) == line


@pytest.mark.parametrize(("number", "text"), [(0, "0 workers"), (1, "1 worker"), (2, "2 workers")])
def test_one_thing_is_singular(number, text):
    assert counted(number, "worker") == text
