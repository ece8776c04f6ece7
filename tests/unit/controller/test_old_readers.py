"""The status of a job as clients of older API versions expect it.

The conversion copies these fields, so what matters to old readers has to be right in ours. The text
is that of a job of v1alpha2 as its documentation shows it.
"""

from typing import Any

import pytest

from mpi_operator.api.profiles import PROFILES
from tests.support.worlds import World, running_world

WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"

DOCUMENTED = [
    ("Created", "True", "MPIJobCreated", "MPIJob lab/pi is created."),
    ("Running", "False", "MPIJobRunning", "MPIJob lab/pi is running."),
    ("Succeeded", "True", "MPIJobSucceeded", "MPIJob lab/pi successfully completed."),
]


def finished(version: str, **changes: Any) -> World:
    world = World(annotations={WRITTEN_IN: version}, **changes)
    world.settle()
    world.pass_time(3)
    world.start()
    world.pass_time(60)
    world.launcher_completes()
    return world.rest()


def conditions_of(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.manifest["status"]["conditions"]
    return found


@pytest.mark.parametrize("version", PROFILES)
def test_a_successful_job_reads_as_documented(version: str) -> None:
    found = conditions_of(finished(version))
    facts = [(e["type"], e["status"], e["reason"], e["message"]) for e in found]
    assert facts == DOCUMENTED
    assert all(each["lastUpdateTime"] == each["lastTransitionTime"] for each in found)


@pytest.mark.parametrize("version", PROFILES)
def test_its_times_are_in_order_and_its_counts_are_of_the_launcher(version: str) -> None:
    status = finished(version).manifest["status"]
    created, running, succeeded = (e["lastTransitionTime"] for e in status["conditions"])
    assert status["startTime"] == created < running < succeeded == status["completionTime"]
    # MLRun takes a launcher that has not exactly one of these for one in no state.
    assert status["replicaStatuses"] == {
        "Launcher": {"active": 0, "succeeded": 1, "failed": 0},
        "Worker": {"active": 0, "succeeded": 0, "failed": 0},
    }


@pytest.mark.parametrize("version", PROFILES)
def test_a_started_job_has_a_start_time_at_once(version: str) -> None:
    # Flyte gives up on a job that has none after a minute.
    world = World(annotations={WRITTEN_IN: version})
    world.reconcile()
    assert world.manifest["status"]["startTime"]


@pytest.mark.parametrize("version", PROFILES)
def test_the_newest_true_condition_describes_a_failed_job(version: str) -> None:
    world = running_world(annotations={WRITTEN_IN: version}, policy={"backoffLimit": 0})
    world.launcher_fails()
    found = conditions_of(world.rest())
    true = [each for each in found if each["status"] == "True"]
    newest = max(true, key=lambda each: str(each["lastTransitionTime"]))
    assert newest["type"] == found[-1]["type"] == "Failed"
    assert [e["lastTransitionTime"] for e in true].count(newest["lastTransitionTime"]) == 1
