"""The agent in place of ssh: from one pod into another."""

import asyncio
import gc

import pytest

from mpi_operator.kube.client import LogOptions
from tests.local.machine import machine
from tests.local.test_pods import count, has_printed, nap
from tests.support.waiting import until


@pytest.fixture
async def workers(pods):
    for index in range(2):
        name = f"pi-worker-{index}"
        env = [{"name": "ROLE", "value": "worker"}]
        await pods.create(
            name, "/usr/sbin/sshd", "-De", hostname=name, subdomain="pi", container={"env": env}
        )
        await pods.until_phase(name, "Running")
    return pods


async def ssh(pods, *words, name="caller"):
    """Call ssh in a pod; what it printed, and its exit code."""
    await pods.create(name, *words)
    status = await pods.end_of(name)
    code = status["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    return await pods.output(name), code


@pytest.mark.parametrize(
    "host", ["pi-worker-1", "pi-worker-1.pi", "pi-worker-1.pi.default.svc", "root@pi-worker-1"]
)
async def test_a_command_runs_in_the_pod_that_is_named(workers, host):
    command = "hostname; echo $ROLE $MPI_OPERATOR_POD; exit 7"
    assert await ssh(workers, "ssh", "-o", "BatchMode=yes", host, command) == (
        ["pi-worker-1", "worker default/pi-worker-1"],
        7,
    )


async def test_an_unknown_host(workers):
    printed, code = await ssh(workers, "rsh", "pi-worker-9", "true")
    assert code == 255
    assert printed == [
        "mpi-operator: Could not resolve hostname pi-worker-9."
        " Known hosts: caller, pi-worker-0, pi-worker-1"
    ]


async def test_input_goes_through(workers):
    script = "echo hello | ssh pi-worker-0 'cat; echo done >&2'"
    assert await ssh(workers, "sh", "-c", script) == (["hello", "done"], 0)


async def test_a_large_output_goes_through(workers):
    script = "ssh pi-worker-0 'head -c 10000000 /dev/zero' | wc -c"
    assert await ssh(workers, "sh", "-c", script) == (["10000000"], 0)


async def test_a_signal_is_passed_on(workers):
    remote = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    await workers.create("caller", "ssh", "pi-worker-0", remote)
    await until(lambda: has_printed(workers, "caller", "ready"))
    logs = workers.log("caller", "default", LogOptions(follow=True))
    await workers.delete("caller", 10)  # the whole foreground hears it, as at a terminal
    assert [line async for line in logs][-1] == b"got it"


async def test_when_the_caller_is_killed_so_is_the_command(workers):
    await workers.create("caller", "ssh", "pi-worker-0", f"sleep {nap(984)}; true")
    await until(lambda: count("sleep", nap(984)) == 1)
    await workers.delete("caller", 0)
    await until(lambda: count("sleep", nap(984)) == 0, 30)


async def test_when_the_worker_goes_so_does_the_command(workers):
    await workers.create("caller", "ssh", "pi-worker-0", f"sleep {nap(983)}; true")
    await until(lambda: count("sleep", nap(983)) == 1)
    await workers.delete("pi-worker-0", 0)
    status = await workers.end_of("caller")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 255
    assert count("sleep", nap(983)) == 0


async def test_a_node_that_ends_while_commands_run_has_nothing_to_complain_of(
    run, tmp_path, kind, caplog
):
    async with machine(run.directory, tmp_path, kind=kind) as pods:
        await pods.create("w", "/usr/sbin/sshd", "-De")
        await pods.until_phase("w", "Running")
        await pods.create("caller", "ssh", "w", "echo ready; sleep 600")
        await until(lambda: has_printed(pods, "caller", "ready"))
    gc.collect()  # makes asyncio report exceptions that were never retrieved
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_host_that_is_about_to_start_is_waited_for(pods):
    volumes = [{"name": "c", "configMap": {"name": "late"}}]
    await pods.create("w", "/usr/sbin/sshd", "-De", volumes=volumes)
    await pods.create("caller", "ssh", "w", "echo made it")
    await pods.until_phase("caller", "Running")
    await asyncio.sleep(0.2)
    await pods.configure("late")
    await pods.end_of("caller")
    assert await pods.output("caller") == ["made it"]


async def test_a_script_that_ends_in_sshd_is_a_worker_too(pods):
    script = "echo starting; exec /usr/sbin/sshd -De"
    await pods.create("w", "/bin/bash", "-c", script)
    await until(lambda: has_printed(pods, "w", "starting"))
    assert await ssh(pods, "ssh", "w", "hostname") == (["w"], 0)
