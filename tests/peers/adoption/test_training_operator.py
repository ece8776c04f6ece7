"""From training-operator 1.9 to ours and back, with its own manifests, while jobs run.

One change of operators for all tests: each looks at another job that lived through it. The last one
goes back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from devcluster import kubeflow
from devcluster.binaries import CannotBuild
from devcluster.kubeflow import TRAINING_OPERATOR
from tests.cluster.operator.pi import one_rank_each
from tests.peers.adoption.switch import Jobs, Switch, waiting_job
from tests.support.waiting import block_until

pytestmark = pytest.mark.timeout(600)

OTHERS = [f"--enable-scheme={kind}job" for kind in ("pytorch", "tf", "xgboost", "paddle", "jax")]
LIVE = ("running", "growing", "staying", "failing", "between", "lost")


@dataclass(frozen=True)
class Change:
    """What was seen on the way."""

    switch: Switch
    jobs: Jobs
    before: dict[str, tuple[str, int]]  # the pods, under training-operator
    waited: str  # our log, while training-operator still ran MPIJobs
    led: bool  # whether a replica of ours led at that time
    after: dict[str, tuple[str, int]]  # the pods, once ours leads
    launcher_jobs: list[str]


@pytest.fixture(scope="module")
def change(switch: Switch) -> Iterator[Change]:
    """Our operator, in the place of a training-operator whose jobs run."""
    switch.clear()
    try:
        switch.install(TRAINING_OPERATOR)
    except CannotBuild as error:
        pytest.skip(str(error))
    switch.kubectl("create", "namespace", "adopted")
    jobs = Jobs(switch, "adopted", "v1")
    jobs.submit(waiting_job("running", "v1", workers=2))
    jobs.submit(waiting_job("growing", "v1"))
    jobs.submit(waiting_job("staying", "v1"))
    jobs.submit(waiting_job("failing", "v1", then="exit 3", cleanPodPolicy="All"))
    jobs.submit(waiting_job("between", "v1", then="true", cleanPodPolicy="Running"))
    jobs.submit(waiting_job("lost", "v1"))
    jobs.submit(waiting_job("suspended", "v1", suspend=True))
    pods = [f"{name}-{role}" for name in LIVE for role in ("launcher", "worker-0")]
    jobs.runs(*pods, "running-worker-1")
    block_until(lambda: bool(jobs.condition("suspended", "Suspended")), 60)
    before = jobs.identities()

    switch.apply_ours()
    block_until(lambda: "training-operator runs MPIJobs" in switch.our_log(), 120)
    waited, led = switch.our_log(), switch.ours.leads()

    # No operator runs for a while.
    switch.scale_ours(0)
    kubeflow.set_arguments(switch.cluster, TRAINING_OPERATOR, *OTHERS)
    jobs.release("between")
    block_until(lambda: _phase(jobs, "between-launcher") == "Succeeded", 60)
    jobs.delete_pod("lost-launcher")

    switch.scale_ours(2)
    switch.ours.wait()
    block_until(lambda: jobs.launcher_jobs() == ["lost-launcher", "suspended-launcher"], 60)
    yield Change(switch, jobs, before, waited, led, jobs.identities(), jobs.launcher_jobs())
    switch.kubectl("delete", "namespace", "adopted", "--wait=false")


def _phase(jobs: Jobs, pod: str) -> Any:
    return jobs.pods()[pod]["status"]["phase"]


def test_the_operator_waits_while_training_operator_runs_mpijobs(change: Change) -> None:
    assert "--enable-scheme" in change.waited
    assert not change.led


def test_no_pod_is_restarted_deleted_or_doubled(change: Change) -> None:
    kept = {name: found for name, found in change.before.items() if name != "lost-launcher"}
    # That of a job that has finished goes, as its policy says.
    ours = {name: found for name, found in change.after.items() if name in kept}
    assert ours == {name: found for name, found in kept.items() if name in ours}
    assert set(kept) - set(ours) <= {"between-worker-0"}
    assert [name for name in change.after if name.startswith("running-launcher")] == [
        "running-launcher"
    ]
    assert change.launcher_jobs == ["lost-launcher", "suspended-launcher"]


def test_a_job_that_runs_reaches_its_workers_and_succeeds(change: Change) -> None:
    jobs = change.jobs
    jobs.release("running")
    jobs.ends("running", "Succeeded")
    for rank, pod in one_rank_each("running").items():
        assert f"rank {rank} of 2 on {pod}" in jobs.log("running")
    status = jobs.job("running")["status"]
    assert status["replicaStatuses"]["Launcher"]["succeeded"] == 1
    assert set(jobs.pods("running")) == {"running-launcher", "running-worker-0", "running-worker-1"}


def test_a_job_that_grows_may_reach_its_new_worker_with_its_kubectl(change: Change) -> None:
    jobs = change.jobs
    assert not jobs.launcher_may("growing", "create", "pods/growing-worker-1", "exec")
    jobs.scale("growing", 2)
    jobs.runs("growing-worker-1")
    for name in ("growing-worker-0", "growing-worker-1"):
        assert jobs.launcher_may("growing", "create", f"pods/{name}", "exec")
        assert jobs.launcher_may("growing", "get", f"pods/{name}")
    jobs.release("growing")
    jobs.ends("growing", "Succeeded")


def test_a_job_that_fails_is_cleaned_up_as_v1_says(change: Change) -> None:
    jobs = change.jobs
    jobs.release("failing")
    assert "exit code 3" in jobs.ends("failing", "Failed")["message"]
    block_until(lambda: not jobs.pods("failing"), 60)


def test_a_job_that_ended_between_the_operators_has_succeeded(change: Change) -> None:
    jobs = change.jobs
    jobs.ends("between", "Succeeded")
    block_until(lambda: set(jobs.pods("between")) == {"between-launcher"}, 60)


def test_a_job_whose_launcher_was_lost_gets_another_one(change: Change) -> None:
    jobs = change.jobs
    block_until(lambda: _phase(jobs, jobs.launcher("lost")) == "Running", 60)
    jobs.release("lost")
    jobs.ends("lost", "Succeeded")
    assert "rank 0 of 1 on lost-worker-0" in jobs.log("lost")


def test_a_suspended_job_can_be_resumed(change: Change) -> None:
    jobs = change.jobs
    jobs.resume("suspended")
    block_until(lambda: len(jobs.pods("suspended")) == 2, 60)
    block_until(lambda: _phase(jobs, jobs.launcher("suspended")) == "Running", 60)
    jobs.release("suspended")
    jobs.ends("suspended", "Succeeded")


def test_all_jobs_can_be_stored_as_v2beta1(change: Change) -> None:
    switch = change.switch
    assert set(switch.stored_versions()) == {"v1", "v2beta1"}
    switch.migrate()
    assert switch.stored_versions() == ["v2beta1"]
    assert "already" in switch.migrate()


def test_training_operator_can_come_back_while_a_job_of_its_own_runs(change: Change) -> None:
    switch, jobs = change.switch, change.jobs
    switch.migrate("--to=v1")
    switch.remove_ours()
    switch.replace_definition(TRAINING_OPERATOR)
    assert switch.stored_versions() == ["v1"]
    kubeflow.set_arguments(switch.cluster, TRAINING_OPERATOR)

    jobs.submit(waiting_job("new", "v1"))
    jobs.runs("new-launcher", "new-worker-0")
    for name in ("staying", "new"):
        jobs.release(name)
        jobs.ends(name, "Succeeded")
        assert f"rank 0 of 1 on {name}-worker-0" in jobs.log(name)
    after = jobs.identities()
    for pod in ("staying-launcher", "staying-worker-0"):
        assert after[pod] == change.before[pod]
