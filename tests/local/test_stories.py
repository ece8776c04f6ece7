"""Whole lives of jobs on the embedded cluster: the controller, and real processes."""

import asyncio
import os
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator import embedded
from mpi_operator.embedded import MPI_JOBS
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.conftest import marked, processes
from tests.local.life import UNTIL_DONE, Life, running
from tests.support.mortal import NEVER, Death, mortal_operator
from tests.support.waiting import until

both_kinds = pytest.mark.parametrize("kind", [Kind.NAMESPACES, Kind.PLAIN], ids=str)
NOTE_START = "echo launcher >> starts"


@pytest.fixture(params=[None], ids=["best kind"])
def kind(request):
    """The best that this machine can have; some tests are about both."""
    return request.param


@pytest.fixture
async def life(run, tmp_path, kind):
    machine = embedded.machine(
        run.directory, working_directory=tmp_path, oversubscribe=True, kind=kind
    )
    async with machine as cluster:
        yield Life(cluster, tmp_path)


@both_kinds
async def test_success(life):
    await life.submit(f"{NOTE_START}; {UNTIL_DONE}", policy={"cleanPodPolicy": "Running"})
    await life.until_runs()
    life.finish()
    assert (
        await life.end() == "Succeeded MPIJobSucceeded: MPIJob default/pi successfully completed."
    )
    await life.until_workers({})
    assert life.lines("starts") == ["launcher"]
    status = await life.status()
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("Created", "True"),
        ("Running", "False"),
        ("Succeeded", "True"),
    ]
    assert status["completionTime"] >= status["startTime"]


async def test_a_try_that_fails_is_no_end(life):
    script = f"{NOTE_START}; test $(wc -l < starts) = 2"
    await life.submit(script, policy={"backoffLimit": 2})
    assert (await life.end()).startswith("Succeeded")
    assert life.lines("starts") == ["launcher"] * 2
    assert (await life.status())["replicaStatuses"]["Launcher"]["failed"] == 1


@both_kinds
async def test_the_last_try_that_fails_is_the_end_and_tells_why(life):
    script = f"{NOTE_START}; echo it broke; exit 7"
    await life.submit(script, policy={"backoffLimit": 1, "cleanPodPolicy": "All"})
    sentence = "Job has reached the specified backoff limit (exit code 7): it broke"
    assert await life.end() == f"Failed BackoffLimitExceeded: {sentence}"
    assert await life.exit_codes() == [7, 7]
    assert life.lines("starts") == ["launcher"] * 2
    await life.until_workers({})


@pytest.mark.parametrize(("limit", "tries"), [(0, 1), (1, 1), (2, 2)])
async def test_a_launcher_that_may_not_be_restarted_in_place_again_is_not(life, limit, tries):
    is_one_too_many = f"test $(wc -l < starts) -gt {tries}"
    script = f"{NOTE_START}; {is_one_too_many} || exit 7; trap '' TERM; sleep 600; sleep 600"
    await life.submit(script, restart_policy="OnFailure", policy={"backoffLimit": limit})
    assert (await life.end()).startswith("Failed BackoffLimitExceeded: ")
    assert life.lines("starts") == ["launcher"] * tries


@both_kinds
async def test_suspended_while_it_runs_and_resumed(life, run):
    await life.submit(f"{NOTE_START}; {UNTIL_DONE}", worker="echo worker >> starts; exec sleep 600")
    await life.until_runs()
    await until(lambda: len(life.lines("starts")) == 3)
    idle = len(marked(run.directory.parent))
    await life.suspend()
    await life.until_condition("Suspended")
    await life.until_no_pods()
    assert processes(run, "default/pi-worker-0") == []
    assert len(marked(run.directory.parent)) < idle
    await life.suspend(suspend=False)
    await life.until_runs()
    life.finish()
    assert (await life.end()).startswith("Succeeded")
    assert Counter(life.lines("starts")) == {"launcher": 2, "worker": 4}
    assert await life.events("WorkerReplaced") == []


async def test_a_job_that_is_submitted_suspended_starts_nothing(life):
    await life.submit(NOTE_START, policy={"suspend": True})
    await life.until_condition("Suspended")
    assert (await life.cluster.list(PODS)).items == []
    await life.suspend(suspend=False)
    assert (await life.end()).startswith("Succeeded")
    assert life.lines("starts") == ["launcher"]


@both_kinds
async def test_a_deadline_ends_what_runs(life, run):
    await life.submit(
        "exec sleep 600", policy={"activeDeadlineSeconds": 1, "cleanPodPolicy": "All"}
    )
    assert (await life.end()).startswith("Failed DeadlineExceeded: ")
    await life.until_workers({})
    await until(lambda: processes(run, "default/pi-worker-0") == [])


async def test_a_time_to_live(life):
    # Two, because times are told in whole seconds: one might be over at once.
    await life.submit(NOTE_START, policy={"ttlSecondsAfterFinished": 2})
    assert (await life.end()).startswith("Succeeded")

    async def is_gone():
        return await life.launchers() == []

    await until(is_gone, 10)
    ended = datetime.fromisoformat((await life.status())["completionTime"])
    assert datetime.now(UTC) - ended >= timedelta(seconds=2)
    touch = {"metadata": {"annotations": {"seen": "yes"}}}
    await life.cluster.patch(MPI_JOBS, "pi", touch, "default")
    await asyncio.sleep(0.5)
    assert await is_gone()
    assert life.lines("starts") == ["launcher"]
    assert (await life.end()).startswith("Succeeded")


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("None", {"pi-worker-0": "Succeeded", "pi-worker-1": "Running"}, id="None"),
        pytest.param("Running", {"pi-worker-0": "Succeeded"}, id="Running"),
        pytest.param("All", {}, id="All"),
    ],
)
async def test_clean_up(life, policy, left):
    worker = 'case "$HOSTNAME" in *-0) exit 0; esac; exec sleep 600'
    await life.submit(UNTIL_DONE, worker=worker, policy={"cleanPodPolicy": policy})
    await life.until_workers({"pi-worker-0": "Succeeded", "pi-worker-1": "Running"})
    life.finish()
    assert (await life.end()).startswith("Succeeded")
    await life.until_workers(left)
    await asyncio.sleep(0.3)
    assert await life.workers() == left


@both_kinds
async def test_an_elastic_job(life):
    look = "sh /etc/mpi/discover_hosts.sh > seen.new && mv seen.new seen"
    await life.submit(f"while ! test -e done; do {look}; sleep 0.05; done")
    await life.until_runs()
    for count in (2, 4, 1, 2):
        await life.scale(count)
        await life.until_workers(running(*range(count)))
        hosts = [f"pi-worker-{index}.pi.default.svc:1" for index in range(count)]
        await life.until_lines("seen", hosts)
    life.finish()
    assert (await life.end()).startswith("Succeeded")
    assert await life.events("WorkerReplaced") == []


@both_kinds
async def test_a_worker_that_is_killed_comes_back(life, run):
    await life.submit(UNTIL_DONE)
    await life.until_runs()
    before = await life.cluster.get(PODS, "pi-worker-1", "default")
    [process] = processes(run, "default/pi-worker-1")
    os.kill(process, signal.SIGKILL)

    async def is_replaced():
        return bool(await life.events("WorkerReplaced"))

    await until(is_replaced, 10)
    await life.until_workers(running(0, 1))
    after = await life.cluster.get(PODS, "pi-worker-1", "default")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    [told] = await life.events("WorkerReplaced")
    assert "pi-worker-1" in told
    assert "signal 9" in told
    life.finish()
    assert (await life.end()).startswith("Succeeded")


async def test_the_launcher_waits_for_workers_that_are_ready(life):
    probe = {"exec": {"command": ["test", "-e", f"{life.directory}/ready"]}, "periodSeconds": 1}
    await life.submit(NOTE_START, probe=probe, launcherCreationPolicy="WaitForWorkersReady")
    await life.until_workers(running(0, 1))
    await asyncio.sleep(0.3)
    assert await life.launchers() == []
    (life.directory / "ready").touch()
    assert (await life.end()).startswith("Succeeded")
    assert life.lines("starts") == ["launcher"]


async def test_a_deleted_job_leaves_nothing(life, run):
    await life.submit(UNTIL_DONE)
    await life.until_runs()
    await life.cluster.delete(MPI_JOBS, "pi", "default")
    await life.until_no_pods()
    for resource in (JOBS, CONFIG_MAPS, SECRETS, SERVICES):
        assert (await life.cluster.list(resource)).items == []
    assert processes(run, "default/pi-worker-0") == []


# The controller dies.


@pytest.fixture
async def cluster(run, tmp_path):
    """Without a controller."""
    machine = embedded.uncontrolled_machine(
        run.directory, working_directory=tmp_path, oversubscribe=True
    )
    async with machine as bare:
        yield bare


@pytest.mark.timeout(300)
async def test_a_controller_that_dies_at_any_write_ends_in_the_same_world(cluster, tmp_path):
    undisturbed, expected = await live(cluster, tmp_path, "undisturbed", NEVER)
    writes = len(undisturbed.writes)
    slots = asyncio.Semaphore(8)  # lives at once

    async def life_with(death):
        async with slots:
            mortal, world = await live(cluster, tmp_path, f"life-{death.at}", death)
            assert world == expected, f"{death}: {mortal.writes}"
            return mortal.deaths

    # Dying before a write leaves the same as dying after the one before it, so one way is enough.
    async with asyncio.TaskGroup() as group:
        lives = [
            group.create_task(life_with(Death(at, is_answered=True))) for at in range(1, writes + 1)
        ]
    # How many writes a life takes depends on how soon pods are seen, within a few.
    assert sum(each.result() for each in lives) >= writes - 5


async def live(cluster, tmp_path, namespace, death):
    """A life with all that can be asked of a job, and what is there at its end."""
    directory = tmp_path / namespace
    directory.mkdir()
    life = Life(cluster, directory, namespace)
    async with mortal_operator(cluster, namespace, death) as mortal:
        try:
            await tell(life)
        except Exception as error:
            error.add_note(f"died {death}; writes: {mortal.writes}")
            raise
        return mortal, await world(life)


async def tell(life):
    await life.submit(
        f"cd {life.directory}; {NOTE_START}; {UNTIL_DONE}",
        worker=f'echo "$HOSTNAME" >> {life.directory}/starts; exec sleep 600',
        policy={"cleanPodPolicy": "All"},
    )
    await life.until_runs()
    await until(lambda: len(life.lines("starts")) == 3)
    await life.suspend()
    await life.until_condition("Suspended")
    await life.until_no_pods()
    await life.suspend(suspend=False)
    await life.until_runs()
    await life.scale(3)
    await life.until_workers(running(0, 1, 2))
    await until(lambda: len(life.lines("starts")) == 7)
    life.finish()
    await life.end()
    await life.until_workers({})


async def world(life):
    conditions = (await life.status())["conditions"]
    names = {
        resource.plural: sorted(
            each["metadata"]["name"]
            for each in (await life.cluster.list(resource, life.namespace)).items
        )
        for resource in (JOBS, CONFIG_MAPS, SECRETS, SERVICES)
    }
    said = {each["type"]: (each["status"], each["reason"]) for each in conditions}
    return said, names, Counter(life.lines("starts"))
