"""How the launcher of a job reaches its workers.

Over ssh, for which the image needs an sshd; or by exec through the API server, as `kubectl exec`
does, for which the launcher needs a permission. The job decides, else the version it was written
in. Nothing is guessed.
"""

from enum import StrEnum

from . import annotations
from .profiles import profile
from .types import MPIJob


class Transport(StrEnum):
    """A way to start processes in workers."""

    SSH = annotations.SSH
    EXEC = annotations.EXEC


def transport(job: MPIJob) -> Transport:
    """The transport of a job."""
    return Transport(annotations.transport(job.metadata.annotations) or profile(job).transport)


def uses_exec(job: MPIJob) -> bool:
    """Whether the launcher starts processes by exec."""
    return transport(job) is Transport.EXEC
