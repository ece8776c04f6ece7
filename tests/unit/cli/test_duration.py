"""Durations on the command line."""

import click
import pytest

from mpi_operator.cli.duration import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("1.5", 1.5),
        ("90s", 90.0),
        ("250ms", 0.25),
        ("10m", 600.0),
        ("1h", 3600.0),
        ("1h30m", 5400.0),
        ("2d", 172_800.0),
    ],
)
def test_durations(text, seconds):
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "text",
    ["nan", "inf", "0", "0s", "-1", "1x", "h", "", "1e3", "m5", "1h 5m", "99999999999h", "１"],  # noqa: RUF001
)
def test_other_texts_are_errors(text):
    with pytest.raises(click.BadParameter, match="is not a duration such as 90, 90s, 10m, 1h"):
        Duration().convert(text, None, None)
