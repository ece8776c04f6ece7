import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.local.apiserver.patches import PatchError, merged, patched


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
def test_merge_patches_of_the_standard(target, patch, result):
    assert merged(target, patch) == result


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
def test_any_merge_patch_does_what_the_standard_says_and_changes_nothing_given(target, patch):
    before = copy.deepcopy((target, patch))
    result = merged(target, patch)
    assert (target, patch) == before
    assert result == reference(copy.deepcopy(target), copy.deepcopy(patch))


@given(json, json)
def test_merging_twice_is_merging_once(target, patch):
    once = merged(target, patch)
    assert merged(once, patch) == once


STEPS = [  # RFC 6902, appendix A, and the corners of RFC 6901
    pytest.param(
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"foo": "bar", "baz": "qux"},
        id="add a member",
    ),
    pytest.param(
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
        id="add an element",
    ),
    pytest.param(
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc"]}],
        {"foo": ["bar", ["abc"]]},
        id="add at the end",
    ),
    pytest.param(
        {"foo": 1},
        [{"op": "add", "path": "/foo", "value": 2}],
        {"foo": 2},
        id="add what is there",
    ),
    pytest.param(
        {"baz": "qux", "foo": "bar"},
        [{"op": "remove", "path": "/baz"}],
        {"foo": "bar"},
        id="remove a member",
    ),
    pytest.param(
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
        id="remove an element",
    ),
    pytest.param(
        {"foo": [1, {"a": 1}]},
        [{"op": "replace", "path": "/foo/1/a", "value": 2}],
        {"foo": [1, {"a": 2}]},
        id="replace inside of a list",
    ),
    pytest.param(
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        id="move a member",
    ),
    pytest.param(
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
        id="move an element",
    ),
    pytest.param(
        {"foo": {"a": 1}},
        [{"op": "copy", "from": "/foo", "path": "/bar"}],
        {"foo": {"a": 1}, "bar": {"a": 1}},
        id="copy",
    ),
    pytest.param(
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}, {"op": "remove", "path": "/~1"}],
        {"~1": 10},
        id="escaped names",
    ),
    pytest.param(
        {"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}, id="the whole"
    ),
    pytest.param(
        {"a": {"b": 1}},
        [{"op": "move", "from": "/a", "path": ""}],
        {"b": 1},
        id="move a part over the whole",
    ),
    pytest.param({"": 1}, [{"op": "remove", "path": "/"}], {}, id="an empty name"),
]


@pytest.mark.parametrize(("document", "steps", "result"), STEPS)
def test_json_patches_of_the_standard(document, steps, result):
    before = copy.deepcopy(document)
    assert patched(document, steps) == result
    assert document == before


@pytest.mark.parametrize(
    "step",
    [
        pytest.param({"op": "add", "path": "/baz/bat", "value": "qux"}, id="no parent"),
        pytest.param({"op": "add", "path": "/list/3", "value": 1}, id="past the end"),
        pytest.param({"op": "add", "path": "/list/01", "value": 1}, id="a leading zero"),
        pytest.param({"op": "add", "path": "/list/-1", "value": 1}, id="a negative index"),
        pytest.param({"op": "add", "path": "/list/x", "value": 1}, id="a name in a list"),
        pytest.param({"op": "add", "path": "foo", "value": 1}, id="no pointer"),
        pytest.param({"op": "add", "path": "/foo"}, id="no value"),
        pytest.param({"op": "add", "value": 1}, id="no path"),
        pytest.param({"op": "remove", "path": "/nothing"}, id="remove what is not there"),
        pytest.param({"op": "replace", "path": "/nothing", "value": 1}, id="replace nothing"),
        pytest.param({"op": "move", "from": "/map", "path": "/map/a"}, id="into itself"),
        pytest.param({"op": "test", "path": "/foo", "value": "baz"}, id="a test that fails"),
        pytest.param({"op": "test", "path": "/one", "value": True}, id="one is not true"),
        pytest.param({"op": "spam", "path": "/foo"}, id="an unknown operation"),
        pytest.param({"path": "/foo"}, id="no operation"),
        pytest.param({"op": "add", "path": "/foo/a", "value": 1}, id="into a text"),
    ],
)
def test_a_step_that_cannot_be_done_is_told(step):
    document = {"foo": "bar", "list": [1, 2], "map": {"a": 1}, "one": 1}
    with pytest.raises(PatchError):
        patched(document, [step])
