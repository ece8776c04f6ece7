"""Whole lifecycles of jobs on the embedded cluster: the controller and real processes."""

import asyncio
import os
import signal
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator import embedded
from mpi_operator.api.annotations import LOST_WORKERS
from mpi_operator.embedded import MPI_JOBS
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES
from mpi_operator.local.kubelet.container import ContainerRunner
from mpi_operator.local.kubelet.pod_status import Waiting
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.job_driver import UNTIL_DONE, JobDriver, running
from tests.local.run_processes import marked, processes
from tests.support.crashing_operator import NEVER, Crash, crashing_operator
from tests.support.waiting import until

both_kinds = pytest.mark.parametrize("kind", [Kind.NAMESPACES, Kind.PLAIN], ids=str)
NOTE_START = "echo launcher >> starts"


@pytest.fixture(params=[None], ids=["best kind"])
def kind(request):
    """The best kind of sandbox available; some tests are about both."""
    return request.param


@pytest.fixture
async def job(run, tmp_path, kind):
    machine = embedded.machine(
        run.directory, working_directory=tmp_path, oversubscribe=True, kind=kind
    )
    async with machine as cluster:
        yield JobDriver(cluster, tmp_path)


@both_kinds
async def test_success(job):
    await job.submit(f"{NOTE_START}; {UNTIL_DONE}", policy={"cleanPodPolicy": "Running"})
    await job.until_runs()
    job.finish()
    assert await job.end() == "Succeeded MPIJobSucceeded: MPIJob default/pi successfully completed."
    await job.until_no_workers()
    assert job.lines("starts") == ["launcher"]
    status = await job.status()
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("Created", "True"),
        ("Running", "False"),
        ("Succeeded", "True"),
    ]
    assert status["completionTime"] >= status["startTime"]


async def test_a_failed_attempt_is_not_the_end(job):
    script = f"{NOTE_START}; test $(wc -l < starts) = 2"
    await job.submit(script, policy={"backoffLimit": 2})
    assert (await job.end()).startswith("Succeeded")
    assert job.lines("starts") == ["launcher"] * 2
    assert (await job.status())["replicaStatuses"]["Launcher"]["failed"] == 1


@both_kinds
async def test_the_last_failed_attempt_is_the_end_and_has_the_reason(job):
    script = f"{NOTE_START}; echo it broke; exit 7"
    await job.submit(script, policy={"backoffLimit": 1, "cleanPodPolicy": "All"})
    sentence = "Job has reached the specified backoff limit (exit code 7): it broke"
    assert await job.end() == f"Failed BackoffLimitExceeded: {sentence}"
    assert await job.exit_codes() == [7, 7]
    assert job.lines("starts") == ["launcher"] * 2
    await job.until_no_workers()


@pytest.mark.parametrize(("limit", "tries"), [(0, 1), (1, 1), (2, 2)])
async def test_a_launcher_is_restarted_in_place_up_to_its_limit(job, limit, tries):
    is_beyond_limit = f"test $(wc -l < starts) -gt {tries}"
    script = f"{NOTE_START}; {is_beyond_limit} || exit 7; trap '' TERM; sleep 600; sleep 600"
    await job.submit(script, restart_policy="OnFailure", policy={"backoffLimit": limit})
    assert (await job.end()).startswith("Failed BackoffLimitExceeded: ")
    assert job.lines("starts") == ["launcher"] * tries


@pytest.fixture
def starving(monkeypatch):
    """The process gets no CPU as soon as a container is to be restarted, longer than its pause."""
    set_state = ContainerRunner._set_state

    def then_starve(runner, state, **changes):
        set_state(runner, state, **changes)
        if isinstance(state, Waiting) and state.reason == "CrashLoopBackOff":
            asyncio.get_running_loop().call_soon(time.sleep, 0.5)

    monkeypatch.setattr(ContainerRunner, "_set_state", then_starve)


@pytest.mark.usefixtures("starving")
async def test_a_starving_process_restarts_no_launcher_that_has_reached_its_limit(job):
    await job.submit(
        f"{NOTE_START}; exit 7", restart_policy="OnFailure", policy={"backoffLimit": 1}
    )
    assert (await job.end()).startswith("Failed BackoffLimitExceeded: ")
    assert job.lines("starts") == ["launcher"]


@both_kinds
async def test_suspended_while_it_runs_and_resumed(job, run):
    await job.submit(f"{NOTE_START}; {UNTIL_DONE}", worker="echo worker >> starts; exec sleep 600")
    await job.until_runs()
    await until(lambda: len(job.lines("starts")) == 3)
    idle = len(marked(run.directory.parent))
    await job.suspend()
    await job.until_condition("Suspended")
    await job.until_no_pods()
    assert processes(run, "default/pi-worker-0") == []
    assert len(marked(run.directory.parent)) < idle
    await job.suspend(suspend=False)
    await job.until_runs()
    await until(lambda: len(job.lines("starts")) == 6)
    job.finish()
    assert (await job.end()).startswith("Succeeded")
    assert Counter(job.lines("starts")) == {"launcher": 2, "worker": 4}
    assert await job.events("WorkerReplaced") == []


async def test_a_job_that_is_submitted_suspended_starts_nothing(job):
    await job.submit(NOTE_START, policy={"suspend": True})
    await job.until_condition("Suspended")
    assert (await job.cluster.list(PODS)).items == []
    await job.suspend(suspend=False)
    assert (await job.end()).startswith("Succeeded")
    assert job.lines("starts") == ["launcher"]


@both_kinds
async def test_a_deadline_ends_running_pods(job, run):
    await job.submit("exec sleep 600", policy={"activeDeadlineSeconds": 1, "cleanPodPolicy": "All"})
    assert (await job.end()).startswith("Failed DeadlineExceeded: ")
    await job.until_no_workers()
    await until(lambda: processes(run, "default/pi-worker-0") == [])


async def test_a_time_to_live(job):
    # Two, because times are in whole seconds: one second could be over at once.
    await job.submit(NOTE_START, policy={"ttlSecondsAfterFinished": 2})
    assert (await job.end()).startswith("Succeeded")

    async def is_gone():
        return await job.launchers() == []

    await until(is_gone, 10)
    ended = datetime.fromisoformat((await job.status())["completionTime"])
    assert datetime.now(UTC) - ended >= timedelta(seconds=2)
    touch = {"metadata": {"annotations": {"seen": "yes"}}}
    await job.cluster.patch(MPI_JOBS, "pi", touch, "default")
    await asyncio.sleep(0.5)
    assert await is_gone()
    assert job.lines("starts") == ["launcher"]
    assert (await job.end()).startswith("Succeeded")


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("None", {"pi-worker-0": "Succeeded", "pi-worker-1": "Running"}, id="None"),
        pytest.param("Running", {"pi-worker-0": "Succeeded"}, id="Running"),
        pytest.param("All", {}, id="All"),
    ],
)
async def test_clean_up(job, policy, left):
    worker = 'case "$HOSTNAME" in *-0) exit 0; esac; exec sleep 600'
    await job.submit(UNTIL_DONE, worker=worker, policy={"cleanPodPolicy": policy})
    await job.until_workers({"pi-worker-0": "Succeeded", "pi-worker-1": "Running"})
    job.finish()
    assert (await job.end()).startswith("Succeeded")
    await job.until_workers(left)
    await asyncio.sleep(0.3)
    assert await job.workers() == left


@both_kinds
async def test_an_elastic_job(job):
    discover = "sh /etc/mpi/discover_hosts.sh > seen.new && mv seen.new seen"
    await job.submit(f"while ! test -e done; do {discover}; sleep 0.05; done")
    await job.until_runs()
    for count in (2, 4, 1, 2):
        await job.scale(count)
        await job.until_workers(running(*range(count)))
        hosts = [f"pi-worker-{index}.pi.default.svc:1" for index in range(count)]
        await job.until_lines("seen", hosts)
    job.finish()
    assert (await job.end()).startswith("Succeeded")
    assert await job.events("WorkerReplaced") == []


@both_kinds
async def test_a_killed_worker_is_replaced(job, run):
    await job.submit(UNTIL_DONE)
    await job.until_runs()
    before = await job.cluster.get(PODS, "pi-worker-1", "default")
    [process] = processes(run, "default/pi-worker-1")
    os.kill(process, signal.SIGKILL)

    await job.until_event("WorkerReplaced")
    await job.until_workers(running(0, 1))
    after = await job.cluster.get(PODS, "pi-worker-1", "default")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    [message] = await job.events("WorkerReplaced")
    assert "pi-worker-1" in message
    assert "signal 9" in message
    job.finish()
    assert (await job.end()).startswith("Succeeded")


@both_kinds
async def test_a_launcher_that_lost_a_worker_and_exited_with_0_is_tried_again(job, run):
    until_told = "while ! test -e done && ! rm lost 2> /dev/null; do sleep 0.02; done"
    await job.submit(f"{NOTE_START}; {until_told}", annotations={LOST_WORKERS: "fail"})
    await job.until_runs()
    [process] = processes(run, "default/pi-worker-1")
    os.kill(process, signal.SIGKILL)
    await job.until_event("WorkerReplaced")
    (job.directory / "lost").touch()
    await job.until_lines("starts", ["launcher"] * 2, 60)
    job.finish()
    assert (await job.end()).startswith("Succeeded")
    assert await job.exit_codes() == [0, 0]
    assert len(await job.events("LauncherRestarted")) == 1


async def test_the_launcher_waits_for_ready_workers(job):
    probe = {"exec": {"command": ["test", "-e", f"{job.directory}/ready"]}, "periodSeconds": 1}
    await job.submit(NOTE_START, probe=probe, launcherCreationPolicy="WaitForWorkersReady")
    await job.until_workers(running(0, 1))
    await asyncio.sleep(0.3)
    assert await job.launchers() == []
    (job.directory / "ready").touch()
    assert (await job.end()).startswith("Succeeded")
    assert job.lines("starts") == ["launcher"]


async def test_a_deleted_job_leaves_nothing(job, run):
    await job.submit(UNTIL_DONE)
    await job.until_runs()
    await job.cluster.delete(MPI_JOBS, "pi", "default")
    await job.until_no_pods()
    for resource in (JOBS, CONFIG_MAPS, SECRETS, SERVICES):
        assert (await job.cluster.list(resource)).items == []
    assert processes(run, "default/pi-worker-0") == []


# --- a controller that dies


@pytest.fixture
async def cluster(run, tmp_path):
    """Without a controller."""
    machine = embedded.machine(
        run.directory, working_directory=tmp_path, oversubscribe=True, has_controller=False
    )
    async with machine as bare:
        yield bare


@pytest.mark.timeout(300)
async def test_a_controller_that_dies_at_any_write_reaches_the_same_end(cluster, tmp_path):
    undisturbed, expected = await run_job(cluster, tmp_path, "undisturbed", NEVER)
    writes = len(undisturbed.writes)
    slots = asyncio.Semaphore(8)  # concurrent jobs

    async def with_crash(crash):
        async with slots:
            crashing, found = await run_job(cluster, tmp_path, f"crash-{crash.at}", crash)
            assert found == expected, f"{crash}: {crashing.writes}"
            return crashing.crashes

    # Dying before a write is the same as dying after the previous one, so one way is enough.
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(with_crash(Crash(at, is_answered=True)))
            for at in range(1, writes + 1)
        ]
    # The number of writes varies by a few, because it depends on when pods are seen.
    assert sum(each.result() for each in tasks) >= writes - 5


async def run_job(cluster, tmp_path, namespace, crash):
    """Run a job through every change, with a controller that dies; the objects at its end."""
    directory = tmp_path / namespace
    directory.mkdir()
    job = JobDriver(cluster, directory, namespace)
    async with crashing_operator(cluster, namespace, crash) as crashing:
        try:
            await drive(job)
        except Exception as error:
            error.add_note(f"crashed {crash}; writes: {crashing.writes}")
            raise
        return crashing, await objects(job)


async def drive(job):
    await job.submit(
        f"cd {job.directory}; {NOTE_START}; {UNTIL_DONE}",
        worker=f'echo "$HOSTNAME" >> {job.directory}/starts; exec sleep 600',
        policy={"cleanPodPolicy": "All"},
    )
    await job.until_runs()
    await until(lambda: len(job.lines("starts")) == 3)
    await job.suspend()
    await job.until_condition("Suspended")
    await job.until_no_pods()
    await job.suspend(suspend=False)
    await job.until_runs()
    await job.scale(3)
    await job.until_workers(running(0, 1, 2))
    await until(lambda: len(job.lines("starts")) == 7)
    job.finish()
    await job.end()
    await job.until_no_workers()


async def objects(job):
    conditions = (await job.status())["conditions"]
    names = {
        resource.plural: sorted(
            each["metadata"]["name"]
            for each in (await job.cluster.list(resource, job.namespace)).items
        )
        for resource in (JOBS, CONFIG_MAPS, SECRETS, SERVICES)
    }
    stored = {each["type"]: (each["status"], each["reason"]) for each in conditions}
    return stored, names, Counter(job.lines("starts"))
