"""What the operator does about a job. Whole jobs are in `test_scenarios.py`."""

from datetime import timedelta

import pytest

from mpi_operator.controller.actions import Create, Resume
from mpi_operator.controller.observed import Observed, Taken
from mpi_operator.controller.plan import make_plan
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, SERVICES
from tests.support.mpijobs import template
from tests.support.observations import (
    NOW,
    PLAIN,
    PLUGINS,
    VOLCANO,
    a_config_map,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_service,
    a_worker,
    complete,
    failed,
    observed,
    workers,
)
from tests.support.plans import changes, names_created, names_deleted, resumes

WAITS = {"launcherCreationPolicy": "WaitForWorkersReady"}


def plan_for(seen, settings=PLAIN, now=NOW):
    return make_plan(seen, settings, now)


def reasons(plan):
    return [problem.reason for problem in plan.problems]


# --- the first reconcile ----------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
def test_the_first_reconcile_creates_everything_in_order(implementation):
    plan = plan_for(Observed(a_job(5, mpiImplementation=implementation)))
    assert names_created(plan) == [
        "Service pi",
        "ConfigMap pi-config",
        "Secret pi-ssh",
        *(f"Pod pi-worker-{index}" for index in range(5)),
        "Job pi-launcher",
    ]


def test_pods_come_after_what_they_need_and_the_launcher_after_them():
    plan = plan_for(Observed(a_job()))
    kinds = [{each.split()[0] for each in names_created_by(stage)} for stage in plan.stages]
    assert kinds == [{"Service", "ConfigMap", "Secret"}, {"Pod"}, {"Job"}]


def names_created_by(stage):
    return [each.resource.kind if isinstance(each, Create) else "Secret" for each in stage]


@pytest.mark.parametrize("settings", [VOLCANO, PLUGINS], ids=["volcano", "scheduler-plugins"])
def test_a_pod_group_is_created_before_the_pods(settings):
    plan = plan_for(Observed(a_job()), settings)
    assert "PodGroup pi" in [f"{each.resource.kind} pi" for each in plan.stages[0][3:]]


def test_nothing_is_created_twice():
    job = a_job()
    seen = observed(job, workers(job, "Running", "Running"), launcher=a_launcher(job))
    assert plan_for(seen).stages == ()


# --- the launcher -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "pods", "starts"),
    [
        pytest.param(a_job(), [], True, id="at startup, it waits for no worker"),
        pytest.param(a_job(**WAITS), [], False, id="without workers, it waits"),
        pytest.param(a_job(**WAITS), [True], False, id="one worker short, it waits"),
        pytest.param(a_job(**WAITS), [True, False], False, id="a worker not ready, it waits"),
        pytest.param(a_job(**WAITS), [True, True], True, id="all workers ready, it starts"),
        pytest.param(
            a_job(0, runLauncherAsWorker=True, **WAITS), [], True, id="no workers wanted, it starts"
        ),
        pytest.param(
            a_job(None, runLauncherAsWorker=True, **WAITS), [], True, id="no worker spec, it starts"
        ),
    ],
)
@pytest.mark.parametrize("launcher", ["missing", "suspended"])
def test_when_the_launcher_starts(job, pods, starts, launcher):
    known = {"missing": None, "suspended": a_launcher(job, suspend=True)}[launcher]
    pods_seen = [a_worker(job, index, ready=ready) for index, ready in enumerate(pods)]
    plan = plan_for(observed(job, pods_seen, launcher=known))
    assert ("Job pi-launcher" in names_created(plan) or resumes(plan)) == starts


def test_a_worker_that_is_ending_is_not_ready():
    job = a_job(1, **WAITS)
    seen = observed(job, [a_worker(job, 0, deleted=timedelta(0))])
    assert "Job pi-launcher" not in names_created(plan_for(seen))


def test_a_template_with_a_restart_policy_gets_an_event():
    job = a_job(launcher={"template": template(restartPolicy="Always")})
    [creation] = [each for each in plan_for(Observed(job)).actions if is_job(each)]
    [events] = creation.events
    assert events.reason == "SetPodTemplateRestartPolicy"
    assert events.message == (
        "Restart policy in pod template overridden by restart policy in replica spec"
    )


def is_job(action):
    return isinstance(action, Create) and action.resource == JOBS


# --- suspend and resume -----------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
def test_a_job_that_begins_suspended_has_a_suspended_launcher_and_no_pods(implementation):
    job = a_job(5, policy={"suspend": True}, mpiImplementation=implementation)
    plan = plan_for(Observed(job))
    assert names_created(plan) == [
        "Service pi",
        "ConfigMap pi-config",
        "Secret pi-ssh",
        "Job pi-launcher",
    ]
    [creation] = filter(is_job, plan.actions)
    assert creation.manifest["spec"]["suspend"] is True


def test_suspending_a_running_job_stops_its_launcher_and_deletes_its_pods():
    job = a_job(8, policy={"suspend": True})
    seen = observed(job, workers(job, *["Running"] * 8), launcher=a_launcher(job, active=1))
    plan = plan_for(seen)
    assert changes(plan, JOBS) == [{"spec": {"suspend": True}}]
    assert names_deleted(plan) == [f"Pod pi-worker-{index}" for index in range(8)]
    assert names_created(plan) == []


def test_the_hosts_leave_the_list_before_a_suspended_job_loses_its_pods():
    job = a_job(policy={"suspend": True})
    seen = observed(job, workers(job, "Running", "Running"), launcher=a_launcher(job))
    kinds = [[each.resource.kind for each in stage] for stage in plan_for(seen).stages]
    assert kinds == [["ConfigMap"], ["Job"], ["Pod", "Pod"]]


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_a_suspended_job_keeps_no_pod_of_any_phase_or_size(policy):
    job = a_job(1, policy={"suspend": True, "cleanPodPolicy": policy})
    pods = [a_worker(job, 0, "Failed"), a_worker(job, 7, "Running"), a_worker(job, 3, "Pending")]
    plan = plan_for(observed(job, pods, launcher=a_launcher(job, suspend=True)))
    assert sorted(names_deleted(plan)) == ["Pod pi-worker-0", "Pod pi-worker-3", "Pod pi-worker-7"]


def test_a_terminating_pod_is_not_deleted_again():
    job = a_job(1, policy={"suspend": True})
    pods = [a_worker(job, 0, deleted=timedelta(0))]
    seen = observed(job, pods, hosts=(), launcher=a_launcher(job, suspend=True))
    assert plan_for(seen).stages == ()


@pytest.mark.parametrize(("active", "is_resumed"), [(0, True), (1, False)])
def test_a_launcher_is_resumed_when_the_pods_of_its_last_run_are_gone(active, is_resumed):
    job = a_job()
    launcher = a_launcher(job, suspend=True, active=active)
    plan = plan_for(observed(job, launcher=launcher))
    assert names_created(plan) == ["Pod pi-worker-0", "Pod pi-worker-1"]
    assert resumes(plan) == is_resumed


def test_a_resumed_launcher_comes_after_its_workers():
    job = a_job()
    plan = plan_for(observed(job, launcher=a_launcher(job, suspend=True)))
    assert isinstance(plan.stages[-1][0], Resume)


def test_a_suspended_job_stops_even_if_one_of_its_names_is_taken():
    job = a_job(policy={"suspend": True})
    seen = observed(
        job,
        workers(job, "Running", "Running"),
        service=None,
        taken=(Taken("Service", "pi"),),
        launcher=a_launcher(job, active=1),
    )
    plan = plan_for(seen)
    assert changes(plan, JOBS) == [{"spec": {"suspend": True}}]
    assert len(names_deleted(plan)) == 2


# --- size -------------------------------------------------------------------------------------


@pytest.mark.parametrize("launcher_works", [False, True])
@pytest.mark.parametrize(
    ("wanted", "there", "created", "deleted"),
    [
        pytest.param(3, 3, [], [], id="the right size"),
        pytest.param(4, 2, [2, 3], [], id="larger"),
        pytest.param(2, 4, [], [2, 3], id="smaller"),
        pytest.param(1, 4, [], [1, 2, 3], id="as small as can be"),
        pytest.param(12, 11, [11], [], id="more than ten"),
    ],
)
def test_workers_follow_the_spec(launcher_works, wanted, there, created, deleted):
    job = a_job(wanted, runLauncherAsWorker=launcher_works)
    larger = a_job(max(wanted, there), runLauncherAsWorker=launcher_works)
    pods = workers(larger, *["Running"] * there)
    plan = plan_for(observed(job, pods, launcher=a_launcher(job)))
    assert names_created(plan) == [f"Pod pi-worker-{index}" for index in created]
    assert names_deleted(plan) == [f"Pod pi-worker-{index}" for index in deleted]


def test_a_pod_without_an_index_label_is_identified_by_its_name():
    job = a_job(2)
    pods = [without_index(pod) for pod in workers(a_job(3), "Running", "Running", "Running")]
    plan = plan_for(observed(job, pods, launcher=a_launcher(job)))
    assert names_created(plan) == []
    assert names_deleted(plan) == ["Pod pi-worker-2"]


def without_index(pod):
    pod.metadata.labels.pop("training.kubeflow.org/replica-index")
    return pod


def test_a_host_leaves_the_list_before_its_pod_is_deleted():
    job = a_job(1)
    pods, stored = workers(a_job(2), "Running", "Running"), a_config_map(a_job(2), (0, 1))
    seen = observed(job, pods, config_map=stored)
    first, second, *_ = plan_for(seen).stages
    assert [each.resource for each in first] == [CONFIG_MAPS]
    assert "pi-worker-1" not in first[0].patch["data"]["discover_hosts.sh"]
    assert "pi-worker-1" not in first[0].patch["data"]["hostfile"]
    assert [each.key.name for each in second] == ["pi-worker-1"]


def test_a_worker_that_is_ending_keeps_its_name_until_it_is_gone():
    job = a_job(1)
    seen = observed(job, [a_worker(job, 0, deleted=timedelta(0))], hosts=())
    assert "Pod pi-worker-0" not in names_created(plan_for(seen))


# --- what is left alone -----------------------------------------------------------------------


@pytest.mark.parametrize("end", [complete(), failed()], ids=["complete", "failed"])
def test_nothing_is_cleaned_up_before_the_end_is_stored(end):
    job = a_job(4)
    seen = observed(job, workers(job, "Running", "Failed"), launcher=a_launcher(job, **end))
    assert plan_for(seen).actions == ()


def test_an_invalid_job_is_left_alone():
    job = a_job()
    plan = plan_for(
        observed(job, validation_errors="spec.slotsPerWorker: must be at least 0, got -1")
    )
    assert plan.actions == ()
    assert reasons(plan) == ["ValidationError"]


@pytest.mark.parametrize(
    ("kind", "name", "lacks"),
    [
        ("Service", "pi", "service"),
        ("ConfigMap", "pi-config", "config_map"),
        ("Job", "pi-launcher", "launcher"),
        ("Pod", "pi-worker-0", "worker_pods"),
    ],
)
def test_a_name_that_is_taken_keeps_the_job_from_starting(kind, name, lacks):
    job = a_job()
    empty = () if lacks == "worker_pods" else None
    plan = plan_for(observed(job, **{lacks: empty}, taken=(Taken(kind, name),)))
    assert names_created(plan) == []
    assert names_deleted(plan) == []
    assert reasons(plan) == ["ErrResourceExists"]
    assert plan.problems[0].message == (
        f'Resource "{name}" of Kind "{kind}" already exists and is not managed by MPIJob'
    )


def test_a_name_that_is_taken_is_checked_again():
    # The other object may have no label that leads from it to this job.
    seen = observed(a_job(), service=None, taken=(Taken("Service", "pi"),))
    assert plan_for(seen).requeue_after is not None


# --- the Service ------------------------------------------------------------------------------


def test_a_changed_service_is_corrected():
    job = a_job()
    stored = a_service(job)
    stored.spec.selector["colour"] = "red"
    plan = plan_for(observed(job, service=stored))
    [change] = changes(plan, SERVICES)
    assert change["spec"]["selector"]["colour"] is None
    assert change["spec"]["publishNotReadyAddresses"] is True


# --- pod diagnostics --------------------------------------------------------------------------


def test_the_launcher_pods_are_diagnosed_too():
    job = a_job()
    waiting = {"name": "mpi", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
    pod = a_launcher_pod(job, "Pending", containerStatuses=[waiting])
    plan = plan_for(observed(job, launcher=a_launcher(job), launcher_pods=(pod,)))
    assert reasons(plan) == ["ImagePullFailed"]
