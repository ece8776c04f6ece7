"""Workers that fail, are evicted, vanish or are lost with their node while their job runs."""

import json

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from mpi_operator.api.annotations import (
    FORCE_DELETE_LOST_WORKERS,
    MAX_WORKER_REPLACEMENTS,
    WORKER_REPLACEMENTS,
)
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, Manifest
from tests.api.operator.conftest import Resident, StartOperator
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.waiting import until

_NEVER = {"restartPolicy": "Never"}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lost_workers(resident: Resident, control_plane: ControlPlane) -> dict[str, str]:
    """The first workers of the jobs `lost` and `forced`, on a node that does not confirm their end.

    By job, the uid that it had. The second job may have it deleted by force.
    """
    async with HttpClient(config.load(kubeconfig=control_plane.kubeconfig())) as client:
        jobs = Jobs(client, resident.namespace)
        forced = mpijob("forced")
        forced["metadata"]["annotations"] = {FORCE_DELETE_LOST_WORKERS: "true"}
        return {
            job["metadata"]["name"]: await jobs.lose_first_worker(job)
            for job in (mpijob("lost"), forced)
        }


@pytest.fixture(scope="module", autouse=True)
def _early_losses(request: pytest.FixtureRequest) -> None:
    """A worker counts as lost after half a minute: begin now, if anybody will ask for one."""
    items = request.session.items
    if any("lost_workers" in getattr(item, "fixturenames", ()) for item in items):
        request.getfixturevalue("lost_workers")


def _limited(job: Manifest, times: int) -> Manifest:
    """A job of which each worker is replaced so many times."""
    notes = {MAX_WORKER_REPLACEMENTS: str(times)}
    return {**job, "metadata": {**job["metadata"], "annotations": notes}}


async def _uid(jobs: Jobs, pod: str) -> str:
    found = await jobs.find(PODS, pod)
    return str(found["metadata"]["uid"]) if found else ""


async def _replaced(jobs: Jobs, pod: str, uid: str, seconds: float = 30) -> None:
    """Wait until another pod has the name."""

    async def is_another() -> bool:
        return await _uid(jobs, pod) not in ("", uid)

    await until(is_another, seconds)


async def _counts(jobs: Jobs, job: str) -> dict[str, int]:
    """How often each worker was replaced, as it is on record."""
    found = await jobs.client.get(CONFIG_MAPS, f"{job}-config", jobs.namespace)
    notes = found["metadata"].get("annotations", {}).get(WORKER_REPLACEMENTS, "{}")
    return {index: count[0] for index, count in json.loads(notes).items()}


async def test_a_failed_worker_is_replaced_and_its_last_lines_are_reported(shared: Jobs) -> None:
    await shared.submit(mpijob("failed-worker", worker=_NEVER | {"replicas": 2}))
    launcher = await shared.start("failed-worker", workers=2)
    uid = await _uid(shared, "failed-worker-worker-1")
    words = "sshd: no hostkeys available -- exiting."
    await shared.fail("failed-worker-worker-1", exit_code=137, message=words)
    await _replaced(shared, "failed-worker-worker-1", uid)
    [message] = await shared.event_messages("failed-worker", "WorkerReplaced")
    assert "failed-worker-worker-1" in message
    assert message.endswith(f"exit code 137: {words}")
    assert await _counts(shared, "failed-worker") == {"1": 1}
    assert await shared.condition("failed-worker", "Failed") is None

    await shared.run("failed-worker-worker-1")
    await until(lambda: _lists(shared, "failed-worker", 2))
    await shared.succeed(launcher)
    await shared.becomes("failed-worker", "Succeeded")


async def _lists(jobs: Jobs, job: str, count: int) -> bool:
    return len(await jobs.hosts(job)) == count


async def test_an_evicted_worker_is_replaced_and_its_job_succeeds(shared: Jobs) -> None:
    await shared.submit(mpijob("evicted"))
    launcher = await shared.start("evicted", workers=2)
    uid = await _uid(shared, "evicted-worker-0")
    await shared.evict("evicted-worker-0")
    await _replaced(shared, "evicted-worker-0", uid)
    [message] = await shared.event_messages("evicted", "WorkerReplaced")
    assert "evicted-worker-0" in message
    assert message.endswith("Evicted: The node was low on resource: memory.")
    assert await shared.condition("evicted", "Failed") is None
    await shared.succeed(launcher)
    await shared.becomes("evicted", "Succeeded")


async def test_a_worker_that_vanished_is_replaced(shared: Jobs) -> None:
    await shared.submit(mpijob("vanished"))
    await shared.start("vanished", workers=2)
    await until(lambda: _lists(shared, "vanished", 2))
    uid = await _uid(shared, "vanished-worker-0")
    await shared.delete_now("vanished-worker-0")
    await _replaced(shared, "vanished-worker-0", uid)
    [message] = await shared.event_messages("vanished", "WorkerReplaced")
    assert "vanished-worker-0" in message
    assert await _counts(shared, "vanished") == {"0": 1}
    assert await shared.hosts("vanished") == [
        f"vanished-worker-1.vanished.{shared.namespace}.svc:1"
    ]


async def test_the_second_replacement_comes_later_than_the_first(shared: Jobs) -> None:
    await shared.submit(mpijob("slower"))
    await shared.start("slower", workers=2)
    first = await _uid(shared, "slower-worker-0")
    await shared.fail("slower-worker-0")
    await _replaced(shared, "slower-worker-0", first)
    await shared.fail("slower-worker-0")
    await shared.gone(PODS, "slower-worker-0")
    await shared.scale("slower", 3)
    await until(lambda: shared.has_workers("slower", 2))  # the new one came, this one waits
    await shared.observes("slower", 2)
    assert await shared.find(PODS, "slower-worker-0") is None
    assert await _counts(shared, "slower") == {"0": 2}


async def test_the_count_survives_a_restart_of_the_operator(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    operator = await start_operator()
    await jobs.submit(_limited(mpijob("pi"), 1))
    await jobs.start("pi", workers=2)
    uid = await _uid(jobs, "pi-worker-0")
    await jobs.fail("pi-worker-0")
    await _replaced(jobs, "pi-worker-0", uid)
    await operator.stop()
    await jobs.fail("pi-worker-0", exit_code=3, message="again")
    await start_operator()
    [message] = await jobs.event_messages("pi", "WorkerFailed")
    assert "pi-worker-0" in message
    assert message.endswith("exit code 3: again")
    assert await jobs.event_messages("pi", "WorkerReplaced")
    running = await jobs.condition("pi", "Running")
    assert running is not None
    # Whether it can do without that worker is for the launcher to say.
    assert running["status"] == "True"
    assert running["message"].endswith(message)
    await jobs.succeed(*await jobs.pod_names("pi", "launcher"))
    await jobs.becomes("pi", "Succeeded")


@pytest.mark.parametrize("how", ["evicted", "failed"])
async def test_a_job_whose_launcher_waits_fails_when_a_worker_has_used_up_its_tries(
    shared: Jobs, how: str
) -> None:
    reasons = {"evicted": "MPIJobEvicted", "failed": "WorkerFailed"}
    job = mpijob(f"hopeless-{how}", launcherCreationPolicy="WaitForWorkersReady")
    await shared.submit(_limited(job, 0))
    await until(lambda: shared.has_workers(f"hopeless-{how}", 2))
    end = {"evicted": shared.evict, "failed": shared.fail}[how]
    await end(f"hopeless-{how}-worker-0")
    await shared.becomes(f"hopeless-{how}", "Failed", reason=reasons[how])


async def test_workers_of_a_finished_job_are_not_replaced(shared: Jobs) -> None:
    await shared.submit(mpijob("over", runPolicy={"cleanPodPolicy": "None"}))
    await shared.finish("over", workers=2)
    await shared.fail("over-worker-0")
    await shared.delete_now("over-worker-1")
    await shared.submit(mpijob("after-over"))
    await shared.finish("after-over", workers=2)  # it had time for the other one
    assert await shared.pod_names("over", "worker") == ["over-worker-0"]
    assert not await shared.has_event("over", "WorkerReplaced")


async def test_workers_of_a_suspended_job_are_not_replaced(shared: Jobs) -> None:
    await shared.submit(mpijob("asleep"))
    await shared.start("asleep", workers=2)
    await until(lambda: _lists(shared, "asleep", 2))
    await shared.suspend("asleep")
    await shared.becomes("asleep", "Suspended")
    await until(lambda: shared.has_workers("asleep", 0))
    await shared.suspend("asleep", suspend=False)
    await shared.finish("asleep", workers=2)
    assert not await shared.has_event("asleep", "WorkerReplaced")


@pytest.mark.usefixtures("lost_workers")
async def test_a_worker_whose_node_is_lost_is_reported(shared: Jobs) -> None:
    [message] = await shared.event_messages("lost", "WorkerLost", seconds=60)
    assert "lost-worker-0" in message
    assert "node far-away" in message
    assert await shared.has_condition("lost", "Running")
    assert await shared.find(PODS, "lost-worker-0") is not None
    assert await shared.hosts("lost") == [f"lost-worker-1.lost.{shared.namespace}.svc:1"]


async def test_a_lost_worker_goes_by_force_where_that_is_asked_for(
    shared: Jobs, lost_workers: dict[str, str]
) -> None:
    await _replaced(shared, "forced-worker-0", lost_workers["forced"], seconds=60)
