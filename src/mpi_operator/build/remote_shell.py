"""How mpirun reaches the workers: by ssh that waits for them, `scripts/remote_shell.sh`.

It has to be at the same path in every pod, for daemons of Open MPI start further daemons. Where a
template mounts something of its own there, a job is left to plain ssh.
"""

from posixpath import normpath

from mpi_operator.api import MPIJob, annotations
from mpi_operator.kube.resources import Manifest

from . import scripts, ssh_ports
from .implementations import remote_shell_environment
from .settings import Settings
from .ssh_keepalive import node_patience

SCRIPT_PATH = f"{scripts.PATH}/{scripts.REMOTE_SHELL}"


def is_used(job: MPIJob, settings: Settings) -> bool:
    """Whether the pods of a job get the scripts."""
    return settings.uses_ssh and not any(map(_is_path_taken, _first_containers(job)))


def launcher_environment(job: MPIJob, settings: Settings) -> dict[str, str]:
    """What makes mpirun use the remote shell, and what that has to know."""
    if not is_used(job, settings):
        return {}
    return remote_shell_environment(job, SCRIPT_PATH) | environment(job, settings)


def environment(job: MPIJob, settings: Settings) -> dict[str, str]:
    """What the remote shell has to know, in whatever pod it runs."""
    if not is_used(job, settings):
        return {}
    timeout = annotations.init_timeout(job.metadata.annotations)
    known = {
        "MPI_OPERATOR_INIT_TIMEOUT": int(timeout.total_seconds()) if timeout else None,
        "MPI_OPERATOR_FIRST_SSH_PORT": ssh_ports.first_port(job),
        "MPI_OPERATOR_NODE_PATIENCE": node_patience(job),
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def _first_containers(job: MPIJob) -> list[Manifest]:
    roles = (job.spec.launcher, *((job.spec.worker,) if job.spec.worker else ()))
    return [role.template["spec"]["containers"][0] for role in roles]


def _is_path_taken(container: Manifest) -> bool:
    """Whether something is mounted where our scripts would be, or inside: that is read-only."""
    paths = (normpath(mount["mountPath"]) for mount in container.get("volumeMounts") or ())
    return any(f"{path}/".startswith(f"{scripts.PATH}/") for path in paths)
