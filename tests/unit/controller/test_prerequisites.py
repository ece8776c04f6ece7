"""What pods need: the ConfigMap, the keys and the PodGroup."""

from datetime import timedelta

import msgspec
import pytest

from mpi_operator.build import pod_group
from mpi_operator.controller.actions import CreateKeys
from mpi_operator.controller.cached_types import StoredPodGroup
from mpi_operator.controller.job_state import JobState
from mpi_operator.controller.observed import Observed
from mpi_operator.controller.plan import make_plan
from mpi_operator.kube.resources import CONFIG_MAPS
from tests.support.mpijobs import template
from tests.support.observations import (
    A_WHILE,
    NOW,
    PLAIN,
    PLUGINS,
    VOLCANO,
    a_config_map,
    a_job,
    a_launcher,
    a_worker,
    observed,
    waiting,
    workers,
)
from tests.support.plans import changes, names_created, names_deleted

SCHEDULERS = pytest.mark.parametrize(
    "settings", [VOLCANO, PLUGINS], ids=["volcano", "scheduler-plugins"]
)


def makes_keys(plan):
    return any(isinstance(action, CreateKeys) for action in plan.actions)


# --- the ConfigMap ----------------------------------------------------------------------------


def test_a_changed_config_map_is_corrected():
    job = a_job()
    stored = a_config_map(job)
    stored.data["hostfile"] = "elsewhere\n"
    stored.data["notes"] = "mine"
    [change] = changes(make_plan(observed(job, config_map=stored), PLAIN, NOW), CONFIG_MAPS)
    assert change["data"]["notes"] is None
    assert change["data"]["hostfile"].startswith("pi-worker-0.pi.lab.svc slots=1\n")


def test_more_slots_reach_the_hosts():
    job = a_job(slotsPerWorker=4)
    seen = observed(job, config_map=a_config_map(a_job()))
    [change] = changes(make_plan(seen, PLAIN, NOW), CONFIG_MAPS)
    assert "slots=4" in change["data"]["hostfile"]


# --- keys -------------------------------------------------------------------------------------


def test_keys_are_made_before_the_first_pods():
    assert makes_keys(make_plan(Observed(a_job()), PLAIN, NOW))


def test_keys_that_were_seen_are_not_asked_for_again():
    assert not makes_keys(
        make_plan(Observed(a_job(), state=JobState(keys_checked=NOW)), PLAIN, NOW)
    )


@pytest.mark.parametrize("suspend", [False, True])
def test_after_a_restart_a_launcher_implies_that_there_are_keys(suspend):
    job = a_job(policy={"suspend": suspend})
    seen = observed(job, launcher=a_launcher(job, suspend=suspend), keys_checked=None)
    assert not makes_keys(make_plan(seen, PLAIN, NOW))


def test_after_a_restart_workers_imply_that_there_are_keys():
    job = a_job(launcherCreationPolicy="WaitForWorkersReady")
    seen = observed(job, workers(job, "Running", "Pending"), keys_checked=None)
    assert not makes_keys(make_plan(seen, PLAIN, NOW))


@pytest.mark.parametrize(
    ("age", "checked", "is_checked"),
    [
        pytest.param(59, None, False, id="for less than 60s, it may just be slow"),
        pytest.param(61, None, True, id="for more than 60s, the keys may be missing"),
        pytest.param(600, 100, False, id="they were there a moment ago"),
        pytest.param(600, 301, True, id="they were there some minutes ago"),
    ],
)
def test_pods_that_are_not_started_may_lack_their_keys(age, checked, is_checked):
    seen = starting(age, checked)
    assert makes_keys(make_plan(seen, PLAIN, NOW)) == is_checked


@pytest.mark.parametrize(
    ("age", "checked", "wait"),
    [
        pytest.param(20, None, 40, id="when the keys may be missing"),
        pytest.param(600, 100, 200, id="when the last check is old"),
    ],
)
def test_the_job_is_requeued_to_check_its_keys(age, checked, wait):
    plan = make_plan(starting(age, checked), PLAIN, NOW)
    assert plan.requeue_after == timedelta(seconds=wait)


def starting(age, checked):
    job = a_job(1)
    status = {"containerStatuses": waiting("ContainerCreating")}
    pod = a_worker(job, 0, "Pending", age=timedelta(seconds=age), **status)
    moment = None if checked is None else NOW - timedelta(seconds=checked)
    return observed(job, [pod], launcher=a_launcher(job), keys_checked=moment)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"containerStatuses": waiting("ImagePullBackOff")}, id="its image is missing"),
        pytest.param({}, id="it has no node"),
    ],
)
def test_pods_that_do_not_start_for_other_reasons_do_not_lack_keys(status):
    job = a_job(1)
    pod = a_worker(job, 0, "Pending", age=A_WHILE, **status)
    seen = observed(job, [pod], launcher=a_launcher(job), keys_checked=None)
    assert not makes_keys(make_plan(seen, PLAIN, NOW))


# --- groups -----------------------------------------------------------------------------------


def a_group(job, settings, *, with_launcher=True, **spec):
    manifest = pod_group.pod_group(job, settings, {}, with_launcher=with_launcher)
    manifest["metadata"]["uid"] = "uid-of-group"
    manifest["spec"] |= spec
    return msgspec.convert(manifest, StoredPodGroup)


def group_changes(plan, settings):
    return changes(plan, pod_group.resource(settings))


def group_of(plan, settings):
    resource = pod_group.resource(settings)
    [created] = [each for each in plan.actions if getattr(each, "resource", None) == resource]
    return created.manifest["spec"]


def test_without_gang_scheduling_there_is_no_group():
    plan = make_plan(Observed(a_job()), PLAIN, NOW)
    assert "PodGroup pi" not in names_created(plan)


@SCHEDULERS
@pytest.mark.parametrize(
    ("job", "members"),
    [
        pytest.param(a_job(3), 4, id="all workers and the launcher"),
        pytest.param(
            a_job(3, launcherCreationPolicy="WaitForWorkersReady"),
            3,
            id="not the launcher while it waits for the workers",
        ),
        pytest.param(
            a_job(None, runLauncherAsWorker=True, launcherCreationPolicy="WaitForWorkersReady"),
            1,
            id="the launcher if there are no workers",
        ),
        pytest.param(
            a_job(3, policy={"schedulingPolicy": {"minAvailable": 2}}), 2, id="as many as are asked"
        ),
    ],
)
def test_how_many_members_a_group_has(settings, job, members):
    assert group_of(make_plan(Observed(job), settings, NOW), settings)["minMember"] == members


@SCHEDULERS
def test_a_group_grows_by_the_launcher_when_it_starts(settings):
    job = a_job(3, launcherCreationPolicy="WaitForWorkersReady")
    seen = observed(
        job,
        workers(job, *["Running"] * 3),
        launcher=a_launcher(job),
        pod_group=a_group(job, settings, with_launcher=False),
    )
    assert group_changes(make_plan(seen, settings, NOW), settings)[0]["spec"]["minMember"] == 4


@SCHEDULERS
def test_a_correct_group_is_left_alone(settings):
    job = a_job()
    seen = observed(job, pod_group=a_group(job, settings), launcher=a_launcher(job))
    assert group_changes(make_plan(seen, settings, NOW), settings) == []


def test_a_queue_that_volcano_filled_in_is_left_alone():
    job = a_job()
    seen = observed(job, pod_group=a_group(job, VOLCANO, queue="default"))
    assert group_changes(make_plan(seen, VOLCANO, NOW), VOLCANO) == []


@pytest.mark.parametrize(
    ("settings", "policy", "field", "value"),
    [
        pytest.param(VOLCANO, {"minAvailable": 1}, "minMember", 1, id="volcano: minAvailable"),
        pytest.param(VOLCANO, {"queue": "fast"}, "queue", "fast", id="volcano: queue"),
        pytest.param(
            PLUGINS,
            {"scheduleTimeoutSeconds": 50},
            "scheduleTimeoutSeconds",
            50,
            id="scheduler-plugins: scheduleTimeoutSeconds",
        ),
    ],
)
def test_a_group_follows_the_job(settings, policy, field, value):
    stored = a_group(a_job(), settings)
    job = a_job(policy={"schedulingPolicy": policy})
    plan = make_plan(observed(job, pod_group=stored), settings, NOW)
    assert group_changes(plan, settings)[0]["spec"][field] == value


@SCHEDULERS
def test_a_group_follows_the_size_of_the_job(settings):
    containers = [{"name": "mpi", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    small, large = (a_job(n, worker={"template": template(containers=containers)}) for n in (2, 5))
    seen = observed(large, workers(large, *["Running"] * 5), pod_group=a_group(small, settings))
    [change] = group_changes(make_plan(seen, settings, NOW), settings)
    assert change["spec"]["minMember"] == 6


@SCHEDULERS
def test_a_suspended_job_has_no_group(settings):
    job = a_job(policy={"suspend": True})
    launcher = a_launcher(job, suspend=True)
    without = observed(job, launcher=launcher)
    with_one = observed(job, launcher=launcher, pod_group=a_group(job, settings))
    assert names_created(make_plan(without, settings, NOW)) == []
    assert names_deleted(make_plan(with_one, settings, NOW)) == ["PodGroup pi"]
