"""Executing a plan, and its outcome."""

import asyncio
from datetime import timedelta

import pytest

from mpi_operator.build import launcher_job, worker_pod
from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import KeyPair
from mpi_operator.controller.actions import Create, CreateKeys, Delete, Patch, Resume
from mpi_operator.controller.caches import Caches
from mpi_operator.controller.events import normal
from mpi_operator.controller.execute import Executor
from mpi_operator.controller.write_limiter import WriteLimiter
from mpi_operator.kube import errors
from mpi_operator.kube.noop_metrics import NOOP_METRICS
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Key
from mpi_operator.local.apiserver.cluster import LocalCluster
from tests.support.direct_cluster import DirectCluster
from tests.support.faulty_client import FaultyClient, refused
from tests.support.mpijobs import template
from tests.support.observations import NOW, PLAIN, a_job

pytestmark = pytest.mark.looptime

JOB = a_job(100)
KEYS = KeyPair(private="private", public="public")
EVENTS = (normal("Done", "the write was sent"),)


class Bench:
    """An executor on the local cluster."""

    def __init__(self, slots=1000, settings: Settings = PLAIN):
        # It does not know MPIJobs, so it does not miss the owner of our objects.
        local = LocalCluster(clock=lambda: NOW)
        self.cluster = DirectCluster(local)
        self.client = FaultyClient(local, takes=0.01)
        self.keys_made = 0
        self.executor = Executor(
            self.client.as_client,
            Caches(self.client.as_client, ("",), settings, NOOP_METRICS),
            settings,
            WriteLimiter(slots),
            make_keys=self.make_keys,
        )

    def make_keys(self):
        self.keys_made += 1
        return KEYS

    async def do(self, *stages, job=JOB):
        return await self.executor.execute(job, stages)

    def names(self, resource):
        return [each["metadata"]["name"] for each in self.cluster.all(resource)]


def pods(*indexes):
    manifests = worker_pod.worker_pods(JOB, indexes, PLAIN)
    return [Create(PODS, manifest) for manifest in manifests]


def a_service(name="pi", labels=None, owner=None):
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "lab", "labels": labels or {}, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {}}


def creation(**metadata):
    return Create(SERVICES, a_service(**metadata), EVENTS)


OURS = {
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-name": "pi",
}


# --- stages -----------------------------------------------------------------------------------


async def test_stages_are_done_one_after_the_other():
    bench = Bench()
    await bench.do([creation()], pods(*range(20)), [Create(CONFIG_MAPS, a_service("last"))])
    assert bench.client.asked[0] == "create Service pi"
    assert bench.client.asked[-1] == "create ConfigMap last"
    assert len(bench.client.asked) == 22


async def test_a_stage_begins_with_a_few_and_grows_while_it_goes_well():
    bench = Bench()
    loop = asyncio.get_running_loop()
    began = loop.time()
    await bench.do(pods(*range(1000)))
    assert len(bench.names(PODS)) == 1000
    # 8, 24, 72, 216, 250, … at a time: seven rounds instead of 125.
    assert (loop.time() - began) / bench.client.takes == pytest.approx(7, abs=1.5)


async def test_a_stage_grows_only_while_every_slot_has_work():
    bench = Bench()
    await bench.do(pods(*range(160)))
    assert bench.client.most_in_flight == 40


async def test_a_refusal_ends_a_large_stage_early():
    bench = Bench()
    bench.client.refuse("create Pod", refused(403, "exceeded quota: pods"))
    outcome = await bench.do(pods(*range(1000)), [creation()])
    assert len(bench.client.asked) == 8
    assert bench.names(SERVICES) == []
    assert outcome.refused == {(PODS, Key("lab", f"pi-worker-{index}")) for index in range(8)}


async def test_a_stage_stops_at_the_first_failure():
    bench = Bench()
    bench.client.refuse("create Pod pi-worker-8", refused(403, "exceeded quota: pods"))
    await bench.do(pods(*range(1000)))
    assert len(bench.client.asked) <= 32


async def test_one_job_writes_no_more_at_a_time_than_there_are_slots():
    bench = Bench(slots=5)
    await bench.do(pods(*range(100)))
    assert bench.client.most_in_flight == 5


async def test_a_stage_that_is_cancelled_leaves_nothing_running():
    bench = Bench()
    task = asyncio.create_task(bench.do(pods(*range(100))))
    await asyncio.sleep(0.015)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    asked = len(bench.client.asked)
    await asyncio.sleep(10)
    assert (bench.client.in_flight, len(bench.client.asked)) == (0, asked)


async def test_an_empty_plan_sends_no_request():
    bench = Bench()
    outcome = await bench.do()
    assert outcome.is_good
    assert bench.client.asked == []


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "reason", "is_fatal"),
    [
        (refused(422, "spec.containers: Required value"), "InvalidPodTemplate", True),
        (refused(403, "exceeded quota: pods"), "QuotaExceeded", False),
        (refused(403, "pods is forbidden"), "Forbidden", False),
        (refused(400, 'admission webhook "w" denied the request: no'), "AdmissionDenied", False),
        (refused(413, "request is too large"), "Rejected", False),
    ],
)
async def test_a_refusal_is_reported_with_the_message_of_the_server(error, reason, is_fatal):
    bench = Bench()
    bench.client.refuse("create Pod", error)
    outcome = await bench.do(pods(0))
    [problem] = outcome.problems
    assert (problem.reason, problem.is_fatal) == (reason, is_fatal)
    assert problem.message == f"Pod pi-worker-0 was not created: {error}"
    assert outcome.error is None


async def test_a_refused_change_of_the_launcher_is_never_final():
    bench = Bench()
    bench.client.refuse("patch Job", refused(422, "field is immutable"))
    action = Patch(JOBS, Key("lab", "pi-launcher"), "uid", {"spec": {"suspend": True}})
    outcome = await bench.do([action])
    assert [(each.reason, each.is_fatal) for each in outcome.problems] == [("Rejected", False)]


@pytest.mark.parametrize(
    "error",
    [
        errors.ConnectionLost("no answer"),
        errors.NotSent("no route"),
        errors.NotLeader("the lease is gone"),
        refused(500, "etcd is away"),
        refused(429, "slow down"),
        refused(401, "Unauthorized"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_transient_errors_are_left_to_the_queue(error):
    bench = Bench()
    bench.client.refuse("create Pod", error)
    outcome = await bench.do(pods(*range(50)), [creation()])
    assert outcome.error is error
    assert outcome.problems == []
    assert len(bench.client.asked) == 8


@pytest.mark.parametrize("code", [409, 404], ids=["it changed", "it is gone"])
async def test_a_patch_that_comes_too_late_is_stale(code):
    bench = Bench()
    bench.client.refuse("patch ConfigMap", refused(code))
    action = Patch(CONFIG_MAPS, Key("lab", "pi-config"), "uid", {"data": {}}, EVENTS)
    outcome = await bench.do([action], [creation()])
    assert outcome.is_stale
    assert (outcome.problems, outcome.error, outcome.events) == ([], None, [])
    assert bench.names(SERVICES) == []


async def test_a_missing_kind_or_namespace_is_reported():
    bench = Bench()
    bench.client.refuse("create Service", refused(404, 'namespaces "lab" not found'))
    [problem] = (await bench.do([creation()])).problems
    assert problem.message == 'Service pi was not created: namespaces "lab" not found'


# --- creating ---------------------------------------------------------------------------------


async def test_events_follow_the_write():
    assert (await Bench().do([creation()])).events == list(EVENTS)


async def test_an_existing_object_of_the_job_is_used():
    bench = Bench()
    bench.cluster.create(SERVICES, a_service(labels=OURS, owner="uid-of-pi"))
    outcome = await bench.do([creation(labels=OURS)])
    assert outcome.is_stale
    assert (outcome.problems, outcome.events) == ([], [])
    assert bench.client.asked == ["create Service pi", "get Service pi"]


@pytest.mark.parametrize(
    "owner", ["uid-of-another-pi", None], ids=["of another job", "without an owner"]
)
async def test_an_existing_object_of_another_owner_is_not_touched(owner):
    bench = Bench()
    bench.cluster.create(SERVICES, a_service(owner=owner))
    before = bench.cluster.all(SERVICES)
    outcome = await bench.do([creation(labels=OURS)], pods(0))
    [problem] = outcome.problems
    assert problem.reason == "ErrResourceExists"
    assert problem.message == (
        'Resource "pi" of Kind "Service" already exists and is not managed by MPIJob'
    )
    assert outcome.refused == {(SERVICES, Key("lab", "pi"))}
    assert bench.cluster.all(SERVICES) == before
    assert bench.names(PODS) == []


async def test_an_object_of_the_previous_operator_is_adopted():
    bench = Bench()
    bench.cluster.create(SERVICES, a_service(labels={"app": "pi"}, owner="uid-of-pi"))
    outcome = await bench.do([creation(labels=OURS)])
    [stored] = bench.cluster.all(SERVICES)
    assert stored["metadata"]["labels"] == {"app": "pi"} | OURS
    assert outcome.is_stale


async def test_an_adopted_launcher_loses_its_ttl():
    bench = Bench()
    wanted = launcher_job.launcher_job(JOB, PLAIN, suspend=False)
    old = a_service("pi-launcher", {"app": "pi"}, owner="uid-of-pi")
    bench.cluster.create(JOBS, old | {"spec": {"ttlSecondsAfterFinished": 0}})
    await bench.do([Create(JOBS, wanted)])
    [stored] = bench.cluster.all(JOBS)
    assert "ttlSecondsAfterFinished" not in stored["spec"]


async def test_an_object_that_was_deleted_meanwhile_is_no_refusal():
    bench = Bench()
    bench.client.refuse("create Pod", refused(409, "already exists", "AlreadyExists"))
    outcome = await bench.do(pods(0))
    assert outcome.is_stale
    assert outcome.problems == []


# --- keys -------------------------------------------------------------------------------------


async def test_keys_are_made_and_remembered():
    bench = Bench()
    outcome = await bench.do([CreateKeys(JOB)])
    assert bench.names(SECRETS) == ["pi-ssh"]
    assert outcome.has_keys


async def test_keys_that_are_there_are_kept():
    bench = Bench()
    await bench.do([CreateKeys(JOB)])
    before = bench.cluster.all(SECRETS)
    outcome = await bench.do([CreateKeys(JOB)])
    assert outcome.is_good
    assert bench.cluster.all(SECRETS) == before


async def test_keys_of_another_owner_are_not_used():
    bench = Bench()
    bench.cluster.create(SECRETS, a_service("pi-ssh", owner="uid-of-another-pi"))
    outcome = await bench.do([CreateKeys(JOB)])
    assert [problem.reason for problem in outcome.problems] == ["ErrResourceExists"]
    assert outcome.refused == {(SECRETS, Key("lab", "pi-ssh"))}
    assert not outcome.has_keys


async def test_keys_that_were_deleted_meanwhile_are_no_refusal():
    bench = Bench()
    bench.client.refuse("create Secret", refused(409, "already exists", "AlreadyExists"))
    outcome = await bench.do([CreateKeys(JOB)], pods(0))
    assert outcome.is_stale
    assert outcome.problems == []
    assert not outcome.has_keys
    assert bench.names(PODS) == []


# --- changing ---------------------------------------------------------------------------------


async def test_a_patch_applies_only_to_the_object_with_that_uid():
    bench = Bench()
    bench.cluster.create(SERVICES, a_service())
    action = Patch(SERVICES, Key("lab", "pi"), "uid-of-an-earlier-one", {"spec": {"a": 1}})
    outcome = await bench.do([action])
    assert outcome.is_stale
    assert bench.cluster.all(SERVICES)[0]["spec"] == {}


# --- resuming ---------------------------------------------------------------------------------


def stored_launcher(bench, **status):
    job = a_job(launcher={"template": template(nodeSelector={"queue": "slow"})})
    manifest = launcher_job.launcher_job(job, PLAIN, suspend=True)
    stored = bench.cluster.create(JOBS, manifest | {"status": status})
    return Key("lab", "pi-launcher"), stored["metadata"]["uid"]


async def test_a_resumed_launcher_gets_the_current_scheduling_of_the_job():
    bench = Bench()
    key, uid = stored_launcher(bench)
    today = a_job(launcher={"template": template(nodeSelector={"queue": "fast"})})
    await bench.do([Resume(key, uid, today)])
    spec = bench.cluster.get(JOBS, key)["spec"]
    assert spec["suspend"] is False
    assert spec["template"]["spec"]["nodeSelector"] == {"queue": "fast"}


async def test_a_start_time_is_removed_before_resuming():
    bench = Bench()
    key, uid = stored_launcher(bench, startTime="2026-03-01T11:00:00Z", failed=1)
    await bench.do([Resume(key, uid, JOB)])
    assert bench.client.asked == [
        "get Job pi-launcher",
        "replace status of Job pi-launcher",
        "replace Job pi-launcher",
    ]
    assert bench.cluster.get(JOBS, key)["status"] == {"failed": 1}


async def test_a_launcher_with_another_uid_is_left_alone():
    bench = Bench()
    key, _ = stored_launcher(bench)
    outcome = await bench.do([Resume(key, "uid-of-an-earlier-one", JOB)])
    assert outcome.is_stale
    assert bench.cluster.get(JOBS, key)["spec"]["suspend"] is True


async def test_a_refused_resumption_is_reported_and_not_final():
    bench = Bench()
    key, uid = stored_launcher(bench)
    bench.client.refuse("replace Job", refused(422, "field is immutable"))
    [problem] = (await bench.do([Resume(key, uid, JOB)])).problems
    assert not problem.is_fatal
    assert problem.message == "Job pi-launcher was not resumed: field is immutable"


# --- deleting ---------------------------------------------------------------------------------


async def test_a_deletion_that_was_sent_is_part_of_the_outcome():
    bench = Bench()
    stored = bench.cluster.create(SERVICES, a_service())
    action = Delete(SERVICES, Key("lab", "pi"), stored["metadata"]["uid"])
    assert (await bench.do([action])).deleted == {action}


async def test_a_deletion_that_failed_is_sent_again():
    bench = Bench()
    stored = bench.cluster.create(SERVICES, a_service())
    action = Delete(SERVICES, Key("lab", "pi"), stored["metadata"]["uid"])
    bench.client.refuse("delete", errors.ConnectionLost("no answer"))
    assert (await bench.do([action])).deleted == set()
    bench.client.relent()
    await bench.do([action])
    assert bench.names(SERVICES) == []


@pytest.mark.parametrize("uid", ["uid-of-an-earlier-one", ""], ids=["another one", "nothing"])
async def test_deleting_a_missing_object_is_no_error(uid):
    bench = Bench()
    made = [bench.cluster.create(SERVICES, a_service()) for _ in range(bool(uid))]
    outcome = await bench.do([Delete(SERVICES, Key("lab", "pi"), uid)])
    assert outcome.is_good
    assert len(bench.names(SERVICES)) == len(made)


async def test_a_forced_deletion_has_no_grace_period():
    bench = Bench()
    manifest = pods(0)[0].manifest | {"spec": {"nodeName": "lost"}}
    uid = bench.cluster.create(PODS, manifest)["metadata"]["uid"]
    await bench.do([Delete(PODS, Key("lab", "pi-worker-0"), uid)])
    assert bench.names(PODS) == ["pi-worker-0"]
    await bench.do([Delete(PODS, Key("lab", "pi-worker-0"), uid, by_force=True)])
    assert bench.names(PODS) == []


async def test_one_write_takes_no_longer_than_its_request():
    bench, loop = Bench(), asyncio.get_running_loop()
    began = loop.time()
    await bench.do(pods(0))
    assert loop.time() - began == pytest.approx(timedelta(milliseconds=10).total_seconds())
