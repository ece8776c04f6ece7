"""The job of the tests: two workers, one rank on each, for every MPI and as any user."""

from dataclasses import dataclass, field
from typing import Any

from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import mpijob


@dataclass(frozen=True)
class Flavour:
    """An MPI: which image has it, and how its ranks are started."""

    image: str
    implementation: str
    root_flags: tuple[str, ...] = ()

    def command(
        self, program: str = "/home/mpiuser/pi", *, ranks: int = 2, as_root: bool = True
    ) -> list[str]:
        return ["mpirun", *(self.root_flags if as_root else ()), "-n", str(ranks), program]


FLAVOURS = {
    "openmpi": Flavour(
        "mpioperator/mpi-pi:openmpi", "OpenMPI", root_flags=("--allow-run-as-root",)
    ),
    "openmpi-4": Flavour(
        "mpioperator/mpi-pi:openmpi-4", "OpenMPI", root_flags=("--allow-run-as-root",)
    ),
    "mpich": Flavour("mpioperator/mpi-pi:mpich", "MPICH"),
    "intel": Flavour("mpioperator/mpi-pi:intel", "Intel"),
}
OPEN_MPI = FLAVOURS["openmpi"]
# How a shell that is a rank says which one, as the program does.
RANK = "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} of ${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}"

# What the Go operator's examples have for users other than root.
_NON_ROOT: Manifest = {"runAsUser": 1000}
_HOME = "/home/mpiuser"
_OWN_SSHD = ["/usr/sbin/sshd", "-De", "-f", f"{_HOME}/.sshd_config"]


@dataclass(frozen=True)
class Overrides:
    """What is special about a job."""

    workers: int = 2
    launcher: Manifest = field(default_factory=dict)
    worker: Manifest = field(default_factory=dict)
    """Laid over the container of a role."""
    pod: Manifest = field(default_factory=dict)
    """Laid over the pods of both."""


_NOTHING = Overrides()


def pi(
    name: str = "pi",
    flavour: Flavour = OPEN_MPI,
    overrides: Overrides = _NOTHING,
    *,
    ranks: int = 2,
    **spec: Any,
) -> Manifest:
    """As root, with the sshd that the operator supplies."""
    return _job(name, flavour, overrides, {"command": flavour.command(ranks=ranks)}, {}, spec)


def pi_as_user(
    name: str = "pi",
    flavour: Flavour = OPEN_MPI,
    overrides: Overrides = _NOTHING,
    *,
    security: Manifest = _NON_ROOT,
    **spec: Any,
) -> Manifest:
    """As another user, with the configuration of sshd that the images have for that."""
    command = {"command": flavour.command(as_root=False), "securityContext": security}
    sshd = {"command": _OWN_SSHD, "securityContext": security}
    keys = {"sshAuthMountPath": f"{_HOME}/.ssh"}
    return _job(name, flavour, overrides, command, sshd, keys | spec)


def _job(
    name: str,
    flavour: Flavour,
    overrides: Overrides,
    launcher: Manifest,
    worker: Manifest,
    spec: Manifest,
) -> Manifest:
    return mpijob(
        name,
        launcher=_role("launcher", flavour, overrides.pod, launcher | overrides.launcher),
        worker={
            **_role("worker", flavour, spread(name) | overrides.pod, worker | overrides.worker),
            "replicas": overrides.workers,
        },
        mpiImplementation=flavour.implementation,
        **spec,
    )


def _role(name: str, flavour: Flavour, pod: Manifest, container: Manifest) -> Manifest:
    image = {"name": name, "image": flavour.image, "imagePullPolicy": "Never"}
    return {"template": {"spec": {"containers": [image | container], **pod}}}


def spread(name: str, otherwise: str = "DoNotSchedule") -> Manifest:
    """Workers on both nodes: between pods of one node much works that should not."""
    labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": "worker"}
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": labels},
    }
    return {"topologySpreadConstraints": [apart]}


def one_rank_each(name: str, workers: int = 2) -> dict[int, str]:
    """Where the ranks of a job have to run."""
    return {rank: f"{name}-worker-{rank}" for rank in range(workers)}
