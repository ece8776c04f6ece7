"""What differs between the MPIs: how a host is written, and what their launchers read."""

from collections.abc import Mapping
from dataclasses import dataclass

from mpi_operator.api import MPIJob
from mpi_operator.api.types import Implementation

# The pods start together, so a worker's sshd may take some seconds longer than the launcher.
_SSH_ARGUMENTS = "-o ConnectionAttempts=10"


@dataclass(frozen=True)
class Dialect:
    """One MPI. Braces stand for what a job fills in."""

    host_line: str
    launcher_environment: Mapping[str, str]


# Open MPI 4 starts ranks with ORTE and 5 with PRRTE. Each ignores the other's variables, and with
# its own missing runs all ranks in the launcher without a word.
_ORTE = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "{hostfile}",
    "OMPI_MCA_plm_rsh_args": _SSH_ARGUMENTS,
    "OMPI_MCA_orte_set_default_slots": "{slots}",
}
_PRRTE = {
    "PRTE_MCA_prte_default_hostfile": "{hostfile}",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_prte_set_default_slots": "{slots}",
    "PRTE_MCA_plm_ssh_args": _SSH_ARGUMENTS,
}

IMPLEMENTATIONS = {
    Implementation.OPEN_MPI: Dialect("{host} slots={slots}", _ORTE | _PRRTE),
    Implementation.INTEL: Dialect(
        "{host}:{slots}",
        {
            "I_MPI_HYDRA_HOST_FILE": "{hostfile}",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGUMENTS,
            "I_MPI_PERHOST": "{slots}",
        },
    ),
    Implementation.MPICH: Dialect(
        "{host}:{slots}",
        {
            "HYDRA_HOST_FILE": "{hostfile}",
            "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGUMENTS,
        },
    ),
}


def host_line(job: MPIJob, host: str) -> str:
    """A line of the hostfile."""
    line = IMPLEMENTATIONS[job.spec.mpi_implementation].host_line
    return line.format(host=host, slots=job.spec.slots_per_worker)


def launcher_environment(job: MPIJob, hostfile: str) -> dict[str, str]:
    """The variables that make mpirun read a hostfile."""
    variables = IMPLEMENTATIONS[job.spec.mpi_implementation].launcher_environment
    slots = job.spec.slots_per_worker
    return {name: value.format(hostfile=hostfile, slots=slots) for name, value in variables.items()}
