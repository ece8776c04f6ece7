"""When the list of running hosts is written."""

from datetime import timedelta

import pytest

from mpi_operator.controller.host_list import list_hosts
from mpi_operator.controller.job_state import HostChange
from tests.support.observations import NOW, a_job, a_worker, observed


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def listing(*arguments):
    listed = list_hosts(*arguments)
    return set(listed.hosts), listed.requeue_after


def seen_with(running, listed, workers=4, **more):
    job = a_job(workers)
    return observed(job, [a_worker(job, index) for index in running], hosts=listed, **more)


@pytest.mark.parametrize(
    ("running", "listed", "change", "expected"),
    [
        pytest.param({0}, {0}, None, ({0}, None), id="nothing is new"),
        pytest.param({0, 1, 2, 3}, {0}, None, (range(4), None), id="complete: at once"),
        pytest.param({0}, {0, 1}, None, ({0}, None), id="one left: at once"),
        pytest.param({0, 2}, {0, 1}, None, ({0, 2}, None), id="one left and one came: at once"),
        pytest.param({0}, set(), None, (set(), 1), id="one came, nobody noted when: in a second"),
        pytest.param({0}, set(), (0.4, 0.4), (set(), 0.6), id="one came a moment ago: later"),
        pytest.param({0}, set(), (1, 1), ({0}, None), id="a quiet second: now"),
        pytest.param({0, 1}, set(), (4.5, 0.2), (set(), 0.5), id="they come and come: not yet"),
        pytest.param({0, 1}, set(), (5, 0.2), ({0, 1}, None), id="they come and come: after five"),
    ],
)
def test_when_hosts_are_listed(running, listed, change, expected):
    noted = HostChange(*map(ago, change)) if change else None
    hosts, wait = listing(seen_with(running, listed, host_change=noted), NOW)
    assert hosts == set(expected[0])
    assert wait == (timedelta(seconds=expected[1]) if expected[1] else None)


def test_a_new_list_is_right_from_the_start():
    assert listing(seen_with({0, 2}, (), config_map=None), NOW) == ({0, 2}, None)


def test_a_host_that_is_ending_is_none():
    job = a_job(2)
    pods = [a_worker(job, 0), a_worker(job, 1, deleted=timedelta(0))]
    assert listing(observed(job, pods, hosts=(0, 1)), NOW) == ({0}, None)


def test_a_host_beyond_the_size_of_the_job_is_none():
    assert listing(seen_with({0}, {0, 7}, workers=1), NOW) == ({0}, None)
