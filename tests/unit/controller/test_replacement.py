"""Workers that are lost while their job runs: counted and replaced, up to a limit."""

from datetime import timedelta

import pytest

from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.replacement import Count, as_annotation, replacements, stored_counts
from mpi_operator.kube.resources import CONFIG_MAPS
from tests.support.observations import (
    NOW,
    PLAIN,
    a_config_map,
    a_job,
    a_launcher,
    a_worker,
    observed,
    terminated,
    workers,
)
from tests.support.plans import changes, names_created, names_deleted

RECENTLY = NOW - timedelta(minutes=2)
ANNOTATION = "mpi-operator.kubeflow.org/worker-replacements"


def seconds(number):
    return timedelta(seconds=number)


def plan_for(job, pods, now=NOW, **more):
    return make_plan(observed(job, pods, launcher=a_launcher(job), **more), PLAIN, now)


# --- the first loss ---------------------------------------------------------------------------


def test_a_failed_worker_is_counted_and_then_deleted():
    job = a_job()
    plan = plan_for(job, workers(job, "Running", "Failed"), hosts=(0, 1))
    counting, deleting = plan.stages
    assert [each.resource for each in counting] == [CONFIG_MAPS]
    assert ANNOTATION in counting[0].patch["metadata"]["annotations"]
    assert [each.uid for each in deleting] == ["uid-of-pi-worker-1"]


def test_a_counted_worker_is_deleted_and_not_counted_again():
    job = a_job()
    counts = {1: Count(1, "uid-of-pi-worker-1", RECENTLY)}
    plan = plan_for(job, workers(job, "Running", "Failed"), hosts=(0,), counts=counts)
    assert changes(plan, CONFIG_MAPS) == []
    assert names_deleted(plan) == ["Pod pi-worker-1"]


def test_the_next_pod_of_that_name_is_counted_for_itself():
    job = a_job()
    counts = {1: Count(1, "uid-of-an-earlier-pod", RECENTLY)}
    plan = replacements(observed(job, workers(job, "Running", "Failed"), counts=counts), NOW)
    assert plan.counts == {1: Count(2, "uid-of-pi-worker-1", NOW, before=RECENTLY)}


def test_a_vanished_worker_is_counted_by_the_write_that_takes_it_from_the_list():
    job = a_job()
    plan = plan_for(job, workers(job, "Running"), hosts=(0, 1))
    [change] = changes(plan, CONFIG_MAPS)
    assert ANNOTATION in change["metadata"]["annotations"]
    assert "pi-worker-1" not in change["data"]["discover_hosts.sh"]
    assert names_created(plan) == ["Pod pi-worker-1"]


def test_a_worker_that_a_user_deletes_is_counted_when_it_leaves_the_list():
    job = a_job()
    ending = a_worker(job, 1, deleted=-seconds(30))
    plan = plan_for(job, [a_worker(job, 0), ending], hosts=(0, 1))
    [change] = changes(plan, CONFIG_MAPS)
    assert ANNOTATION in change["metadata"]["annotations"]
    assert names_created(plan) == names_deleted(plan) == []


def test_a_worker_that_never_ran_is_recreated_without_being_counted():
    job = a_job()
    plan = plan_for(job, workers(job, "Running"), hosts=(0,))
    assert changes(plan, CONFIG_MAPS) == []
    assert names_created(plan) == ["Pod pi-worker-1"]


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Unknown"])
def test_a_worker_that_did_not_fail_is_not_replaced(phase):
    job = a_job(1)
    assert replacements(observed(job, workers(job, phase)), NOW).failed == ()


def test_hosts_beyond_the_size_of_the_job_did_not_vanish():
    job = a_job(1)
    assert replacements(observed(job, workers(job, "Running"), hosts=(0, 1, 2)), NOW).counts == {}


# --- events -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "how"),
    [
        pytest.param(
            {"containerStatuses": terminated(137, "one\ntwo\n", reason="OOMKilled")},
            "container mpi ended with exit code 137 (OOMKilled): one\ntwo",
            id="exit code and last lines",
        ),
        pytest.param(
            {"reason": "Evicted", "message": "The node was low on memory."},
            "Evicted: The node was low on memory.",
            id="evicted",
        ),
        pytest.param({}, "cause unknown", id="no cause"),
    ],
)
def test_the_event_says_how_a_worker_ended(status, how):
    job = a_job(policy={"backoffLimit": 3})
    pods = [a_worker(job, 0), a_worker(job, 1, "Failed", **status)]
    [events] = replacements(observed(job, pods), NOW).events
    assert events.reason == "WorkerReplaced"
    assert events.message == f"Worker pi-worker-1 is being replaced (1 of 3): {how}"


@pytest.mark.parametrize(
    ("conditions", "how"),
    [
        pytest.param([], "the pod was deleted", id="by a user"),
        pytest.param(
            [{"type": "DisruptionTarget", "status": "True", "message": "Taint manager: no"}],
            "evicted from its node: Taint manager: no",
            id="by Kubernetes",
        ),
    ],
)
def test_the_event_says_why_a_worker_is_deleted_and_that_it_has_to_end_first(conditions, how):
    job = a_job()
    ending = a_worker(job, 1, deleted=-seconds(30), conditions=conditions)
    [events] = replacements(observed(job, [a_worker(job, 0), ending], hosts=(0, 1)), NOW).events
    assert events.message == (
        f"Worker pi-worker-1 will be replaced once it is gone (1 of 6): {how}"
    )


def test_the_event_belongs_to_the_write_that_counts():
    job = a_job()
    plan = plan_for(job, workers(job, "Running"), hosts=(0, 1))
    [counting] = [each for each in plan.actions if getattr(each, "resource", None) == CONFIG_MAPS]
    assert [events.message for events in counting.events] == [
        "Worker pi-worker-1 is being replaced (1 of 6): the pod is gone"
    ]


# --- back-off ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "delay"),
    [(1, 0), (2, 10), (3, 20), (4, 40), (6, 160), (7, 300), (50, 300)],
)
def test_replacements_come_later_and_later(times, delay):
    job = a_job(1, policy={"backoffLimit": 100})
    counts = {0: Count(times, "uid", NOW)}
    before = plan_for(job, [], NOW + seconds(delay) - seconds(1), counts=counts, hosts=())
    after = plan_for(job, [], NOW + seconds(delay), counts=counts, hosts=())
    assert names_created(before) == [] or delay == 0
    assert names_created(after) == ["Pod pi-worker-0"]


def test_the_job_is_requeued_for_the_next_replacement():
    job = a_job(1)
    counts = {0: Count(3, "uid", NOW)}
    plan = plan_for(job, [], NOW + seconds(5), counts=counts, hosts=())
    assert plan.requeue_after == seconds(15)


# --- the limit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        pytest.param({}, 6, id="as often as a launcher"),
        pytest.param({"policy": {"backoffLimit": 2}}, 2, id="as the launcher of this job"),
        pytest.param(
            {
                "policy": {"backoffLimit": 2},
                "annotations": {"mpi-operator.kubeflow.org/max-worker-replacements": "9"},
            },
            9,
            id="as its annotation says",
        ),
        pytest.param(
            {"annotations": {"mpi-operator.kubeflow.org/max-worker-replacements": "many"}},
            6,
            id="an annotation that is no number is ignored",
        ),
        pytest.param({"policy": {"backoffLimit": 0}}, 0, id="never"),
    ],
)
def test_a_failed_worker_is_kept_at_the_replacement_limit(settings, limit):
    job = a_job(1, **settings)
    last = replacements(failed_after(job, limit - 1), NOW) if limit else None
    over = replacements(failed_after(job, limit), NOW)
    assert last is None or (len(last.failed), len(last.given_up)) == (1, 0)
    assert (len(over.failed), len(over.given_up)) == (0, 1)


def failed_after(job, times):
    counts = {0: Count(times, "uid-of-an-earlier-pod", RECENTLY)} if times else {}
    return observed(job, workers(job, "Failed"), counts=counts)


def test_a_vanished_worker_is_not_recreated_at_the_replacement_limit():
    job = a_job(1, policy={"backoffLimit": 1})
    counts = {0: Count(1, "", RECENTLY)}
    plan = plan_for(job, [], hosts=(0,), counts=counts)
    assert names_created(plan) == []
    assert [problem.is_fatal for problem in plan.problems] == [True]


def test_a_worker_at_its_limit_stays_there_when_its_host_has_left_the_list():
    job = a_job(1, policy={"backoffLimit": 1})
    plan = plan_for(job, [], hosts=(), counts={0: Count(2, "", RECENTLY)})
    assert plan.actions == ()
    assert len(plan.problems) == 1


@pytest.mark.parametrize(
    ("status", "reason", "how"),
    [
        pytest.param(
            {"containerStatuses": terminated(3)},
            "WorkerFailed",
            "container mpi ended with exit code 3",
            id="failed",
        ),
        pytest.param(
            {"reason": "Evicted", "message": "low on memory"},
            "MPIJobEvicted",
            "Evicted: low on memory",
            id="evicted",
        ),
    ],
)
def test_how_a_worker_at_its_replacement_limit_is_reported(status, reason, how):
    job = a_job(1, policy={"backoffLimit": 0})
    pod = a_worker(job, 0, "Failed", **status)
    [problem] = replacements(observed(job, [pod]), NOW).given_up.values()
    assert (problem.reason, problem.is_fatal) == (reason, True)
    assert problem.message == f"Worker pi-worker-0 reached its replacement limit (0): {how}"


@pytest.mark.parametrize("is_there", [True, False], ids=["failed", "vanished"])
def test_replacements_of_more_than_an_hour_ago_do_not_count(is_there):
    job = a_job(1, policy={"backoffLimit": 1})
    pods = workers(job, "Failed") if is_there else ()
    counts = {0: Count(2, "", NOW - timedelta(minutes=59))}
    seen = observed(job, pods, hosts=(), counts=counts)
    assert len(replacements(seen, NOW).given_up) == 1
    assert len(replacements(seen, NOW + timedelta(minutes=1)).given_up) == 0


def test_counting_starts_again_after_an_hour():
    job = a_job(1)
    counts = {0: Count(5, "", NOW - timedelta(hours=1))}
    seen = observed(job, workers(job, "Failed"), counts=counts)
    assert replacements(seen, NOW).counts[0].times == 1


# --- what is stored ---------------------------------------------------------------------------


def test_counts_are_read_as_they_are_written():
    counts = {0: Count(1, "uid", NOW), 11: Count(7, "", RECENTLY)}
    assert stored_counts(a_config_map(a_job(), counts=counts)) == counts


def test_without_a_replacement_there_is_no_annotation():
    assert as_annotation({}) == {}


@pytest.mark.parametrize(
    "text",
    ["", "none", "[]", "{", '{"0": [1]}', '{"a": [1, "", "2026-03-01T00:00:00Z"]}', "[" * 5000],
)
def test_an_unreadable_annotation_counts_as_nothing(text):
    stored = a_config_map(a_job())
    stored.metadata.annotations[ANNOTATION] = text
    assert stored_counts(stored) == {}


@pytest.mark.parametrize("year", [2027, 9999])
def test_counts_of_the_future_count_as_nothing(year):
    job = a_job(1)
    stored = a_config_map(job)
    stored.metadata.annotations[ANNOTATION] = f'{{"0":[3,"","{year}-12-31T23:59:59Z"]}}'
    plan = plan_for(job, [], config_map=stored)
    assert names_created(plan) == ["Pod pi-worker-0"]


def test_suspending_a_job_resets_its_replacement_counts():
    job = a_job(1, policy={"suspend": True})
    seen = observed(
        job, [], counts={0: Count(3, "", RECENTLY)}, launcher=a_launcher(job, suspend=True)
    )
    [change] = changes(make_plan(seen, PLAIN, NOW), CONFIG_MAPS)
    assert change["metadata"]["annotations"] == {ANNOTATION: None}


# --- lost nodes -------------------------------------------------------------------------------

BY_FORCE = {"mpi-operator.kubeflow.org/force-delete-lost-workers": "true"}


@pytest.mark.parametrize(
    ("overdue", "is_lost"), [(-30, False), (0, False), (30, False), (31, True), (4000, True)]
)
def test_a_worker_that_keeps_terminating_is_reported(overdue, is_lost):
    job = a_job(1)
    plan = plan_for(job, [a_worker(job, 0, deleted=seconds(overdue))], hosts=())
    assert [problem.reason for problem in plan.problems] == ["WorkerLost"] * is_lost
    assert plan.actions == ()


@pytest.mark.parametrize(
    ("annotations", "is_forced"),
    [({}, False), (BY_FORCE, True), (dict.fromkeys(BY_FORCE, "maybe"), False)],
    ids=["not without the annotation", "with the annotation", "not with an unknown value"],
)
def test_a_lost_worker_is_deleted_by_force(annotations, is_forced):
    job = a_job(1, annotations=annotations)
    plan = plan_for(job, [a_worker(job, 0, deleted=seconds(60))], hosts=())
    assert [each.by_force for each in plan.actions] == [True] * is_forced


def test_the_sentence_names_the_node_and_what_to_do():
    job = a_job(1)
    pod = a_worker(job, 0, deleted=seconds(60))
    [problem] = plan_for(job, [pod], hosts=()).problems
    assert problem.message.startswith(
        "Worker pi-worker-0 should have terminated by 2026-03-01T11:59:00Z; node "
    )
    assert "delete the pod by force, or set the annotation" in problem.message
    assert "force-delete-lost-workers" in problem.message
    assert not problem.is_fatal


def test_a_forced_deletion_asks_for_no_manual_step():
    job = a_job(1, annotations=BY_FORCE)
    plan = plan_for(job, [a_worker(job, 0, deleted=seconds(60))], hosts=())
    [deletion] = plan.deletions
    [event] = deletion.events
    assert event.reason == "WorkerLost"
    assert "The operator deletes it by force (mpi-operator.kubeflow.org/force-" in event.message
    assert "set the annotation" not in event.message
    assert plan.problems == ()


def test_a_worker_that_survives_a_forced_deletion_is_reported():
    job = a_job(1, annotations=BY_FORCE)
    [found] = plan_for(job, [a_worker(job, 0, deleted=seconds(61))], hosts=()).problems
    assert found.message.endswith("check its finalizers")


def test_the_job_is_requeued_for_when_a_terminating_worker_counts_as_lost():
    job = a_job(1)
    plan = plan_for(job, [a_worker(job, 0, deleted=seconds(10))], hosts=())
    assert plan.requeue_after == seconds(20)


# --- how long counts are kept -----------------------------------------------------------------

LONG_AGO = NOW - timedelta(hours=2)


def test_old_counts_are_dropped_when_a_new_one_is_written():
    job = a_job(3)
    counts = {0: Count(3, "uid", LONG_AGO), 2: Count(1, "uid", RECENTLY)}
    seen = observed(job, workers(job, "Running", "Failed", "Running"), counts=counts)
    assert dict(replacements(seen, NOW).counts) == {
        1: Count(1, "uid-of-pi-worker-1", NOW),
        2: Count(1, "uid", RECENTLY),
    }


def test_an_old_count_alone_causes_no_write():
    job = a_job(2)
    counts = {0: Count(3, "uid", LONG_AGO)}
    plan = plan_for(job, workers(job, "Running", "Running"), hosts=(0, 1), counts=counts)
    assert plan.actions == ()
