"""The pods of an MPI job as the operator builds them: workers, a launcher, a hostfile."""

from typing import Any

from mpi_operator.kube.resources import Manifest
from mpi_operator.mpi_variables import MPIS
from tests.local.machine import Pods

HOSTFILE = "/etc/mpi/hostfile"

# The parent of a rank, the daemon of its host, knows the pod: Hydra gives ranks the variables of
# the launcher. Without such a daemon the parent has no variables, and the rank's own are right.
PROGRAM = """
import os
from mpi4py import MPI

def sandbox():
    with open(f"/proc/{os.getppid()}/environ") as file:
        variables = dict(line.partition("=")[::2] for line in file.read().split(chr(0)))
    return {**os.environ, **variables}["MPI_OPERATOR_POD"]

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
results = world.gather((world.rank, sandbox(), MPI.Get_processor_name(), total))
if world.rank == 0:
    for result in results:
        print(*result)
"""


async def start(
    pods: Pods,
    implementation: str,
    workers: int,
    *command: str,
    slots: int = 1,
    worker: Manifest | None = None,
) -> None:
    """Start the workers, and the launcher when they run."""
    hosts = (f"pi-worker-{index}.pi.default.svc" for index in range(workers))
    line = MPIS[implementation].host_line
    hostfile = "".join(f"{line.format(host=host, slots=slots)}\n" for host in hosts)
    await pods.configure("pi-config", hostfile=hostfile)
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
    variables = MPIS[implementation].launcher.items()
    return {
        "env": [
            {"name": name, "value": value.format(hostfile=HOSTFILE, slots=slots)}
            for name, value in variables
        ],
        "volumeMounts": [{"name": "hosts", "mountPath": "/etc/mpi"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def ranks(output: list[str]) -> list[tuple[int, str, int]]:
    """The output of the ranks: number, sandbox and sum."""
    words = [line.split() for line in output if len(line.split()) == 4 and line[0].isdigit()]
    return [(int(rank), sandbox, int(total)) for rank, sandbox, _, total in words]


def why(status: Manifest) -> str:
    return str([each["state"] for each in status["containerStatuses"]])
