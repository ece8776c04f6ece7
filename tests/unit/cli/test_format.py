"""Facts in few words."""

from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator.cli.format import age, gist, table

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_an_age_has_one_unit(seconds, words):
    assert age(NOW - timedelta(seconds=seconds), NOW) == words


def test_what_never_was_has_no_age():
    assert age(None, NOW) == "-"


def test_columns_are_as_wide_as_they_have_to_be():
    assert table([("A", "B"), ("long", "")], "> ") == "> A     B\n> long"


BANNER = """Job has reached the specified backoff limit: -------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated.
-------------------------"""


@pytest.mark.parametrize(
    ("message", "line"),
    [
        pytest.param("it broke", "it broke", id="one line"),
        pytest.param("----\n\n  it broke\nbadly\n", "it broke", id="what frames it"),
        pytest.param(
            BANNER,
            "Job has reached the specified backoff limit: prterun detected that one or more "
            "processes exited with non-zero status",
            id="an announcement and what follows",
        ),
        pytest.param("said:", "said", id="an announcement of nothing"),
        pytest.param("x" * 200, "x" * 159 + "…", id="a long one"),
        pytest.param("----", "----", id="nothing that can be read"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_gist_of_a_message_is_one_line(message, line):
    assert gist(message) == line
