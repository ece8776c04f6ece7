"""Liveness and readiness, over time."""

from dataclasses import dataclass, field

import pytest

from mpi_operator.operator.health import GRACE_SECONDS, NOT_CONTACTED, Health


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


def test_a_new_process_is_alive_and_not_ready(world):
    health = Health(world, world, world.clock)
    assert health.liveness_problems() == []
    assert health.readiness_problems() == [NOT_CONTACTED]


def test_a_stand_by_with_warm_caches_is_ready(health):
    assert health.readiness_problems() == []


def test_unsynced_caches_are_reported_with_the_reason(health, world):
    world.is_synced = False
    world.problems = ["pods: no answer"]
    assert health.readiness_problems() == ["the caches have not synced yet", "pods: no answer"]


def test_problems_count_when_they_last(health, world):
    world.problems = ["pods: no answer"]
    assert health.readiness_problems() == []
    world.now += GRACE_SECONDS
    world.problems = ["pods: another answer"]
    assert health.readiness_problems() == ["pods: another answer"]


def test_problems_that_went_away_in_between_did_not_last(health, world):
    for problems in (["no answer"], [], ["no answer"]):
        world.problems = problems
        assert health.readiness_problems() == []
        world.now += GRACE_SECONDS - 1


def test_a_problem_with_the_lease_is_reported(health):
    health.lease_problem = "the lease cannot be created"
    assert health.readiness_problems() == ["the lease cannot be created"]


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_leader_and_a_stand_by_are_alive(health, world, is_leader):
    world.is_leader = is_leader
    assert health.liveness_problems() == []


def test_a_process_that_lost_its_lease_is_not_alive(health, world):
    world.why_lost = "not renewed in time"
    assert health.liveness_problems() == ["this process cannot lead again: not renewed in time"]
