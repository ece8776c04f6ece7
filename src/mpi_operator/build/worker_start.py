"""How a worker starts: it keeps its environment for the ranks, and tells when its sshd listens.

Only for commands that we know: our own, an sshd, a shell. Anything else is the image's own affair.
"""

import re
from collections.abc import Sequence
from posixpath import basename

from mpi_operator.api.types import WorkerSpec
from mpi_operator.kube.resources import Manifest

from . import scripts

SSHD = ("/usr/sbin/sshd", "-De")

_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")
_PORT_OPTION = re.compile(r"-p|(-o\s*)?(Port|ListenAddress)\b", re.IGNORECASE)
_SCRIPT = ("/bin/sh", f"{scripts.PATH}/{scripts.WORKER}")
_PROBE = ("/bin/sh", f"{scripts.PATH}/{scripts.WORKER_READY}")
_DAYS = 1_000_000  # seconds: whoever fails a startup probe for good is killed


def default_command(container: Manifest) -> Manifest:
    """An sshd where the template does not say what runs."""
    return {} if _is_given(container) else {"command": list(SSHD)}


def started(container: Manifest, port: int | None = None, *, is_awaited: bool) -> Manifest:
    """The fields of a worker's container that the start is about.

    `is_awaited` where the launcher is not made before the worker is ready.
    """
    command, args = _command(container), list(container.get("args") or ())
    if port is not None:
        option = ["-p", str(port)]
        command, args = (command, [*args, *option]) if args else ([*command, *option], args)
    return {
        **({"command": [*_SCRIPT, *command]} if _is_known(command) else {}),
        **({"args": args} if args else {}),
        **(_probe([*command[1:], *args], is_awaited) if _is_probed(container) else {}),
        **_ports(container, port),
    }


def probed_container(worker: WorkerSpec) -> str:
    """The container that counts as ready when its sshd listens; empty where none does."""
    container: Manifest = worker.template["spec"]["containers"][0]
    return str(container["name"]) if _is_probed(container) else ""


def takes_port(container: Manifest) -> bool:
    """Whether it is an sshd that is not told yet where to listen."""
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


def _probe(arguments: Sequence[str], is_awaited: bool) -> Manifest:
    """Asked until it has answered once: a worker costs nothing while it runs.

    To ask takes a node as much as to start a container. Where nobody waits for the answer, that is
    left for when the launcher has begun.
    """
    probe = {
        "exec": {"command": [*_PROBE, *arguments]},
        **({} if is_awaited else {"initialDelaySeconds": 1}),
        "periodSeconds": 1,
        "timeoutSeconds": 10,
        "failureThreshold": _DAYS,
    }
    return {"startupProbe": probe}


def _ports(container: Manifest, port: int | None) -> Manifest:
    if port is None:
        return {}
    # A host port, too: on the network of the node they are the same.
    ours = {"containerPort": port, "hostPort": port, "protocol": "TCP"}
    return {"ports": [*(container.get("ports") or ()), ours]}
