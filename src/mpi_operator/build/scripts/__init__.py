"""Scripts that run in pods: what makes a start wait for what is not there yet.

They are files of their own, to be read and run as what they are. In a pod they are at `PATH`, and
need nothing of an image but a POSIX shell and ssh.
"""

from functools import cache
from pathlib import Path

REMOTE_SHELL = "remote_shell.sh"
WORKER = "worker.sh"
WORKER_READY = "worker_ready.sh"
NAMES = (REMOTE_SHELL, WORKER, WORKER_READY)

PATH = "/etc/mpi"  # of all that the operator tells the pods of a job
KEPT_ENVIRONMENT = "/run/mpi-operator"  # where a worker keeps that of its container
# How the last words of a remote shell begin.
GAVE_UP = "mpi-operator: gave up on "
LOST = "mpi-operator: lost "
WENT_ON = "mpi-operator: went on with "  # after that
WAITING = "mpi-operator: waiting for "  # how it says that, in the log


@cache
def text(name: str) -> str:
    """A script."""
    return Path(__file__).with_name(name).read_text()


def shared(known: str) -> str:
    """A text, or our own copy of it if it is one of the scripts: each job has a copy in caches."""
    return next((ours for ours in map(text, NAMES) if ours == known), known)
