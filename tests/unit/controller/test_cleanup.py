"""What is deleted when a job has finished, and when."""

from datetime import timedelta

import pytest

from mpi_operator.api import annotations
from mpi_operator.controller.actions import Delete
from mpi_operator.controller.cached_types import MPI_JOBS, StoredPodGroup
from mpi_operator.controller.plan import make_plan
from mpi_operator.kube.objects import Metadata
from mpi_operator.kube.resources import JOBS, Key
from tests.support.observations import (
    NOW,
    PLAIN,
    VOLCANO,
    a_job,
    a_launcher,
    a_worker,
    complete,
    observed,
    workers,
)
from tests.support.plans import changes, names_created, names_deleted

V1 = {annotations.WRITTEN_IN: "v1"}
DELETES_ITSELF = {"mpi-operator.kubeflow.org/ttl-deletes-job": "true"}
PHASES = ("Running", "Pending", "Failed", "Succeeded", "Unknown")


def finished(kind="Succeeded", completed=NOW):
    """The status of a finished job."""
    return {
        "conditions": [{"type": kind, "status": "True"}],
        "completionTime": completed.isoformat(),
    }


def finished_job(workers=2, *, end="Succeeded", **changes):
    return a_job(workers, status=finished(end), **changes)


def done(job):
    return a_launcher(job, **complete())


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
@pytest.mark.parametrize(
    ("policy", "deleted"),
    [
        pytest.param("None", [], id="None keeps all"),
        pytest.param(
            "Running", [0, 1, 4], id="Running keeps pods that have ended, with their logs"
        ),
        pytest.param("All", [0, 1, 2, 3, 4], id="All keeps none"),
    ],
)
def test_which_workers_are_deleted(end, policy, deleted):
    job = finished_job(5, end=end, policy={"cleanPodPolicy": policy})
    plan = make_plan(observed(job, workers(job, *PHASES), launcher=done(job)), PLAIN, NOW)
    assert names_deleted(plan) == [f"Pod pi-worker-{index}" for index in deleted]


def test_pods_of_a_formerly_larger_size_are_deleted_too():
    job = finished_job(1, policy={"cleanPodPolicy": "All"})
    pods = workers(a_job(9), *["Running"] * 9)
    plan = make_plan(observed(job, pods, launcher=done(job)), PLAIN, NOW)
    assert len(names_deleted(plan)) == 9


def test_a_terminating_pod_is_not_deleted_again():
    job = finished_job(1, policy={"cleanPodPolicy": "All"})
    seen = observed(job, [a_worker(job, 0, deleted=timedelta(0))], launcher=done(job))
    assert make_plan(seen, PLAIN, NOW).actions == ()


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_finished_job_creates_nothing(policy, end):
    job = finished_job(4, end=end, policy={"cleanPodPolicy": policy})
    nothing = observed(job, service=None, config_map=None, keys_checked=None)
    assert names_created(make_plan(nothing, VOLCANO, NOW)) == []


def test_a_launcher_that_still_runs_is_stopped():
    job = finished_job(end="Failed")
    plan = make_plan(observed(job, launcher=a_launcher(job, active=1)), PLAIN, NOW)
    assert changes(plan, JOBS) == [{"spec": {"suspend": True}}]


def test_a_launcher_that_has_ended_is_left_alone():
    job = finished_job()
    assert make_plan(observed(job, launcher=done(job)), PLAIN, NOW).actions == ()


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
@pytest.mark.parametrize(
    ("version", "policy", "deleted"),
    [
        pytest.param("v1", "All", ["Job pi-launcher"], id="v1, All: the launcher goes, too"),
        pytest.param("v1", "Running", [], id="v1, Running: its pod has ended"),
        pytest.param("v1", "None", [], id="v1, None: all is kept"),
        pytest.param("v2beta1", "All", [], id="v2beta1: only workers go"),
        pytest.param("v1alpha2", "All", [], id="v1alpha2: only workers go"),
    ],
)
def test_whether_the_launcher_is_deleted(end, version, policy, deleted):
    job = finished_job(
        end=end, policy={"cleanPodPolicy": policy}, annotations={annotations.WRITTEN_IN: version}
    )
    plan = make_plan(observed(job, launcher=done(job)), PLAIN, NOW)
    assert names_deleted(plan) == deleted


def test_a_launcher_that_is_deleted_need_not_be_stopped_first():
    job = finished_job(end="Failed", policy={"cleanPodPolicy": "All"}, annotations=V1)
    plan = make_plan(observed(job, launcher=a_launcher(job, active=1)), PLAIN, NOW)
    assert [type(action) for action in plan.actions] == [Delete]


@pytest.mark.parametrize("policy", ["None", "Running"])
def test_a_launcher_that_still_runs_is_stopped_in_v1(policy):
    job = finished_job(end="Failed", policy={"cleanPodPolicy": policy}, annotations=V1)
    plan = make_plan(observed(job, launcher=a_launcher(job, active=1)), PLAIN, NOW)
    assert changes(plan, JOBS) == [{"spec": {"suspend": True}}]
    assert names_deleted(plan) == []


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_the_group_of_a_finished_job_is_deleted(policy):
    job = finished_job(policy={"cleanPodPolicy": policy})
    seen = observed(job, launcher=done(job), pod_group=a_group())
    assert names_deleted(make_plan(seen, VOLCANO, NOW)) == ["PodGroup pi"]


def test_a_group_that_is_ending_is_not_deleted_again():
    job = finished_job()
    group = a_group(deletion_timestamp="2026-03-01T12:00:00Z")
    seen = observed(job, launcher=done(job), pod_group=group)
    assert make_plan(seen, VOLCANO, NOW).actions == ()


def a_group(**metadata):
    return StoredPodGroup(metadata=Metadata(name="pi", namespace="lab", uid="uid", **metadata))


# --- TTL --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "goes"),
    [
        pytest.param({}, "Job pi-launcher", id="the launcher"),
        pytest.param(DELETES_ITSELF, "MPIJob pi", id="the job itself, with the annotation"),
        pytest.param(
            {"mpi-operator.kubeflow.org/ttl-deletes-job": "yes, please"},
            "Job pi-launcher",
            id="only the value true counts",
        ),
        pytest.param(V1, "MPIJob pi", id="the job itself, in v1"),
        pytest.param({annotations.WRITTEN_IN: "v1alpha2"}, "Job pi-launcher", id="v1alpha2"),
    ],
)
@pytest.mark.parametrize(
    ("age", "is_over"),
    [
        pytest.param(0, False, id="at its end"),
        pytest.param(99, False, id="a second before"),
        pytest.param(100, True, id="at the time"),
        pytest.param(5000, True, id="long after"),
    ],
)
def test_what_the_ttl_deletes(given, goes, age, is_over):
    job = finished_job(policy={"ttlSecondsAfterFinished": 100}, annotations=given)
    plan = make_plan(observed(job, launcher=done(job)), PLAIN, NOW + timedelta(seconds=age))
    assert names_deleted(plan) == [goes] * is_over


def test_the_job_is_requeued_for_its_ttl():
    job = finished_job(policy={"ttlSecondsAfterFinished": 100})
    plan = make_plan(observed(job, launcher=done(job)), PLAIN, NOW + timedelta(seconds=30))
    assert plan.requeue_after == timedelta(seconds=70)


@pytest.mark.parametrize("given", [{}, DELETES_ITSELF], ids=["launcher", "job"])
def test_an_expired_ttl_needs_no_requeue(given):
    # A deletion may take a while (finalizers), so a requeue at once would be a loop.
    job = finished_job(policy={"ttlSecondsAfterFinished": 100}, annotations=given)
    plan = make_plan(observed(job, launcher=done(job)), PLAIN, NOW + timedelta(hours=1))
    assert plan.requeue_after is None


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(finished_job(), id="without a TTL"),
        pytest.param(
            a_job(
                status={"conditions": [{"type": "Failed", "status": "True"}]},
                policy={"ttlSecondsAfterFinished": 0},
            ),
            id="without a completion time",
        ),
    ],
)
def test_what_no_ttl_deletes(job):
    plan = make_plan(observed(job, launcher=done(job)), PLAIN, NOW + timedelta(days=1000))
    assert plan.actions == ()
    assert plan.requeue_after is None


def test_a_launcher_that_is_gone_is_not_waited_for():
    job = finished_job(policy={"ttlSecondsAfterFinished": 100})
    assert make_plan(observed(job), PLAIN, NOW).requeue_after is None


def test_a_job_is_deleted_even_if_its_launcher_is_gone():
    job = finished_job(policy={"ttlSecondsAfterFinished": 0}, annotations=DELETES_ITSELF)
    plan = make_plan(observed(job), PLAIN, NOW)
    assert plan.actions == (Delete(MPI_JOBS, Key("lab", "pi"), "uid-of-pi"),)


def test_the_ttl_does_not_apply_before_a_job_has_finished():
    job = a_job(policy={"ttlSecondsAfterFinished": 0})
    seen = observed(job, workers(job, "Running", "Running"), launcher=a_launcher(job))
    assert make_plan(seen, PLAIN, NOW).actions == ()
