import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube.lines import LineSplitter

CHUNKS = st.lists(st.text("ab\r\n", max_size=6).map(str.encode))


def split(chunks):
    """All complete lines, and the rest."""
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines, splitter.rest


@given(CHUNKS)
def test_any_cutting_into_chunks_gives_the_same_lines(chunks):
    *lines, rest = b"".join(chunks).split(b"\n")
    assert split(chunks) == (lines, rest)


@pytest.mark.parametrize(
    ("chunks", "lines", "rest"),
    [
        pytest.param([], [], b"", id="nothing"),
        pytest.param([b""], [], b"", id="an empty chunk"),
        pytest.param([b"a"], [], b"a", id="no line end yet"),
        pytest.param([b"a\n"], [b"a"], b"", id="a line"),
        pytest.param([b"a", b"b", b"c\nd"], [b"abc"], b"d", id="a line in pieces"),
        pytest.param([b"\n\n"], [b"", b""], b"", id="empty lines are lines"),
        pytest.param([b"a\r\nb\r"], [b"a\r"], b"b\r", id="carriage returns are content"),
        pytest.param([b"a\n", b"\nb"], [b"a", b""], b"b", id="a line end on its own"),
    ],
)
def test_lines(chunks, lines, rest):
    assert split(chunks) == (lines, rest)


def test_asking_for_the_rest_does_not_take_it_away():
    splitter = LineSplitter()
    splitter.feed(b"a")
    assert (splitter.rest, splitter.rest, splitter.feed(b"b\n")) == (b"a", b"a", [b"ab"])


def test_a_long_line_in_many_chunks_costs_no_more_than_its_length():
    started = time.process_time()
    lines, _ = split([b"x" * 64] * 100_000 + [b"\n"])
    assert len(lines[0]) == 6_400_000
    assert time.process_time() - started < 2  # joining chunk by chunk would take minutes
