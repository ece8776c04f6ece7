import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube.delay_queue import DelayQueue

ENTRIES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), max_size=40)


def delays_of(*entries):
    delays = DelayQueue[str]()
    for key, when in entries:
        delays.put(key, when)
    return delays


@pytest.mark.parametrize(
    ("entries", "due"),
    [
        pytest.param([], [], id="an empty queue has nothing due"),
        pytest.param([("a", 11)], [], id="what lies ahead is not due"),
        pytest.param([("a", 10)], ["a"], id="what is due now is due"),
        pytest.param([("a", 5), ("b", 3)], ["b", "a"], id="the earliest comes first"),
        pytest.param([("b", 5), ("a", 5)], ["b", "a"], id="equal times stay in order"),
        pytest.param([("a", 20), ("a", 5)], ["a"], id="an earlier time wins"),
        pytest.param([("a", 5), ("a", 20)], ["a"], id="a later time changes nothing"),
    ],
)
def test_what_is_due_at_ten(entries, due):
    assert list(delays_of(*entries).pop_due(10)) == due


def test_a_key_that_moves_forward_is_entered_once():
    delays = delays_of(*(("a", 1000 - n) for n in range(1000)))
    assert len(delays) == 1


def test_keys_need_no_order():
    one, other = object(), object()
    delays = DelayQueue[object]()
    delays.put(one, 1)
    delays.put(other, 1)
    assert list(delays.pop_due(1)) == [one, other]


@given(before=ENTRIES, now=st.integers(0, 20), after=ENTRIES)
def test_it_agrees_with_sorting(before, now, after):
    delays, model = DelayQueue[int](), dict[int, int]()
    for entries, until in ((before, now), (after, 20)):
        for key, when in entries:
            delays.put(key, when)
            model[key] = min(when, model.get(key, when))
        due = {key: model.pop(key) for key in list(model) if model[key] <= until}
        popped = list(delays.pop_due(until))
        assert [due[key] for key in popped] == sorted(due.values())
        assert delays.next_time() == min(model.values(), default=None)
