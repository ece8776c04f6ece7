"""Which numbers the workers of a job have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.controller.worker_indexes import worker_indexes

SETS = st.frozensets(st.integers(0, 30), max_size=12)
COSTS = st.dictionaries(st.integers(0, 30), st.integers(-2, 2))


@pytest.mark.parametrize(
    ("known", "wanted", "costs", "expected"),
    [
        pytest.param((), 3, {}, {0, 1, 2}, id="a new job counts from 0"),
        pytest.param({0, 1}, 2, {1: -1}, {0, 1}, id="a job that keeps its size keeps its workers"),
        pytest.param({0, 1}, 4, {}, {0, 1, 2, 3}, id="new ones come after the others"),
        pytest.param({0, 1, 2}, 1, {}, {0}, id="the highest numbers leave"),
        pytest.param({0, 1, 2}, 2, {0: -1}, {1, 2}, id="the one that is marked leaves"),
        pytest.param({0, 1, 2, 3}, 1, {1: -1}, {0}, id="the marked one, then the highest"),
        pytest.param({0, 1, 2}, 2, {0: -1, 1: -5}, {0, 2}, id="the cheapest leaves"),
        pytest.param({0, 1, 2}, 2, {2: 5}, {0, 2}, id="an expensive one stays"),
        pytest.param({1, 2}, 3, {}, {0, 1, 2}, id="gaps are filled first"),
        pytest.param({0, 1}, 0, {}, set(), id="all leave"),
    ],
)
def test_which_workers_a_job_has(known, wanted, costs, expected):
    assert worker_indexes(frozenset(known), wanted, costs) == expected


@given(SETS, st.integers(0, 15), COSTS)
def test_it_has_as_many_as_it_should_and_keeps_all_that_it_can(known, wanted, costs):
    chosen = worker_indexes(known, wanted, costs)
    assert len(chosen) == wanted
    assert chosen <= known or known <= chosen
    assert worker_indexes(chosen, wanted, costs) == chosen
