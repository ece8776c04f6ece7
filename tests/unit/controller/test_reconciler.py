"""One look at a job, with everything that decides and writes, on a cluster in memory."""

import asyncio

import pytest

from mpi_operator.api.annotations import LOST_WORKERS
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.kube import errors
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import JOBS, PODS, SERVICES, Key
from tests.support.cluster import timestamp
from tests.support.observations import unschedulable
from tests.support.operators import Operator
from tests.support.scripted import refused
from tests.support.worlds import message_of

pytestmark = pytest.mark.looptime

CAUSE = "Could not resolve hostname pi-worker-1.pi.lab.svc: Name or service not known"
WAITS = f"mpi-operator: waiting for pi-worker-1, 35 s so far: {CAUSE}"
QUOTA = refused(403, "exceeded quota: pods")


async def test_a_whole_life():
    operator = await Operator(policy={"cleanPodPolicy": "All"}).run()
    operator.world.launcher_completes()
    await operator.settle()
    operator.world.kubernetes_acts()
    await operator.settle()
    assert operator.world.pods == {}
    assert operator.diary.events == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]


async def test_a_life_takes_no_more_writes_than_objects_and_a_handful():
    operator = await Operator(200).run()
    assert len(operator.client.asked) <= 4 + 200 + 5


async def test_nothing_is_written_about_a_job_that_is_as_it_should_be():
    operator = await Operator().run()
    operator.restart()
    asked, _ = await operator.look()
    assert asked == []


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue"])
async def test_a_job_that_others_manage_is_left_alone(manager):
    operator = Operator(policy={"managedBy": manager})
    assert await operator.look() == ([], None)
    assert operator.diary.events == []


@pytest.mark.parametrize("key", [Key("lab", "nobody"), Key("", "a/b")])
async def test_a_job_that_is_not_there(key):
    assert await Operator().reconciler.reconcile(key) is None


async def test_an_invalid_job_has_a_status_and_nothing_else():
    operator = Operator(slotsPerWorker=-1)
    asked, wait = await operator.look()
    assert asked == ["replace status of MPIJob pi"]
    assert operator.world.conditions["Running"] == "False ValidationError"
    assert operator.diary.events == ["MPIJobCreated", "ValidationError"]
    assert wait is None


async def test_a_job_that_becomes_valid_goes_on():
    operator = Operator(slotsPerWorker=-1)
    await operator.settle()
    operator.world.cluster.merge(MPI_JOBS, operator.world.key, {"spec": {"slotsPerWorker": 1}})
    await operator.run()
    assert operator.world.conditions["Running"] == "True MPIJobRunning"


# --- conflicts --------------------------------------------------------------------------------


async def test_a_conflict_about_the_status_writes_no_event_and_looks_again():
    operator = Operator()
    operator.client.refuse("replace status of MPIJob", refused(409))
    _, wait = await operator.look()
    assert operator.diary.events == []
    assert wait == pytest.approx(0.1)
    operator.client.relent()
    await operator.settle()
    assert operator.diary.events == ["MPIJobCreated"]


@pytest.mark.parametrize("what", ["replace status of MPIJob", "create Service"])
async def test_caches_that_stay_behind_are_waited_for_longer_and_longer(what):
    operator = Operator()
    operator.client.refuse(what, refused(409))
    waits = [(await operator.look())[1] for _ in range(12)]
    assert waits[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert waits[-1] == pytest.approx(30)
    operator.client.relent()
    await operator.settle()
    operator.client.refuse("replace status of MPIJob", refused(409))
    operator.world.scale(3)
    assert (await operator.look())[1] == pytest.approx(0.1)


async def test_a_lost_connection_is_told_to_the_queue_after_the_status_is_stored():
    operator = Operator()
    operator.client.refuse("create Pod", errors.ConnectionLost("no answer"))
    with pytest.raises(errors.ConnectionLost):
        await operator.look()
    assert operator.world.conditions == {"Created": "True MPIJobCreated"}


async def test_a_status_that_is_refused_is_not_written_in_a_loop():
    operator = await Operator().run()
    operator.world.launcher_completes()
    operator.client.refuse("replace status of MPIJob", refused(422, "Invalid"))
    _, wait = await operator.look()
    assert wait is None or wait >= 1


# --- refusals ---------------------------------------------------------------------------------


async def test_a_refusal_is_told_in_the_status():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    await operator.look()
    assert operator.world.conditions["Running"] == "False QuotaExceeded"
    assert operator.diary.events == ["MPIJobCreated", "QuotaExceeded"]


async def test_what_was_refused_is_not_asked_for_again_at_once():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    _, wait = await operator.look()
    asked, again = await operator.look()
    assert asked == []
    assert 1 <= wait <= 2
    assert again == pytest.approx(wait)


async def test_what_was_refused_is_asked_for_again_when_it_is_time():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    _, wait = await operator.look()
    operator.world.pass_time(wait)
    asked, longer = await operator.look()
    assert "create Pod pi-worker-0" in asked
    assert longer >= wait


async def test_back_off_ends_somewhere():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    waits = []
    for _ in range(20):
        _, wait = await operator.look()
        operator.world.pass_time(wait)
        waits.append(wait)
    assert 150 <= waits[-1] <= 300
    assert operator.diary.events == ["MPIJobCreated", "QuotaExceeded"]


async def test_another_spec_is_asked_for_at_once():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    await operator.look()
    operator.world.scale(1)
    asked, _ = await operator.look()
    assert "create Pod pi-worker-0" in asked


async def test_a_job_goes_on_when_the_cause_is_gone():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    _, wait = await operator.look()
    operator.client.relent()
    operator.world.pass_time(wait)
    await operator.run()
    assert operator.world.conditions["Running"] == "True MPIJobRunning"


async def test_an_invalid_template_fails_the_job():
    operator = Operator()
    operator.client.refuse("create Pod", refused(422, "spec.containers[0].image: Required"))
    await operator.look()
    assert operator.world.conditions["Failed"] == "True InvalidPodTemplate"
    assert operator.world.launcher is None
    assert operator.diary.events == ["MPIJobCreated", "InvalidPodTemplate"]


async def test_an_invalid_template_does_not_fail_a_job_that_runs():
    operator = await Operator().run()
    operator.client.refuse("create Pod", refused(422, "spec.containers[0].image: Required"))
    operator.world.scale(3)
    await operator.look()
    assert operator.world.conditions["Running"] == "True MPIJobRunning"
    assert "Failed" not in operator.world.conditions


async def test_a_failed_worker_is_not_deleted_before_it_is_counted():
    operator = await Operator().run()
    operator.world.worker_fails(1)
    operator.client.refuse("patch ConfigMap", refused(403, "may not"))
    await operator.look()
    await operator.look()
    assert operator.world.pods["pi-worker-1"] == "Failed"
    assert not any(each.startswith("delete") for each in operator.client.asked)


async def test_replacements_are_told_when_they_are_counted():
    operator = await Operator().run()
    operator.diary.events.clear()
    operator.world.worker_fails(1)
    await operator.settle()
    assert operator.diary.events == ["WorkerReplaced"]
    assert operator.world.pods == {"pi-worker-0": "Running", "pi-worker-1": ""}


async def test_a_refusal_that_follows_another_one_waits_too():
    operator = Operator()
    operator.client.refuse("create Pod", QUOTA)
    await operator.look()
    operator.client.refuse("create Service", refused(403, "services are forbidden"))
    service = operator.world.cluster.all(SERVICES)[0]
    operator.world.cluster.remove(SERVICES, Key("lab", service["metadata"]["name"]))
    first, _ = await operator.look()
    second, _ = await operator.look()
    assert "create Service pi" in first
    assert second == []


async def test_trouble_that_changes_its_words_is_told_without_anything_else_happening():
    operator = Operator()
    await operator.settle()
    unschedule(operator.world, "0/3 nodes are available")
    operator.world.pass_time(10)
    await operator.settle()
    unschedule(operator.world, "0/4 nodes are available")
    wait = await operator.settle()
    assert "0/3 nodes" in message_of(operator.world, "Running")
    operator.world.pass_time(wait)
    assert await operator.settle() is None
    assert "0/4 nodes" in message_of(operator.world, "Running")


def unschedule(world, message):
    status = {"phase": "Pending", "conditions": unschedulable(message)}
    world.cluster.merge(PODS, Key("lab", "pi-worker-0"), {"status": status})


async def test_a_refused_clean_up_is_told_once_and_tried_again():
    operator = await Operator(policy={"cleanPodPolicy": "All"}).run()
    operator.client.refuse("delete Pod", refused(403, "pods is forbidden"))
    operator.world.launcher_completes()
    await operator.look()
    for _ in range(3):
        _, wait = await operator.look()
        operator.world.pass_time(wait)
    assert operator.diary.events[-2:] == ["MPIJobSucceeded", "Forbidden"]
    assert operator.diary.messages[-1].endswith("was not deleted: pods is forbidden")
    operator.client.relent()
    await operator.settle()
    operator.world.kubernetes_acts()
    assert operator.world.pods == {}


async def test_a_launcher_whose_pod_was_lost_has_time_to_get_another():
    operator = await Operator().run()
    [pod] = operator.world.launcher_pods
    operator.world.cluster.remove(PODS, Key("lab", pod["metadata"]["name"]))
    operator.world.pass_time(3600)
    _, wait = await operator.look()
    assert operator.world.conditions["Running"] == "True MPIJobRunning"
    for _ in range(2):  # first the counts are written
        operator.world.pass_time(wait)
        _, wait = await operator.look()
    assert operator.world.conditions["Running"] == "False LauncherPodMissing"


async def test_a_restart_does_not_take_back_that_a_launcher_has_no_pod():
    operator = Operator()
    await operator.settle()
    started = {"active": 0, "startTime": timestamp(operator.world.now)}
    operator.world.cluster.merge(JOBS, Key("lab", "pi-launcher"), {"status": started})
    operator.world.pass_time(60)
    await operator.settle()
    assert operator.world.conditions["Running"] == "False LauncherPodMissing"
    operator.restart()
    asked, _ = await operator.look()
    assert asked == []


async def test_what_was_deleted_is_not_remembered_for_ever():
    operator = Operator()
    for _ in range(3):
        await operator.run()
        operator.world.suspend()
        await operator.settle()
        operator.world.kubernetes_acts()
        await operator.settle()
        operator.world.resume()
        await operator.settle()
    assert operator.memories.of(operator.world.job).deleted == set()


# --- when to look again -----------------------------------------------------------------------


async def test_a_job_that_runs_is_looked_at_when_something_happens():
    operator = await Operator(0, runLauncherAsWorker=True).run()
    assert await operator.look() == ([], None)


LISTENS = ["log mpi of Pod pi-launcher-0"]


async def waiting():
    """A job whose launcher waits for a worker, which is told."""
    operator = await Operator().run()
    operator.world.pass_time(30)
    operator.client.printed = b"one\n" + WAITS.encode() + b"\n\xff\n"
    assert await operator.look() == (LISTENS, 0)
    await operator.settle()
    assert message_of(operator.world, "Running").endswith(f"waits for pi-worker-1: {CAUSE}")
    return operator


async def test_a_launcher_is_listened_to_and_what_it_waits_for_is_told():
    operator = await waiting()
    assert operator.diary.events[-1] == "LauncherWaits"
    assert await operator.look() == ([], 30)
    assert operator.client.logs == [
        LogOptions(container="mpi", tail_lines=2000, since_seconds=120, limit_bytes=256 * 1024)
    ]


async def test_what_a_launcher_does_not_wait_for_any_more_is_not_told():
    operator = await waiting()
    operator.client.printed = b""
    operator.world.pass_time(30)
    await operator.settle()
    assert message_of(operator.world, "Running").endswith("is running.")
    assert await operator.look() == ([], 60)


async def test_a_log_that_cannot_be_read_for_once_changes_nothing():
    operator = await waiting()
    operator.client.refuse("log", refused(503))
    operator.world.pass_time(30)
    assert await operator.look() == (LISTENS, 0)
    assert await operator.look() == ([], 30)
    assert message_of(operator.world, "Running").endswith(CAUSE)


async def test_what_cannot_be_read_for_long_is_not_told_any_more():
    operator = await waiting()
    operator.client.refuse("log", refused(403))
    for _ in range(5):
        operator.world.pass_time(30)
        await operator.settle()
    assert message_of(operator.world, "Running").endswith("is running.")


async def test_a_new_operator_tells_the_same():
    operator = await waiting()
    told = len(operator.diary.events)
    operator.restart()
    assert await operator.look() == (LISTENS, 0)
    assert await operator.look() == ([], 30)
    assert len(operator.diary.events) == told


@pytest.mark.parametrize("error", [refused(403), refused(500), refused(404)])
async def test_a_launcher_whose_log_is_not_to_be_had_is_asked_again_some_day(error):
    operator = await Operator().run()
    operator.client.refuse("log", error)
    operator.world.pass_time(30)
    assert await operator.look() == (LISTENS, 0)
    assert await operator.look() == ([], 30)
    assert "LauncherWaits" not in operator.diary.events


async def test_a_node_that_does_not_answer_holds_nobody_up():
    operator = await Operator().run()
    operator.world.pass_time(30)
    operator.client.takes = 60
    began = asyncio.get_running_loop().time()
    assert await operator.look() == (LISTENS, 0)
    assert asyncio.get_running_loop().time() - began == pytest.approx(3)


async def test_what_there_is_to_do_is_done_before_a_launcher_is_listened_to():
    operator = await Operator().run()
    operator.world.pass_time(30)
    operator.world.worker_vanishes(1)
    asked, wait = await operator.look()
    assert asked[-1] == LISTENS[0]
    assert "create Pod pi-worker-1" in asked
    assert wait == 0


async def test_a_job_that_has_ended_is_looked_at_at_once_to_clean_up():
    operator = await Operator().run()
    operator.world.launcher_completes()
    assert (await operator.look())[1] == 0


async def test_one_that_is_over_its_time_is_not_looked_at_in_a_loop():
    operator = await Operator(policy={"ttlSecondsAfterFinished": 10}).run()
    operator.world.launcher_completes()
    wait = await operator.settle()
    assert wait == pytest.approx(10)
    operator.world.pass_time(11)
    assert await operator.settle() is None
    assert operator.world.launcher is None


async def test_counts_are_written_when_their_moment_has_come():
    operator = Operator()
    await operator.settle()
    operator.world.worker_runs(0)
    wait = await operator.settle()
    assert operator.world.manifest["status"]["replicaStatuses"]["Worker"]["active"] == 0
    for _ in range(2):  # the list of hosts waits as well, less long
        operator.world.pass_time(wait)
        wait = await operator.settle()
    assert operator.world.manifest["status"]["replicaStatuses"]["Worker"]["active"] == 1


# --- restarts ---------------------------------------------------------------------------------


async def test_a_restart_between_counting_and_deleting_counts_once():
    operator = await Operator(policy={"backoffLimit": 1}).run()
    operator.world.worker_fails(1)
    operator.client.refuse("delete Pod", errors.ConnectionLost("the operator died"))
    with pytest.raises(errors.ConnectionLost):
        await operator.look()
    operator.restart()
    operator.client.relent()
    await operator.settle()
    assert (PODS, "pi-worker-1") in {(r, k.name) for (r, k), _ in operator.world.cluster}
    assert operator.world.pods["pi-worker-1"] == ""


async def test_a_lost_lease_is_no_mistake_of_the_job():
    operator = Operator()
    operator.client.refuse("create Service", errors.NotLeader("the lease is over"))
    _, wait = await operator.look()
    assert wait is None


async def test_a_launcher_that_ends_while_a_plan_is_carried_out_is_judged():
    operator = await Operator(annotations={LOST_WORKERS: "fail"}).run()
    operator.world.pass_time(60)
    operator.world.worker_vanishes(1)

    def end(request):
        if str(request).startswith("create Pod"):
            operator.world.launcher_pod_succeeds()
            operator.world.launcher_completes()

    operator.client.landed = end
    _, wait = await operator.look()
    assert (wait, operator.world.conditions["Running"]) == (0, "True MPIJobRunning")
    await operator.settle()
    assert operator.world.conditions["Failed"] == "True WorkerLost"


# --- errors -----------------------------------------------------------------------------------


async def fail(operator, seconds):
    """Look again and again."""
    for _ in range(int(seconds)):
        with pytest.raises(errors.ServerError):
            await operator.look()
        operator.world.pass_time(1)


async def test_a_job_with_which_the_operator_fails_for_long_is_told_once():
    operator = Operator()
    operator.client.refuse("create Pod", refused(500, "etcd is full"))
    await fail(operator, 30)
    assert "OperatorError" not in operator.diary.events
    await fail(operator, 3)
    assert operator.diary.events.count("OperatorError") == 1
    assert operator.diary.messages[-1].endswith("ServerError: etcd is full")


async def test_failures_that_pass_are_forgotten():
    operator = Operator()
    operator.client.refuse("create Pod", refused(500))
    await fail(operator, 25)
    operator.client.relent()
    await operator.run()
    operator.client.refuse("create Pod", refused(500))
    operator.world.worker_vanishes(1)
    await fail(operator, 25)
    assert "OperatorError" not in operator.diary.events
