"""Ports of sshd for workers on the network of their nodes: one for each, so that none clash.

Worker i of a job has the i-th port after the job's first one, which follows from its UID. The range
is below those from which Kubernetes takes node ports and Linux takes ports for clients. Two jobs
may still meet, so a pod declares its port: then the scheduler keeps it away from such a node.
`scripts/remote_shell.sh` counts in the same way.
"""

from hashlib import sha256

from mpi_operator.api import MPIJob
from mpi_operator.kube.resources import Manifest

from . import worker_start
from .implementations import chooses_remote_shell

_FIRST = 20000
_COUNT = 10000


def first_port(job: MPIJob) -> int | None:
    """The port of the first worker; None where the port is not ours to choose."""
    worker = job.spec.worker
    if worker is None or not worker.template["spec"].get("hostNetwork"):
        return None
    if chooses_remote_shell(job):
        return None  # theirs would not know the ports
    container: Manifest = worker.template["spec"]["containers"][0]
    if not worker_start.takes_port(container):
        return None
    digest = sha256(job.metadata.uid.encode()).digest()
    return _FIRST + int.from_bytes(digest[:8]) % _COUNT


def port(first: int, ordinal: int) -> int:
    """The port of a worker."""
    return _FIRST + (first - _FIRST + ordinal) % _COUNT
