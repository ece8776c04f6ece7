"""An MPI job as the operator builds it: workers that would run sshd, a launcher, a hostfile."""

from typing import Any

from mpi_operator.kube.resources import Manifest
from tests.local.machine import Pods

HOSTFILE = "/etc/mpi/hostfile"
SSH_ARGUMENTS = "-o ConnectionAttempts=10"

# A copy of what `mpi_operator.build` sets: `local` may not know it, nor may its tests.
ENVIRONMENT = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_plm_rsh_args": SSH_ARGUMENTS,
        "OMPI_MCA_orte_set_default_slots": "1",
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": "1",
        "PRTE_MCA_plm_ssh_args": SSH_ARGUMENTS,
    },
    "MPICH": {"HYDRA_HOST_FILE": HOSTFILE, "HYDRA_LAUNCH_EXTRA_ARGS": SSH_ARGUMENTS},
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_ARGUMENTS,
        "I_MPI_PERHOST": "1",
    },
}
LINES = {
    "OpenMPI": "{host} slots={slots}\n",
    "MPICH": "{host}:{slots}\n",
    "Intel": "{host}:{slots}\n",
}

# Where a rank runs is read from its parent, the daemon of its host: Hydra gives ranks the variables
# of the launcher. A keeper, who is the parent where there is no such daemon, has none.
PROGRAM = """
import os
from mpi4py import MPI

def sandbox():
    with open(f"/proc/{os.getppid()}/environ") as file:
        variables = dict(line.partition("=")[::2] for line in file.read().split(chr(0)))
    return {**os.environ, **variables}["MPI_OPERATOR_POD"]

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
told = world.gather((world.rank, sandbox(), MPI.Get_processor_name(), total))
if world.rank == 0:
    for line in told:
        print(*line)
"""


async def start(
    pods: Pods,
    implementation: str,
    workers: int,
    *command: str,
    slots: int = 1,
    worker: Manifest | None = None,
) -> None:
    """Workers first, and the launcher when they are ready."""
    hosts = (f"pi-worker-{index}.pi.default.svc" for index in range(workers))
    lines = (LINES[implementation].format(host=host, slots=slots) for host in hosts)
    await pods.configure("pi-config", hostfile="".join(lines))
    for index in range(workers):
        name = f"pi-worker-{index}"
        await pods.create(
            name, "/usr/sbin/sshd", "-De", hostname=name, subdomain="pi", container=worker or {}
        )
    for index in range(workers):
        await pods.until_phase(f"pi-worker-{index}", "Running")
    await pods.create(
        "pi-launcher-x",
        *command,
        hostname="pi-launcher",
        subdomain="pi",
        volumes=[{"name": "hosts", "configMap": {"name": "pi-config"}}],
        container=launcher_container(implementation, slots),
    )


def launcher_container(implementation: str, slots: int) -> dict[str, Any]:
    env = {
        name: str(slots) if name.endswith(("slots", "PERHOST")) else value
        for name, value in ENVIRONMENT[implementation].items()
    }
    return {
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumeMounts": [{"name": "hosts", "mountPath": "/etc/mpi"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def ranks(output: list[str]) -> list[tuple[int, str, int]]:
    """What the ranks said: number, sandbox and sum."""
    words = [line.split() for line in output if len(line.split()) == 4 and line[0].isdigit()]
    return [(int(rank), sandbox, int(total)) for rank, sandbox, _, total in words]


def why(status: Manifest) -> str:
    return str([each["state"] for each in status["containerStatuses"]])
