"""How a worker starts: it stores its environment for the ranks, and is probed until sshd listens.

Only for known commands: the default one, an sshd, a shell. Other commands are left unchanged.
"""

import re
from collections.abc import Sequence
from posixpath import basename

from mpi_operator.api import MPIJob
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import WorkerSpec
from mpi_operator.kube.resources import Manifest

from . import scripts
from .settings import Settings

SSHD = ("/usr/sbin/sshd", "-De")

_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")
_PORT_OPTION = re.compile(r"-p|(-o\s*)?(Port|ListenAddress)\b", re.IGNORECASE)
_SCRIPT = ("/bin/sh", f"{scripts.PATH}/{scripts.WORKER}")
_PROBE = ("/bin/sh", f"{scripts.PATH}/{scripts.WORKER_READY}")
_IDLE = ("/bin/sh", f"{scripts.PATH}/{scripts.IDLE}")
_MAX_FAILURES = 1_000_000  # many days: Kubernetes kills a container whose startup probe fails


def default_command(container: Manifest) -> Manifest:
    """An sshd, if the template has no command."""
    return {} if _is_given(container) else {"command": list(SSHD)}


def idle_command(container: Manifest, settings: Settings) -> Manifest:
    """A sleep, if the template has no command."""
    if _is_given(container):
        return {}
    # As the first process of a container it would not end before it is killed.
    wrapper = () if settings.is_local else _IDLE
    return {"command": [*wrapper, "sleep"], "args": ["365d"]}


def start_fields(container: Manifest, port: int | None = None, *, launcher_waits: bool) -> Manifest:
    """The command, arguments, probe and ports of a worker's container."""
    command, args = _command(container), list(container.get("args") or ())
    if port is not None:
        option = ["-p", str(port)]
        command, args = (command, [*args, *option]) if args else ([*command, *option], args)
    return {
        **({"command": [*_SCRIPT, *command]} if _is_known(command) else {}),
        **({"args": args} if args else {}),
        **(_probe([*command[1:], *args], launcher_waits) if _is_probed(container) else {}),
        **_ports(container, port),
    }


def probed_container(job: MPIJob, worker: WorkerSpec) -> str:
    """The container that is ready when its sshd listens; empty if there is no probe for that."""
    container = main_container(job, worker)
    return "" if uses_exec(job) or not _is_probed(container) else str(container["name"])


def takes_port(container: Manifest) -> bool:
    """Whether a container runs an sshd without a port in its arguments."""
    command = [*_command(container), *(container.get("args") or ())]
    return _is_sshd(command) and not any(map(_is_about_ports, command))


def _command(container: Manifest) -> list[str]:
    return list((container.get("command") or ()) if _is_given(container) else SSHD)


def _is_given(container: Manifest) -> bool:
    return bool(container.get("command") or container.get("args"))


def _is_sshd(command: Sequence[str]) -> bool:
    return bool(command) and basename(command[0]) == "sshd"


def _is_known(command: Sequence[str]) -> bool:
    return _is_sshd(command) or (bool(command) and basename(command[0]) in _SHELLS)


def _is_about_ports(word: str) -> bool:
    return _PORT_OPTION.match(word) is not None


def _is_probed(container: Manifest) -> bool:
    return _is_sshd(_command(container)) and not _has_probe(container)


def _has_probe(container: Manifest) -> bool:
    return bool(container.get("readinessProbe") or container.get("startupProbe"))


def _probe(arguments: Sequence[str], launcher_waits: bool) -> Manifest:
    """A startup probe: once it has succeeded, a worker costs nothing.

    Each probe costs a node as much as starting a container. If the launcher does not wait for the
    workers, the first probe is delayed until the launcher has started.
    """
    probe = {
        "exec": {"command": [*_PROBE, *arguments]},
        **({} if launcher_waits else {"initialDelaySeconds": 1}),
        "periodSeconds": 1,
        "timeoutSeconds": 10,
        "failureThreshold": _MAX_FAILURES,
    }
    return {"startupProbe": probe}


def _ports(container: Manifest, port: int | None) -> Manifest:
    if port is None:
        return {}
    # On the network of the node, the host port is the same.
    ours = {"containerPort": port, "hostPort": port, "protocol": "TCP"}
    return {"ports": [*(container.get("ports") or ()), ours]}
