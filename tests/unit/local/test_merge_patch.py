import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.local.apiserver.updates import merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(target, patch, result):
    assert merge_patch(target, patch) == result


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["x", "y"])
names = st.sampled_from("abc")
json = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner), max_leaves=8
)


def reference(target, patch):
    """The pseudo-code of RFC 7386, word by word."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            if name in target:
                del target[name]
        else:
            target[name] = reference(target.get(name), value)
    return target


@given(json, json)
def test_any_patch_is_merged_as_the_rfc_says_and_arguments_stay_unchanged(target, patch):
    before = copy.deepcopy((target, patch))
    result = merge_patch(target, patch)
    assert (target, patch) == before
    assert result == reference(copy.deepcopy(target), copy.deepcopy(patch))


@given(json, json)
def test_merging_twice_is_merging_once(target, patch):
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
