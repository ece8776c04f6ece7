"""What is left of a control plane when the process that owns it goes away."""

import signal

import pytest

from devcluster import runs
from devcluster.process import Process
from tests.support.waiting import block_until

pytestmark = pytest.mark.api


def components(processes: list[Process]) -> dict[str, bool]:
    """Which components live."""
    return {each.name: each.is_alive for each in processes if each.name != "watchdog"}


def test_the_next_start_cleans_up_after_a_killed_owner_and_touches_nothing_else(
    start_owner, start_control_plane
):
    bystander = start_control_plane()
    owner, directory = start_owner()
    processes = runs.recorded(directory)
    next(each for each in processes if each.name == "watchdog").kill()
    owner.kill()
    owner.wait()
    assert components(processes) == {"etcd": True, "kube-apiserver": True}

    start_control_plane()
    assert components(processes) == {"etcd": False, "kube-apiserver": False}
    assert not directory.exists()
    assert bystander.endpoint().request("GET", "/readyz").status == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["by Ctrl-C", "killed"])
def test_an_owner_that_is_ended_takes_everything_with_it(start_owner, number):
    owner, directory = start_owner()
    processes = runs.recorded(directory)
    assert components(processes) == {"etcd": True, "kube-apiserver": True}
    owner.send_signal(number)
    block_until(lambda: not directory.exists())
    block_until(lambda: not any(each.is_alive for each in processes))


@pytest.fixture(autouse=True)
def _only_here(state):
    """All control planes of these tests share one state directory, which nothing else uses."""
