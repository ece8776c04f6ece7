"""What the probes are told, as time goes by."""

from dataclasses import dataclass, field

import pytest

from mpi_operator.operator.health import PATIENCE_SECONDS, Health


@dataclass
class World:
    """Caches, a candidate and a clock, all in one."""

    is_synced: bool = True
    problems: list[str] = field(default_factory=list)
    is_leader: bool = False
    why_lost: str = ""
    now: float = 1000.0

    def clock(self):
        return self.now


@pytest.fixture
def world():
    return World()


@pytest.fixture
def health(world):
    health = Health(world, world, world.clock)
    health.waiting_for = ""
    return health


def test_a_process_that_has_asked_nothing_yet_is_alive_and_not_ready(world):
    health = Health(world, world, world.clock)
    assert health.illnesses() == []
    assert health.obstacles() == ["the API server has not been asked yet"]


def test_a_stand_by_with_warm_caches_is_ready(health):
    assert health.obstacles() == []


def test_cold_caches_are_told_with_the_reason(health, world):
    world.is_synced = False
    world.problems = ["pods: no answer"]
    assert health.obstacles() == ["the caches are still being read", "pods: no answer"]


def test_trouble_counts_when_it_lasts(health, world):
    world.problems = ["pods: no answer"]
    assert health.obstacles() == []
    world.now += PATIENCE_SECONDS
    world.problems = ["pods: another answer"]
    assert health.obstacles() == ["pods: another answer"]


def test_trouble_that_went_away_in_between_did_not_last(health, world):
    for problems in (["no answer"], [], ["no answer"]):
        world.problems = problems
        assert health.obstacles() == []
        world.now += PATIENCE_SECONDS - 1


def test_trouble_with_the_lease_is_told(health):
    health.lock_trouble = "the lease cannot be made"
    assert health.obstacles() == ["the lease cannot be made"]


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_leader_and_a_stand_by_are_alive(health, world, is_leader):
    world.is_leader = is_leader
    assert health.illnesses() == []


def test_a_process_that_lost_its_lease_is_not_alive(health, world):
    world.why_lost = "not renewed in time"
    assert health.illnesses() == ["this process will never lead again: not renewed in time"]
