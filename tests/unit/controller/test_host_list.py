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
        pytest.param({0}, set(), None, (set(), 1), id="one came, time unknown: in 1s"),
        pytest.param({0}, set(), (0.4, 0.4), (set(), 0.6), id="one came 0.4s ago: later"),
        pytest.param({0}, set(), (1, 1), ({0}, None), id="no change for 1s: now"),
        pytest.param({0, 1}, set(), (4.5, 0.2), (set(), 0.5), id="they keep coming: not yet"),
        pytest.param({0, 1}, set(), (5, 0.2), ({0, 1}, None), id="they keep coming: after 5s"),
    ],
)
def test_when_hosts_are_listed(running, listed, change, expected):
    noted = HostChange(*map(ago, change)) if change else None
    hosts, wait = listing(seen_with(running, listed, host_change=noted), NOW)
    assert hosts == set(expected[0])
    assert wait == (timedelta(seconds=expected[1]) if expected[1] else None)


def test_a_new_list_is_correct_from_the_start():
    assert listing(seen_with({0, 2}, (), config_map=None), NOW) == ({0, 2}, None)


def test_a_terminating_host_is_not_listed():
    job = a_job(2)
    pods = [a_worker(job, 0), a_worker(job, 1, deleted=timedelta(0))]
    assert listing(observed(job, pods, hosts=(0, 1)), NOW) == ({0}, None)


def test_a_host_beyond_the_size_of_the_job_is_not_listed():
    assert listing(seen_with({0}, {0, 7}, workers=1), NOW) == ({0}, None)
