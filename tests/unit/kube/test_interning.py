import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.kube.interning import Interner
from mpi_operator.kube.objects import Compact, Condition, Metadata, Object, OwnerReference, Pod


class Odd(Object, frozen=True):
    """What somebody else may want to keep of an object."""

    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    limits: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    items: list[dict[str, str]] = msgspec.field(default_factory=list)
    parts: tuple["Part", ...] = ()
    anything: dict[str, list[str]] = msgspec.field(default_factory=dict)


class Part(Compact, frozen=True):
    """Has a dict in it, so it has no hash."""

    name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)


TEXTS = st.text("ab", max_size=3)
LABELS = st.dictionaries(TEXTS, TEXTS, max_size=3)
ODD = st.builds(
    Odd,
    names=st.lists(TEXTS).map(tuple),
    numbers=st.lists(st.integers(0, 3)).map(tuple),
    pairs=st.lists(st.tuples(TEXTS, TEXTS)).map(tuple),
    limits=st.dictionaries(TEXTS, LABELS, max_size=2),
    items=st.lists(LABELS, max_size=2),
    parts=st.lists(st.builds(Part, name=TEXTS, labels=LABELS), max_size=2).map(tuple),
    anything=st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2), max_size=2),
)


def worker(number):
    """A pod like a thousand others, decoded anew."""
    manifest = {
        "metadata": {
            "name": f"worker-{number}",
            "namespace": "team",
            "labels": {"job-name": "pi", "index": str(number)},
            "ownerReferences": [{"kind": "MPIJob", "name": "pi", "uid": "u", "controller": True}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.json.decode(json.dumps(manifest).encode(), type=Pod)


def test_what_comes_out_equals_what_went_in():
    assert Interner().intern(worker(1)) == worker(1)


@settings(max_examples=60)
@given(st.lists(ODD, max_size=4))
def test_whatever_fields_a_type_has_they_come_out_equal(objects):
    interner = Interner(limit=5)
    for each in objects:
        assert interner.intern(msgspec.convert(msgspec.to_builtins(each), Odd)) == each


def test_equal_parts_of_two_objects_are_one():
    interner = Interner()
    one, other = interner.intern(worker(1)), interner.intern(worker(2))
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.status.conditions is other.status.conditions
    assert one.metadata.namespace is other.metadata.namespace
    assert one.metadata.labels["job-name"] is other.metadata.labels["job-name"]
    assert one.metadata.labels is not other.metadata.labels


def test_different_parts_stay_different():
    interner = Interner()
    assert [interner.intern(worker(n)).metadata.labels["index"] for n in range(3)] == [
        "0",
        "1",
        "2",
    ]


def test_long_texts_are_not_remembered():
    interner = Interner()
    interner.intern(Pod(metadata=Metadata(name="x" * 65)))
    assert not interner._known


def test_texts_of_a_tuple_are_shared_too():
    interner = Interner()
    one = interner.intern(Odd(names=("".join(("a", "bc")), "x")))
    other = interner.intern(Odd(names=("".join(("ab", "c")), "y")))
    assert one.names[0] is other.names[0]


@pytest.mark.parametrize("limit", [0, 10, 100])
def test_memory_is_bounded_however_much_passes_through(limit):
    interner = Interner(limit)
    for number in range(1000):
        interner.intern(worker(number))
        assert len(interner._known) <= limit + 20  # one object more than allowed


def test_what_repeats_is_shared_again_after_forgetting():
    interner = Interner(limit=0)
    interner.intern(worker(1))
    assert interner.intern(worker(2)) == worker(2)


def test_sharing_looks_inside_parts():
    interner = Interner()
    owner = OwnerReference(name="".join(("p", "i")))
    condition = Condition(type="".join(("p", "i")))
    one = interner.intern(Pod(metadata=Metadata(owner_references=(owner,))))
    other = interner.intern(
        Pod(metadata=Metadata(owner_references=(OwnerReference(name=condition.type, uid="2"),)))
    )
    assert one.metadata.owner_references[0].name is other.metadata.owner_references[0].name
