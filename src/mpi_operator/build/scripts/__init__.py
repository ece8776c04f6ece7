"""Scripts that run in pods, so that a start waits for what is not there yet.

In a pod they are at `PATH`. They need nothing of an image but a POSIX shell, and ssh where that is
the transport.
"""

from enum import StrEnum
from functools import cache
from pathlib import Path

REMOTE_SHELL = "remote_shell.sh"
WORKER = "worker.sh"
WORKER_READY = "worker_ready.sh"
NAMES = (REMOTE_SHELL, WORKER, WORKER_READY)

# Where the launcher reaches its workers by exec.
KUBEXEC = "kubexec.sh"
IDLE = "idle.sh"

PATH = "/etc/mpi"  # where pods find the files of the ConfigMap
KEPT_ENVIRONMENT = "/run/mpi-operator"  # where a worker saves the environment of its container
EVENT = "mpi-operator: event="  # how a line of the remote shell for the operator begins


class Event(StrEnum):
    """What such a line reports about a worker. The fields `worker`, `seconds`, `cause` follow."""

    WAITING = "waiting"  # in the log: the worker does not answer yet
    GAVE_UP = "gave-up"  # in the termination message, like the others
    LOST = "lost"
    CONTINUED = "continued"  # something was started after a worker was lost


@cache
def text(name: str) -> str:
    """A script."""
    return Path(__file__).with_name(name).read_text()


def shared(known: str) -> str:
    """The text; one object for each script, because every cached job has a copy."""
    return next((ours for ours in map(text, (*NAMES, IDLE)) if ours == known), known)
