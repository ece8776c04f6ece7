"""The format of log lines, whatever is in them."""

import io
import json
import logging
import warnings
from contextlib import contextmanager

import pytest

from mpi_operator.operator.log_format import Format, JsonLines, Level, TextLines, set_up


class Unprintable:
    def __repr__(self):
        raise ValueError("no")

    __str__ = __repr__


def record(message="Something happened", level=logging.INFO, error=None, **fields):
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("mpi_operator.x", level, "x.py", 1, message, (), info)
    vars(made).update(fields)
    return made


def json_line(**of_record):
    text = JsonLines().format(record(**of_record))
    assert "\n" not in text
    return json.loads(text)


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_line_is_an_object_with_the_fields_beside_the_message():
    line = json_line(job="default/pi", count=2, level=logging.WARNING)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "message": "Something happened",
        "logger": "mpi_operator.x",
        "job": "default/pi",
        "count": 2,
    }


def test_an_exception_is_one_field():
    line = json_line(error=raised(ValueError("two\nlines")))
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: two\nlines")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param({"a": [1, None]}, {"a": [1, None]}, id="what JSON knows"),
        pytest.param(Level.INFO, "info", id="an enumeration"),
        pytest.param(ValueError("no"), "no", id="an exception"),
        pytest.param({(1, 2): 3}, {"(1, 2)": 3}, id="keys that are no names"),
        pytest.param("half \ud800", "half \\ud800", id="half a character"),
        pytest.param(b"\xff", "/w==", id="bytes"),
        pytest.param(float("nan"), None, id="no number"),
        pytest.param(Unprintable(), "<a Unprintable that cannot be printed>", id="nothing at all"),
    ],
)
def test_every_field_can_be_written(value, shown):
    line = json_line(fact=value, other="as it is")
    assert line["fact"] == shown
    assert line["other"] == "as it is"
    assert "Something happened" in TextLines().format(record(fact=value))


def test_a_field_that_contains_itself_is_written_as_python_prints_it():
    endless: list[object] = []
    endless.append(endless)
    assert json_line(fact=endless)["fact"] == "[[...]]"


def test_fields_never_hide_those_of_every_line():
    line = json_line(logger="theirs", time="never")
    assert line["logger"] == "mpi_operator.x"
    assert (line["logger_"], line["time_"]) == ("theirs", "never")


def test_people_read_one_line():
    text = TextLines().format(record(job="default/pi", why="not now", retries=2, flags=["--v"]))
    clock, rest = text.split(" ", 1)
    assert clock.count(":") == 2
    expected = "Something happened job=default/pi why='not now' retries=2 flags=['--v']"
    assert rest == f"INFO    {expected}"


def test_people_read_long_lists_line_by_line():
    text = TextLines().format(record(refusals=["pods: no", "jobs: no"]))
    assert text.splitlines()[1:] == ["  refusals: pods: no", "  refusals: jobs: no"]


def test_people_see_stack_traces_as_python_prints_them():
    text = TextLines().format(record(error=raised(ValueError("no"))))
    assert text.splitlines()[1] == "Traceback (most recent call last):"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"message": "a\nERROR forged"}, id="in the message"),
        pytest.param({"field": "a\nERROR forged"}, id="in a field"),
        pytest.param({"field": ["a\nERROR forged", "b"]}, id="in a list"),
    ],
)
def test_nothing_can_be_mistaken_for_another_line(fields):
    lines = TextLines().format(record(**fields)).splitlines()
    assert not any(line.startswith("ERROR") for line in lines)


@contextmanager
def logging_set_up(level, format):
    """Logging as the program sets it up, and afterwards as it was."""
    root, ours = logging.getLogger(), logging.getLogger("mpi_operator")
    before = root.handlers[:], root.level, ours.level
    stream = io.StringIO()
    set_up(level, format, stream)
    try:
        yield stream
    finally:
        logging.captureWarnings(False)
        root.handlers[:], root.level, ours.level = before
        root.setLevel(before[1])
        ours.setLevel(before[2])


def test_libraries_log_warnings_only_whatever_the_level():
    with logging_set_up(Level.DEBUG, Format.JSON) as stream:
        logging.getLogger("mpi_operator.kube").debug("ours")
        logging.getLogger("asyncio").info("theirs")
        logging.getLogger("asyncio").warning("their warning")
    messages = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages == ["ours", "their warning"]


def test_warnings_of_python_are_lines_too():
    with logging_set_up(Level.INFO, Format.JSON) as stream, warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", stacklevel=1)
        logging.captureWarnings(False)
    assert json.loads(stream.getvalue())["logger"] == "py.warnings"
