"""Workers whose failure ends their job."""

from datetime import timedelta

import pytest

from mpi_operator.controller.plan import make_plan
from mpi_operator.kube.resources import PODS
from tests.support.observations import (
    NOW,
    PLAIN,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_worker,
    complete,
    observed,
    terminated,
)
from tests.support.plans import names_created, names_deleted
from tests.support.worlds import message_of, running_world

PREFIX = "mpi-operator.kubeflow.org/"
V1 = {f"{PREFIX}written-in": "v1"}
EXIT_CODE = {f"{PREFIX}worker-restart-policy": "ExitCode"}
MAIN = {f"{PREFIX}main-container": "mpi"}
EVICTED = {"reason": "Evicted", "message": "The node was low on memory."}


def disrupted(reason):
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]}


def ended(code, **more):
    return {"containerStatuses": terminated(code, **more)}


def two_ends(proxy, mpi):
    return {"containerStatuses": [*terminated(proxy, name="proxy"), *terminated(mpi)]}


def fatal(plan):
    return [(each.reason, each.message) for each in plan.problems if each.ends_launcher]


def plan_with(annotations, phase="Failed", **worker):
    job = a_job(annotations=annotations)
    pods = [a_worker(job, 0), a_worker(job, 1, phase, **worker)]
    seen = observed(job, pods, launcher=a_launcher(job), launcher_pods=[a_launcher_pod(job)])
    return make_plan(seen, PLAIN, NOW)


@pytest.mark.parametrize(
    ("annotations", "worker", "reason"),
    [
        pytest.param({}, ended(1), "", id="v2beta1: it is replaced"),
        pytest.param({}, EVICTED, "", id="v2beta1: so is one that was evicted"),
        pytest.param(V1, ended(1), "WorkerFailed", id="v1: it ends the job"),
        pytest.param(V1, ended(137), "WorkerFailed", id="v1: also after a signal"),
        pytest.param(V1, {}, "WorkerFailed", id="v1: also for no known reason"),
        pytest.param(V1, EVICTED, "MPIJobEvicted", id="v1: evicted by its node"),
        pytest.param(
            V1,
            EVICTED | disrupted("TerminationByKubelet"),
            "MPIJobEvicted",
            id="v1: evicted by its node, which says so twice",
        ),
        pytest.param(
            V1,
            ended(137) | disrupted("DeletionByPodGC"),
            "",
            id="v1: one that Kubernetes fails in order to delete it is replaced",
        ),
        pytest.param({f"{PREFIX}written-in": "v1alpha2"}, ended(1), "", id="v1alpha2: replaced"),
        pytest.param(EXIT_CODE, ended(1), "WorkerFailed", id="ExitCode: a final one"),
        pytest.param(EXIT_CODE, ended(127), "WorkerFailed", id="ExitCode: the last final one"),
        pytest.param(EXIT_CODE, ended(128), "", id="ExitCode: the first that is retried"),
        pytest.param(EXIT_CODE, ended(255), "", id="ExitCode: the last that is retried"),
        pytest.param(EXIT_CODE, EVICTED, "", id="ExitCode: none, as the version has it"),
        pytest.param(V1 | EXIT_CODE, ended(1), "WorkerFailed", id="v1, ExitCode: a final one"),
        pytest.param(V1 | EXIT_CODE, ended(143), "", id="v1, ExitCode: one that is retried"),
        pytest.param(V1 | EXIT_CODE, EVICTED, "MPIJobEvicted", id="v1, ExitCode: none"),
        pytest.param(
            V1 | {f"{PREFIX}worker-restart-policy": "exit"},
            ended(143),
            "WorkerFailed",
            id="v1: a wrong policy is ignored",
        ),
    ],
)
def test_which_failures_end_the_job(annotations, worker, reason):
    plan = plan_with(annotations, **worker)
    assert [found for found, _ in fatal(plan)] == ([reason] if reason else [])
    assert names_deleted(plan) == ([] if reason else ["Pod pi-worker-1"])


ELASTIC = ["--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python", "train.py"]


@pytest.mark.parametrize(
    ("arguments", "policy", "is_fatal"),
    [
        pytest.param(ELASTIC, {}, False, id="elastic"),
        pytest.param(["-c", "exec $(discover_hosts.sh)"], {}, False, id="in a script"),
        pytest.param(ELASTIC, {f"{PREFIX}lost-workers": "fail"}, True, id="needs every worker"),
        pytest.param(["python"], {f"{PREFIX}lost-workers": "survive"}, False, id="says so"),
        pytest.param(["python"], {}, True, id="another one"),
    ],
)
def test_a_launcher_of_v1_that_asks_for_the_hosts_goes_on_without_a_worker(
    arguments, policy, is_fatal
):
    container = {"name": "mpi", "image": "i", "command": ["horovodrun"], "args": arguments}
    launcher = {"template": {"spec": {"containers": [container]}}}
    job = a_job(annotations=V1 | policy, launcher=launcher)
    pods = [a_worker(job, 0), a_worker(job, 1, "Failed", **ended(137))]
    plan = make_plan(observed(job, pods, launcher=a_launcher(job)), PLAIN, NOW)
    assert bool(fatal(plan)) == is_fatal
    assert names_deleted(plan) == ([] if is_fatal else ["Pod pi-worker-1"])


@pytest.mark.parametrize("phase", ["Running", "Pending", "Succeeded", "Unknown"])
def test_a_worker_that_has_not_failed_ends_nothing(phase):
    assert fatal(plan_with(V1, phase)) == []


def test_a_worker_that_is_deleted_ends_nothing():
    assert fatal(plan_with(V1, deleted=timedelta(0), **ended(143))) == []


def test_it_is_the_main_container_whose_exit_code_decides():
    containers = [{"name": "proxy", "image": "i"}, {"name": "mpi", "image": "i"}]
    worker = {"replicas": 2, "template": {"spec": {"containers": containers}}}
    for annotations, is_fatal in ((EXIT_CODE | MAIN, True), (EXIT_CODE, False)):
        job = a_job(annotations=annotations, worker=worker)
        pods = [a_worker(job, 0), a_worker(job, 1, "Failed", **two_ends(proxy=137, mpi=1))]
        plan = make_plan(observed(job, pods, launcher=a_launcher(job)), PLAIN, NOW)
        assert bool(fatal(plan)) == is_fatal


def test_the_message_names_the_worker_its_exit_code_and_its_last_lines():
    [(_, message)] = fatal(plan_with(V1, **ended(2, message="import torch\nno such module")))
    assert message == (
        "Worker pi-worker-1 failed: container mpi ended with exit code 2: "
        "import torch\nno such module"
    )


def test_of_several_that_failed_the_first_is_named():
    job = a_job(3, annotations=V1)
    pods = [a_worker(job, index, "Failed", **ended(index)) for index in (2, 1)]
    [(_, message)] = fatal(make_plan(observed(job, pods, launcher=a_launcher(job)), PLAIN, NOW))
    assert message == (
        "Worker pi-worker-1 failed (and 1 more): container mpi ended with exit code 1"
    )


def test_nothing_is_made_or_deleted_before_the_end_is_stored():
    plan = plan_with(V1, **ended(1))
    assert (names_created(plan), plan.actions) == ([], ())


def test_a_launcher_that_succeeded_wins():
    job = a_job(annotations=V1)
    pods = [a_worker(job, 0), a_worker(job, 1, "Failed", **ended(1))]
    seen = observed(job, pods, launcher=a_launcher(job, **complete()))
    assert fatal(make_plan(seen, PLAIN, NOW)) == []


# --- in a world -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_a_v1_job_ends_with_its_worker_and_stops_its_launcher(policy):
    world = running_world(annotations=V1, policy={"cleanPodPolicy": policy})
    made = len(world.created)
    world.worker_fails(1, **ended(1, message="no such module"))
    world.rest()
    assert world.conditions == {
        "Created": "True MPIJobCreated",
        "Running": "False MPIJobRunning",
        "Failed": "True WorkerFailed",
    }
    assert message_of(world, "Failed") == (
        "Worker pi-worker-1 failed: container mpi ended with exit code 1: no such module"
    )
    assert world.manifest["status"]["completionTime"]
    assert world.launcher_pods == []
    assert (world.launcher is None) == (policy == "All")
    assert world.created[made:] == []


def test_a_v1_job_that_waits_for_its_workers_fails_as_well():
    world = running_world(annotations=V1, launcherCreationPolicy="WaitForWorkersReady")
    world.worker_is_evicted(0)
    world.rest()
    assert world.conditions["Failed"] == "True MPIJobEvicted"
    assert "The node was low on memory." in message_of(world, "Failed")


@pytest.mark.parametrize("limit", [0, 1])
def test_a_v1_job_replaces_workers_that_are_deleted_though_it_retries_nothing(limit):
    world = running_world(annotations=V1, policy={"backoffLimit": limit})
    world.worker_is_drained(1)
    world.rest()
    world.worker_runs(1)
    world.rest()
    assert world.created.count((PODS, "pi-worker-1")) == 2
    assert "Failed" not in world.conditions


def test_a_worker_is_replaced_after_a_signal_and_ends_the_job_after_an_error():
    world = running_world(annotations=V1 | EXIT_CODE)
    world.worker_fails(1, **ended(137))
    world.rest()
    world.worker_runs(1)
    world.rest()
    assert world.pods == {"pi-worker-0": "Running", "pi-worker-1": "Running"}
    assert world.conditions["Running"] == "True MPIJobRunning"
    world.worker_fails(1, **ended(1))
    world.rest()
    assert world.conditions["Failed"] == "True WorkerFailed"
