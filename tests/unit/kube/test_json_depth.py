"""JSON that is nested too deep."""

import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube.json_depth import shallow

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_not_deep_stays_as_it_is(value):
    text = msgspec.json.encode(value)
    assert shallow(text) == text


@given(VALUES, st.integers(1, 3))
def test_what_comes_out_is_json_that_is_not_too_deep(value, deepest):
    assert depth(json.loads(shallow(msgspec.json.encode(value), deepest))) <= deepest


def depth(value):
    parts = value.values() if isinstance(value, dict) else value
    is_nested = isinstance(value, dict | list)
    return 1 + max(map(depth, parts), default=0) if is_nested else 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b'{"a":{"b":{"c":1}},"d":2}', b'{"a":{"b":null},"d":2}', id="objects"),
        pytest.param(b"[[[1,[2]],3],4]", b"[[null,3],4]", id="lists"),
        pytest.param(b'{"a":"}]{[\\"[["}', b'{"a":"}]{[\\"[["}', id="brackets in a text"),
    ],
)
def test_what_is_too_far_down_is_null(text, expected):
    assert shallow(text, 2) == expected


def test_nothing_is_too_deep():
    assert len(msgspec.json.decode(shallow(b"[" * 100_000 + b"]" * 100_000))) == 1


def test_cutting_takes_little_more_memory_than_the_text():
    text = b"[" * 1000 + b"]" * 1000 + b"{}," * 100_000
    tracemalloc.start()
    shallow(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(text)
