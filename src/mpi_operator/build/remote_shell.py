"""How mpirun reaches the workers: through `scripts/remote_shell.sh`, an ssh that waits for them.

The script has the same path in every pod, because daemons of Open MPI start further daemons. If a
template mounts something else at that path, the job uses plain ssh.
"""

from hashlib import sha256
from posixpath import normpath

from mpi_operator.api import MPIJob, annotations
from mpi_operator.api.launcher_transport import Transport, transport
from mpi_operator.api.main_container import main_container
from mpi_operator.kube.resources import Manifest

from . import scripts, worker_start
from .implementations import chooses_remote_shell, remote_shell_environment
from .settings import Settings

SCRIPT_PATH = f"{scripts.PATH}/{scripts.REMOTE_SHELL}"

# Below the ranges from which Kubernetes takes node ports and Linux takes ports for clients.
_FIRST_PORT = 20000
_PORTS = 10000

# The control plane marks a node unreachable after 40s or 50s; ssh must not give up earlier.
_KEEPALIVE_GRACE = 60
_MAX_KEEPALIVE = 900  # TCP itself gives up then


def is_used(job: MPIJob, settings: Settings) -> bool:
    """Whether the pods of a job get the scripts."""
    if settings.is_local or transport(job) is not Transport.SSH:
        return False
    return not any(map(_is_path_taken, _main_containers(job)))


def launcher_environment(job: MPIJob, settings: Settings) -> dict[str, str]:
    """The variables that make mpirun use the remote shell, and those that the shell reads."""
    if not is_used(job, settings):
        return {}
    return remote_shell_environment(job, SCRIPT_PATH) | environment(job, settings)


def environment(job: MPIJob, settings: Settings) -> dict[str, str]:
    """The variables that the remote shell reads, in launchers and in workers."""
    if not is_used(job, settings):
        return {}
    return _environment(job, first_ssh_port(job))


def waiting_environment(job: MPIJob) -> dict[str, str]:
    """Those of them that any transport reads: how long to wait for workers and for their nodes."""
    return _environment(job, None)


def _environment(job: MPIJob, port: int | None) -> dict[str, str]:
    timeout = annotations.init_timeout(job.metadata.annotations)
    variables = {
        "MPI_OPERATOR_INIT_TIMEOUT": int(timeout.total_seconds()) if timeout else None,
        "MPI_OPERATOR_FIRST_SSH_PORT": port,
        "MPI_OPERATOR_NODE_TIMEOUT_SECONDS": _keepalive_seconds(job),
    }
    return {name: str(value) for name, value in variables.items() if value is not None}


def first_ssh_port(job: MPIJob) -> int | None:
    """The sshd port of worker 0; None unless workers share the network of their nodes.

    There every worker needs a port of its own. It follows from the UID of the job and the index of
    the worker. Ports of two jobs may still clash, so each pod declares its host port, and the
    scheduler keeps the two apart.
    """
    worker = job.spec.worker
    if worker is None or not worker.template["spec"].get("hostNetwork"):
        return None
    if chooses_remote_shell(job):
        return None  # the user's remote shell does not know the ports
    if not worker_start.takes_port(main_container(job, worker)):
        return None
    digest = sha256(job.metadata.uid.encode()).digest()
    return _FIRST_PORT + int.from_bytes(digest[:8]) % _PORTS


def ssh_port(first: int, index: int) -> int:
    """The sshd port of a worker. `scripts/remote_shell.sh` computes the same."""
    return _FIRST_PORT + (first - _FIRST_PORT + index) % _PORTS


def _keepalive_seconds(job: MPIJob) -> int | None:
    """How long ssh waits for a silent node; None for the default, which fits that of Kubernetes.

    As long as the worker tolerates an unreachable node: until then the node may come back, after
    that Kubernetes evicts the worker anyway.
    """
    worker = job.spec.worker
    tolerations = (worker.template["spec"].get("tolerations") or ()) if worker else ()
    # Kubernetes takes the first toleration that matches the taint.
    found = next(filter(_tolerates_unreachable_node, tolerations), None)
    if found is None:
        return None
    seconds = found.get("tolerationSeconds")  # None: no limit
    return (
        _MAX_KEEPALIVE
        if seconds is None
        else min(max(seconds, 0) + _KEEPALIVE_GRACE, _MAX_KEEPALIVE)
    )


def _tolerates_unreachable_node(toleration: Manifest) -> bool:
    key, effect = toleration.get("key"), toleration.get("effect")
    has_value = toleration.get("operator") != "Exists" and toleration.get("value")
    return (
        key in (None, "", "node.kubernetes.io/unreachable")
        and effect in (None, "", "NoExecute")
        and not has_value
    )


def _main_containers(job: MPIJob) -> list[Manifest]:
    roles = (job.spec.launcher, *((job.spec.worker,) if job.spec.worker else ()))
    return [main_container(job, role) for role in roles]


def _is_path_taken(container: Manifest) -> bool:
    """Whether a mount is at the path of our scripts, or inside our volume, which is read-only."""
    paths = (normpath(mount["mountPath"]) for mount in container.get("volumeMounts") or ())
    return any(f"{path}/".startswith(f"{scripts.PATH}/") for path in paths)
