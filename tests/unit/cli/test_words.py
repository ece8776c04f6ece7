"""Facts in few words."""

from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator.cli.words import age, table

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
