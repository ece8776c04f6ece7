"""The machine of one node: namespaces, and a first process with which they live and die.

A node has its own network, mounts, processes, host name and /run. It is booted by `unshare`, whose
child becomes process 1 in there. When that dies the kernel ends everything in the node at once and
takes the mounts and network devices away, as a power loss would; so there is
nothing else to clean up, not even after a crash. Programs enter a node with `nsenter`.

The node sees the files of this host, except those of the directories in `PRIVATE`.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster import process, readiness, runs
from devcluster.process import Process

# Paths fixed in the programs of a node: each node needs its own.
PRIVATE = (
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
)
_BOOT_SECONDS = 20.0
_NAMESPACES = ("--net", "--mount", "--uts", "--ipc", "--pid")


def boot(run: runs.Run, name: str, *, init: Path, private: Mapping[str, Path]) -> Process:
    """Start a machine; `private` has the directory on this host for each private one."""
    booted = run.directory / f"{name}.booted"
    booted.unlink(missing_ok=True)
    for target, source in private.items():
        source.mkdir(parents=True, exist_ok=True)
        Path(target).mkdir(parents=True, exist_ok=True)
    script = _boot_script(name, init=init, private=private, booted=booted)
    options = ["--fork", "--kill-child", "--propagation", "private"]
    machine = run.start(name, ["unshare", *_NAMESPACES, *options, "sh", "-ec", script])
    readiness.wait_until(booted.exists, machine, _BOOT_SECONDS)
    run.record(_first_process(machine))
    return machine


def inside(machine: Process, argv: Sequence[str]) -> list[str]:
    """The command that runs a program in a machine."""
    # The machine's recorded process has unshared its own namespaces, but its pid is the host's.
    pid_namespace = f"--pid=/proc/{machine.pid}/ns/pid_for_children"
    return ["nsenter", "--target", str(machine.pid), *_NAMESPACES[:-1], pid_namespace, "--", *argv]


def path_inside(machine: Process, path: str) -> Path:
    """Where this host finds a file of a machine."""
    return Path(f"/proc/{machine.pid}/root{path}")


def _boot_script(name: str, *, init: Path, private: Mapping[str, Path], booted: Path) -> str:
    mounts = [
        ["mount", "--make-rshared", "/"],  # containers see what the kubelet mounts
        ["mount", "-t", "proc", "proc", "/proc"],
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
        *(["mount", "--bind", str(source), target] for target, source in private.items()),
    ]
    return "\n".join(
        [
            *(shlex.join(mount) for mount in mounts),
            shlex.join(["hostname", name]),
            "ip link set lo up",
            "echo 1 > /proc/sys/net/ipv4/ip_forward",  # a node is the router of its pods
            shlex.join(["touch", str(booted)]),
            shlex.join(["exec", str(init)]),
        ]
    )


def _first_process(machine: Process) -> Process:
    # Recorded because its end, unlike that of `unshare`, ends everything in the machine.
    children = Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split()
    pid = int(children[0])
    vitals = process.vitals_of(pid)
    assert vitals is not None, "the machine has just booted"
    return Process(f"{machine.name}.init", [], pid, vitals.born, machine.log)
