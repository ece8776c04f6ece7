"""Probes and hooks of containers, with real processes."""

import asyncio

import pytest

from mpi_operator.kube.client import LogOptions
from mpi_operator.local.kubelet.pod_runner import PodRunner
from mpi_operator.local.sandbox.host import LocalSandbox
from tests.local.test_pods import has_printed, terminated
from tests.support.waiting import until

KEEP = {
    "volumes": [{"name": "e", "emptyDir": {}}],
    "terminationGracePeriodSeconds": 20,
}
MOUNTS = [{"name": "e", "mountPath": "/keep"}]
FOREVER = "while :; do sleep 0.05; done"


def shell(script):
    return {"exec": {"command": ["sh", "-c", script]}}


def probe(script, **settings):
    # On a busy machine a command may wait for the CPU for a second. It has not failed then.
    usual = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 10}
    return {**shell(script), **usual, **settings}


async def start(pods, script, policy="Never", **container):
    await pods.create(
        "p",
        *("sh", "-c", script),
        restartPolicy=policy,
        container={"volumeMounts": MOUNTS, **container},
        **KEEP,
    )


async def container_status(pods):
    return (await pods.status("p"))["containerStatuses"][0]


async def until_told(pods, **expected):
    async def is_so():
        statuses = (await pods.status("p")).get("containerStatuses") or [{}]
        return expected.items() <= statuses[0].items()

    await until(is_so)


async def test_an_unhealthy_container_is_restarted(pods):
    # Unhealthy once, and not before its trap is set: a TERM before the trap would be exit 143.
    script = (
        "trap 'rm -f /keep/sick; exit 3' TERM;"
        " test -e /keep/started || touch /keep/started /keep/sick; " + FOREVER
    )
    await start(pods, script, "OnFailure", livenessProbe=probe("! test -e /keep/sick"))
    await until_told(pods, restartCount=1, ready=True)
    last = (await container_status(pods))["lastState"]["terminated"]
    assert last["exitCode"] == 3
    assert last["message"] == "Container main failed liveness probe"


async def test_an_unhealthy_container_that_ignores_sigterm_is_killed(pods):
    impatient = probe("! test -e /keep/trapped", terminationGracePeriodSeconds=1)
    await start(pods, f"trap '' TERM; touch /keep/trapped; {FOREVER}", livenessProbe=impatient)
    ended = terminated(await pods.end_of("p"))
    assert (ended["exitCode"], ended["signal"]) == (137, 9)


async def test_nothing_else_is_asked_before_it_has_started(pods, tmp_path):
    asked = probe("echo asked >> /keep/asked; false")
    startup = probe("test -e /keep/up", failureThreshold=60)
    until_go = "until test -e go; do sleep 0.05; done"
    script = f"{until_go}; sleep 0.6; ls /keep/asked; touch /keep/up; {FOREVER}"
    await start(pods, script, startupProbe=startup, readinessProbe=asked)
    await pods.until_phase("p", "Running")
    assert (await container_status(pods))["started"] is False
    (tmp_path / "go").touch()
    await until_told(pods, started=True, ready=False)
    assert "No such file" in (await pods.output("p"))[0]


async def test_one_that_has_started_is_ready(pods):
    await start(pods, FOREVER, startupProbe=probe("true"))
    await until_told(pods, started=True, ready=True)


async def test_one_that_does_not_start_in_time_is_ended(pods):
    late = probe("false", failureThreshold=2)
    await start(pods, f"trap 'exit 4' TERM; {FOREVER}", startupProbe=late)
    ended = terminated(await pods.end_of("p"))
    assert (ended["exitCode"], ended["message"]) == (4, "Container main failed startup probe")


async def test_a_hook_is_called_when_it_starts(pods):
    hook = {"postStart": shell("echo hello > /keep/hello")}
    script = "while ! test -e /keep/hello; do sleep 0.02; done; cat /keep/hello"
    await start(pods, script, lifecycle=hook)
    assert (await pods.end_of("p"))["phase"] == "Succeeded"
    assert await pods.output("p") == ["hello"]


async def test_a_hook_that_fails_at_the_start_is_the_end(pods):
    # The hook may run before the container's own script: a TERM before the trap would be exit 143.
    hook = shell("while ! test -e /keep/trapped; do sleep 0.02; done; exit 1")
    script = f"trap 'exit 5' TERM; touch /keep/trapped; {FOREVER}"
    await start(pods, script, lifecycle={"postStart": hook})
    ended = terminated(await pods.end_of("p"))
    assert ended["exitCode"] == 5
    assert ended["message"] == "PostStartHook failed: it did not succeed"


async def test_a_hook_is_called_before_it_is_asked_to_end(pods):
    hook = {"preStop": shell("sleep 0.2; echo from the hook > /keep/last")}
    script = f"trap 'cat /keep/last; exit 0' TERM; echo ready; {FOREVER}"
    await start(pods, script, lifecycle=hook)
    await until(lambda: has_printed(pods, "p", "ready"))
    logs = pods.log("p", "default", LogOptions(follow=True))
    await pods.delete("p")
    assert [line async for line in logs] == [b"ready", b"from the hook"]
    await pods.until_gone("p")


async def test_a_hook_is_called_if_the_pod_is_deleted_while_it_starts(pods, tmp_path, monkeypatch):
    deleted = asyncio.Event()
    stop, run = PodRunner.stop, LocalSandbox.run

    def stop_and_tell(self, grace_seconds):
        stop(self, grace_seconds)
        deleted.set()

    async def run_and_delete(self, container, command, stdio):
        process = await run(self, container, command, stdio)
        if not deleted.is_set():
            await pods.delete("p")
            await deleted.wait()
        return process

    monkeypatch.setattr(PodRunner, "stop", stop_and_tell)
    monkeypatch.setattr(LocalSandbox, "run", run_and_delete)
    until_trapped = "while ! test -e /keep/trapped; do sleep 0.02; done"
    hook = {"preStop": shell(f"{until_trapped}; touch {tmp_path}/called")}
    script = f"trap 'exit 0' TERM; touch /keep/trapped; {FOREVER}"
    await start(pods, script, lifecycle=hook)
    await pods.until_gone("p", 30)
    assert (tmp_path / "called").exists()


async def test_a_hook_that_takes_too_long_changes_nothing(pods):
    await start(pods, FOREVER, lifecycle={"preStop": {"sleep": {"seconds": 600}}})
    await pods.until_phase("p", "Running")
    await pods.delete("p", grace_seconds=1)
    await pods.until_gone("p", 30)


@pytest.mark.parametrize("command", [("/usr/sbin/sshd", "-De"), ("sh", "-c", "exec sshd -De")])
async def test_a_port_of_a_worker_that_would_listen_to_ssh_is_as_good_as_open(pods, command):
    ssh = {"tcpSocket": {"port": 22}, "periodSeconds": 1, "failureThreshold": 1}
    probes = {"readinessProbe": ssh, "livenessProbe": ssh, "startupProbe": ssh}
    await pods.create("p", *command, container=probes)
    await until_told(pods, ready=True, restartCount=0)


async def test_the_hook_of_a_worker_that_would_listen_to_ssh_is_called(pods, tmp_path):
    hook = {"lifecycle": {"preStop": shell(f"touch {tmp_path}/called")}}
    await pods.create("p", "/usr/sbin/sshd", "-De", container=hook)
    await pods.until_phase("p", "Running")
    await pods.delete("p")
    await pods.until_gone("p")
    assert (tmp_path / "called").exists()


async def test_a_sidecar_is_waited_for_until_it_has_started(pods):
    sidecar = {
        "name": "beside",
        "image": "none",
        "restartPolicy": "Always",
        "command": ["sh", "-c", f"sleep 0.3; touch /keep/up; {FOREVER}"],
        "volumeMounts": MOUNTS,
        "startupProbe": probe("test -e /keep/up", failureThreshold=60),
    }
    mine = {"name": "main", "image": "none", "command": ["ls", "/keep"], "volumeMounts": MOUNTS}
    await pods.create("p", initContainers=[sidecar], containers=[mine], **KEEP)
    assert (await pods.end_of("p"))["phase"] == "Succeeded"
    assert await pods.output("p", container="main") == ["up"]
