"""Pods as processes: what they see, how they end, what is said about them."""

import os
import signal
import socket
from fractions import Fraction

import pytest

from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import PODS, SECRETS
from mpi_operator.local.kubelet.capacity import Machine
from mpi_operator.local.sandbox import process_tree
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.machine import NAMESPACE, machine
from tests.support.waiting import until

CONFIG = [{"name": "c", "configMap": {"name": "settings"}}]


def terminated(status, field="containerStatuses", index=0):
    return status[field][index]["state"]["terminated"]


def is_there(path: str) -> bool:
    return os.path.lexists(path)


async def test_a_pod_that_succeeds(pods):
    await pods.create("p", "sh", "-c", "echo hello; echo problem >&2")
    status = await pods.end_of("p")
    assert status["phase"] == "Succeeded"
    assert terminated(status)["exitCode"] == 0
    assert await pods.output("p") == ["hello", "problem"]


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [("exit 3", 3, None), ("kill -9 $$$$", 137, 9), ("kill -TERM $$$$", 143, 15)],
)
async def test_its_end_is_reported(pods, script, code, number):
    await pods.create("p", "sh", "-c", script)
    status = await pods.end_of("p")
    assert status["phase"] == "Failed"
    assert (terminated(status)["exitCode"], terminated(status).get("signal")) == (code, number)


async def test_a_program_that_only_an_image_has(pods):
    await pods.create("p", "/opt/image/train", "--fast")
    status = await pods.end_of("p")
    ended = terminated(status)
    assert (status["phase"], ended["reason"], ended["exitCode"]) == ("Failed", "StartError", 127)
    assert "'/opt/image/train' not found" in ended["message"]
    assert "Images are not used on this machine" in ended["message"]


async def test_a_file_that_is_no_program(pods, tmp_path):
    (tmp_path / "data").touch()
    await pods.create("p", "./data")
    assert terminated(await pods.end_of("p"))["exitCode"] == 126


async def test_without_a_command_it_says_so(pods):
    await pods.create("p")
    assert "has no command" in terminated(await pods.end_of("p"))["message"]


async def test_the_directory_of_the_job_is_where_it_starts(pods, tmp_path):
    (tmp_path / "program").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "program").chmod(0o755)
    assert await pods.printed("p", "./program") == [str(tmp_path)]


async def test_a_directory_of_the_image_is_that_of_the_job(pods, tmp_path):
    (tmp_path / "data").write_text("found\n")
    directory = "/opt/only/in/the/image"
    words = ["cat", "data", f"{directory}/data"]
    assert await pods.printed("p", *words, container={"workingDir": directory}) == ["found"] * 2
    assert not is_there("/opt/only")


async def test_its_host_name(pods):
    script = 'hostname; echo "$HOSTNAME"'
    assert await pods.printed("p", "sh", "-c", script, hostname="worker-7") == ["worker-7"] * 2


async def test_in_namespaces_it_is_on_its_own(run, tmp_path):
    script = (
        "python3 -c 'import socket; print(socket.gethostname())'; echo $$$$; ls /dev/shm | wc -l"
    )
    async with machine(run.directory, tmp_path, kind=Kind.NAMESPACES) as pods:
        assert await pods.printed("p", "sh", "-c", script) == ["p", "3", "0"]
    assert socket.gethostname() != "p"


async def test_its_identity_and_its_environment(pods):
    env = [
        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "GREETING", "value": "I am $(WHO)"},
    ]
    script = 'echo "$GREETING $0"'
    printed = await pods.printed("p", "sh", "-c", script, "$(WHO)", container={"env": env})
    assert printed == ["I am p p"]


async def test_volumes_are_where_they_are_wanted(pods):
    await pods.configure("settings", colour="red")
    secret = {"metadata": {"name": "keys", "namespace": NAMESPACE}, "stringData": {"key": "k"}}
    await pods.cluster.create(SECRETS, secret)
    volumes = [
        *CONFIG,
        {"name": "s", "secret": {"secretName": "keys"}},
        {"name": "e", "emptyDir": {}},
    ]
    mounts = [
        {"name": "c", "mountPath": "/etc/mpi"},
        {"name": "s", "mountPath": "/etc/keys"},
        {"name": "e", "mountPath": "/scratch/deep"},
    ]
    script = "cat /etc/mpi/colour /etc/keys/key; echo x > /scratch/deep/x; cat /scratch/deep/x"
    printed = await pods.printed(
        "p", "sh", "-c", script, volumes=volumes, container={"volumeMounts": mounts}
    )
    assert printed == ["redkx"]
    assert not is_there("/etc/mpi")
    assert not is_there("/scratch")


async def test_what_is_written_beside_a_mount_stays(run, tmp_path):
    volumes = [{"name": "e", "emptyDir": {}}]
    mounts = [{"name": "e", "mountPath": f"{tmp_path}/scratch"}]
    words = ["sh", "-c", "echo kept > result; echo lost > scratch/x"]
    async with machine(run.directory, tmp_path, kind=Kind.NAMESPACES) as pods:
        await pods.printed("p", *words, volumes=volumes, container={"volumeMounts": mounts})
    assert (tmp_path / "result").read_text() == "kept\n"
    assert not is_there(f"{tmp_path}/scratch")


async def test_in_namespaces_pods_know_each_other_by_name(run, tmp_path):
    look_up = "import socket; print(socket.gethostbyname('w-0.pi.default.svc'))"
    async with machine(run.directory, tmp_path, kind=Kind.NAMESPACES) as pods:
        await pods.create("w-0", "sleep", "60", hostname="w-0", subdomain="pi")
        address = (await pods.until_phase("w-0", "Running"))["podIP"]
        assert await pods.printed("p", "python3", "-c", look_up) == [address]


async def test_in_namespaces_configuration_is_only_for_reading(run, tmp_path):
    async with machine(run.directory, tmp_path, kind=Kind.NAMESPACES) as pods:
        await pods.configure("settings", colour="red")
        mounts = [{"name": "c", "mountPath": "/etc/mpi"}]
        words = ["sh", "-c", "echo blue > /etc/mpi/colour"]
        await pods.create("p", *words, volumes=CONFIG, container={"volumeMounts": mounts})
        assert (await pods.end_of("p"))["phase"] == "Failed"
        assert "Read-only file system" in (await pods.output("p"))[0]


async def test_a_change_of_configuration_reaches_a_running_pod(pods):
    await pods.configure("settings", colour="red")
    script = "while ! grep blue /etc/mpi/colour; do sleep 0.05; done"
    mounts = [{"name": "c", "mountPath": "/etc/mpi"}]
    await pods.create("p", "sh", "-c", script, volumes=CONFIG, container={"volumeMounts": mounts})
    await pods.until_phase("p", "Running")
    await pods.configure("settings", colour="blue")
    assert (await pods.end_of("p", seconds=30))["phase"] == "Succeeded"


async def test_a_pod_waits_for_its_configuration(pods):
    mounts = [{"name": "c", "mountPath": "/etc/mpi"}]
    await pods.create("p", "true", volumes=CONFIG, container={"volumeMounts": mounts})

    async def complains():
        statuses = (await pods.status("p")).get("containerStatuses") or [{}]
        return 'configmap "settings" not found' in str(statuses[0].get("state"))

    await until(complains)
    await pods.configure("settings", colour="red")
    assert (await pods.end_of("p"))["phase"] == "Succeeded"


async def test_a_volume_that_cannot_be_had(pods):
    volumes = [{"name": "v", "nfs": {"server": "s", "path": "/"}}]
    await pods.create("p", "true", volumes=volumes)
    status = await pods.end_of("p")
    assert "volume 'v': nfs is not supported" in status["message"]


async def test_last_words(pods):
    script = "echo it broke > /dev/termination-log; exit 1"
    await pods.create("p", "sh", "-c", script)
    assert terminated(await pods.end_of("p"))["message"] == "it broke\n"
    await pods.create(
        "q",
        *("sh", "-c", "echo nothing works; exit 1"),
        container={"terminationMessagePolicy": "FallbackToLogsOnError"},
    )
    assert terminated(await pods.end_of("q"))["message"] == "nothing works\n"


async def test_init_containers_come_first_and_one_by_one(pods):
    def container(name):
        mounts = [{"name": "e", "mountPath": "/shared"}]
        command = ["sh", "-c", f"echo {name} >> /shared/log; cat /shared/log"]
        return {"name": name, "image": "none", "command": command, "volumeMounts": mounts}

    await pods.create(
        "p",
        volumes=[{"name": "e", "emptyDir": {}}],
        initContainers=[container("one"), container("two")],
        containers=[container("three")],
    )
    assert (await pods.end_of("p"))["phase"] == "Succeeded"
    assert await pods.output("p") == ["one", "two", "three"]


async def test_a_failing_init_container_is_the_end(pods):
    init = {"name": "i", "image": "none", "command": ["false"]}
    await pods.create("p", "true", initContainers=[init])
    status = await pods.end_of("p")
    assert status["phase"] == "Failed"
    assert terminated(status, "initContainerStatuses")["exitCode"] == 1


async def test_containers_of_a_pod_have_files_of_their_own(pods):
    def container(name, volume):
        mounts = [{"name": volume, "mountPath": "/data"}]
        command = ["sh", "-c", f"echo {name} > /data/x; sleep 0.2; cat /data/x"]
        return {"name": name, "image": "none", "command": command, "volumeMounts": mounts}

    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    both = [container("one", "a"), container("two", "b")]
    await pods.create("p", volumes=volumes, containers=both)
    await pods.end_of("p")
    assert await pods.output("p", container="one") == ["one"]
    assert await pods.output("p", container="two") == ["two"]


async def test_restarts_in_place(pods):
    script = "echo once >> /keep/log; test $(wc -l < /keep/log) = 3"
    await pods.create(
        "p",
        *("sh", "-c", script),
        restartPolicy="OnFailure",
        volumes=[{"name": "e", "emptyDir": {}}],
        container={"volumeMounts": [{"name": "e", "mountPath": "/keep"}]},
    )
    status = await pods.end_of("p")
    container = status["containerStatuses"][0]
    assert (status["phase"], container["restartCount"]) == ("Succeeded", 2)
    assert container["lastState"]["terminated"]["exitCode"] == 1


async def test_what_a_container_leaves_behind_ends_with_it(pods):
    script = f"sleep {nap(987)} & setsid sleep {nap(987)} & sleep 0.1; exit 0"
    await pods.create("p", "sh", "-c", script)
    await pods.end_of("p")
    await until(lambda: count("sleep", nap(987)) == 0, 30)


def nap(seconds: int) -> str:
    """About so many seconds, in words that no process of another run of tests has."""
    return f"{seconds}.{os.getpid()}"


def running(*words: str) -> list[int]:
    line = b"\0".join(word.encode() for word in words) + b"\0"
    return [pid for pid in process_tree.parents() if _command_line(pid) == line]


def count(*words: str) -> int:
    return len(running(*words))


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


async def test_a_deleted_pod_is_asked_to_end(pods):
    script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    await pods.create("p", "sh", "-c", script, terminationGracePeriodSeconds=20)
    await until(lambda: has_printed(pods, "p", "ready"))
    logs = pods.log("p", NAMESPACE, LogOptions(follow=True))
    await pods.delete("p")
    assert [line async for line in logs] == [b"ready", b"bye"]
    await pods.until_gone("p")


async def has_printed(pods, name, line):
    return line in await pods.output(name)


async def test_one_that_does_not_listen_is_killed(pods):
    script = f"trap '' TERM; echo ready; sleep {nap(986)}; sleep {nap(986)}"
    await pods.create("p", "sh", "-c", script)
    await until(lambda: has_printed(pods, "p", "ready"))
    await pods.delete("p", grace_seconds=1)
    await pods.until_gone("p")
    assert count("sleep", nap(986)) == 0


async def test_a_worker_that_would_run_sshd_just_waits(pods):
    await pods.create("p", "/usr/sbin/sshd", "-De")
    status = await pods.until_phase("p", "Running")
    assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
    await pods.delete("p")
    await pods.until_gone("p", seconds=20)


async def test_readiness_is_asked_for(pods, tmp_path):
    probe = {"exec": {"command": ["test", "-e", "/keep/ready"]}, "periodSeconds": 1}
    mounts = [{"name": "e", "mountPath": "/keep"}]
    await pods.create(
        "p",
        *("sh", "-c", "until test -e go; do sleep 0.05; done; touch /keep/ready; sleep 60"),
        volumes=[{"name": "e", "emptyDir": {}}],
        container={"volumeMounts": mounts, "readinessProbe": probe},
    )
    status = await pods.until_phase("p", "Running")
    assert status["containerStatuses"][0]["ready"] is False
    (tmp_path / "go").touch()

    async def is_ready():
        return (await pods.status("p"))["containerStatuses"][0]["ready"]

    await until(is_ready, 30)


async def test_a_deadline(pods):
    await pods.create("p", "sleep", "60", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
    assert (await pods.end_of("p", seconds=30))["reason"] == "DeadlineExceeded"


async def test_what_does_not_fit_waits_and_says_why(run, tmp_path):
    small = Machine(Fraction(1), Fraction(2**30))
    container = {"resources": {"requests": {"cpu": "1"}}}
    options = {"kind": Kind.PLAIN, "machine": small, "oversubscribe": False}
    async with machine(run.directory, tmp_path, **options) as pods:
        await pods.create("first", "sleep", "60", container=container)
        await pods.until_phase("first", "Running")
        await pods.create("second", "true", container=container)

        async def complains():
            conditions = (await pods.status("second")).get("conditions") or [{}]
            return conditions[0].get("reason") == "Unschedulable"

        await until(complains)
        await pods.delete("first", grace_seconds=0)
        assert (await pods.end_of("second"))["phase"] == "Succeeded"


async def test_a_malformed_pod_does_not_stop_others(pods):
    await pods.create("odd", "true", container={"resources": {"requests": {"cpu": "lots"}}})
    assert "'lots' is not a quantity" in (await pods.end_of("odd"))["message"]
    await pods.create("even", "true")
    assert (await pods.end_of("even"))["phase"] == "Succeeded"


async def test_a_pod_whose_sandbox_is_killed_has_failed(pods):
    await pods.create("p", "sleep", nap(985))
    await pods.until_phase("p", "Running")
    await until(lambda: count("sleep", nap(985)) == 1)
    [sleeper] = running("sleep", nap(985))
    os.kill(process_tree.parents()[sleeper], signal.SIGKILL)
    status = await pods.end_of("p")
    assert (status["phase"], status["reason"]) == ("Failed", "SandboxLost")
    await until(lambda: count("sleep", nap(985)) == 0, 30)


async def test_pods_that_come_and_go_leave_nothing(pods, run):
    for number in range(10):
        await pods.create(f"p-{number}", "true")
    for number in range(10):
        await pods.end_of(f"p-{number}")
        await pods.delete(f"p-{number}")
    for number in range(10):
        await pods.until_gone(f"p-{number}")
    await until(lambda: list((run.directory / "pods").iterdir()) == [], 30)
    assert (await pods.cluster.list(PODS)).items == []


async def test_many_workers_start_and_end(pods):
    names = [f"w-{number}" for number in range(64)]
    for name in names:
        await pods.create(name, "/usr/sbin/sshd", "-De")
    for name in names:
        await pods.until_phase(name, "Running")
    for name in names:
        await pods.delete(name)
    for name in names:
        await pods.until_gone(name)
