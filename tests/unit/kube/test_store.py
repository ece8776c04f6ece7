import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.kube.objects import Metadata, Object, OwnerReference
from mpi_operator.kube.resources import Key
from mpi_operator.kube.store import WritableStore


def by_label(each):
    return each.metadata.labels.values()


def by_owner(each):
    return (owner.uid for owner in each.metadata.owner_references)


INDEXES = {"label": by_label, "owner": by_owner}
VALUES = ["a", "b", "c"]


def make(name="x", version="1", labels=(), owners=()):
    return Object(
        metadata=Metadata(
            name=name,
            namespace="team",
            resource_version=version,
            labels={str(number): value for number, value in enumerate(labels)},
            owner_references=tuple(OwnerReference(uid=uid) for uid in owners),
        )
    )


def key(name):
    return Key("team", name)


def test_an_index_that_fails_for_one_object_finds_the_others():
    store = WritableStore({"first": lambda each: [each.metadata.labels["0"]]})
    for name, labels in (("labelled", ["a"]), ("bare", [])):
        store.put(make(name, labels=labels))
    assert [each.metadata.name for each in store.where("first", "a")] == ["labelled"]
    assert store.remove(key("bare")) is not None


OBJECTS = st.builds(
    make,
    name=st.sampled_from("xyz"),
    version=st.integers(1, 200).map(str),
    labels=st.lists(st.sampled_from(VALUES), max_size=3),
    owners=st.lists(st.sampled_from(VALUES), max_size=3),
)
# Put an object, or remove the one with a name.
STEPS = st.lists(OBJECTS | st.sampled_from("xyz"), max_size=30)


def done(steps):
    store = WritableStore(INDEXES)
    model: dict[Key, Object] = {}
    for step in steps:
        if isinstance(step, str):
            assert store.remove(key(step)) is model.pop(key(step), None)
        else:
            store.put(step)
            model[step.metadata.key] = step
    return store, model


@settings(max_examples=60)
@given(STEPS)
def test_a_store_holds_what_was_put_last(steps):
    store, model = done(steps)
    assert {each.metadata.key: each for each in store} == model
    assert len(store) == len(model)
    assert all(store.get(name) is model.get(name) for name in map(key, "xyz"))
    assert [name for name in "xyz" if key(name) in store] == sorted(name for _, name in model)


@settings(max_examples=60)
@given(STEPS)
def test_an_index_finds_what_looking_at_everything_finds(steps):
    store, model = done(steps)
    for name, index in INDEXES.items():
        for value in VALUES:
            found = {each.metadata.key for each in store.where(name, value)}
            assert found == {k for k, each in model.items() if value in index(each)}
            assert len(store.where(name, value)) == len(found)


@settings(max_examples=60)
@given(STEPS)
def test_nothing_is_left_behind_after_removals(steps):
    store, _ = done(steps)
    for name in "xyz":
        store.remove(key(name))
    assert (len(store), list(store)) == (0, [])
    assert store._keys == {"label": {}, "owner": {}}


@settings(max_examples=60)
@given(STEPS, st.integers(0, 201).map(str))
def test_what_has_not_changed_since_a_version(steps, version):
    store, model = done(steps)
    old = {k for k, each in model.items() if int(each.metadata.resource_version) <= int(version)}
    assert store.keys_up_to(version) == old
    assert {k for k in model if not store.has_newer(k, version)} == old


def test_an_object_with_the_same_owner_twice_can_go():
    store = WritableStore(INDEXES)
    store.put(make(owners=["a", "a"]))
    store.put(make(owners=["a", "a"], version="2"))
    store.remove(key("x"))
    assert store.where("owner", "a") == []


def test_what_is_not_there_is_not_newer():
    assert not WritableStore[Object]().has_newer(key("x"), "")


def test_an_unknown_index_is_a_mistake():
    with pytest.raises(KeyError):
        WritableStore(INDEXES).where("colour", "red")


def test_a_store_may_change_while_it_is_read():
    store = WritableStore(INDEXES)
    for name in "xyz":
        store.put(make(name, labels=["a"]))
    for each in store:
        store.remove(each.metadata.key)
    for each in store.where("label", "a"):
        store.remove(each.metadata.key)
    assert len(store) == 0
