"""What each MPI needs: lines of the hostfile, and variables for its launcher."""

from mpi_operator.api import MPIJob
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.api.main_container import main_container
from mpi_operator.api.profiles import profile
from mpi_operator.mpi_variables import MPIS

from . import requested_ranks


def host_line(job: MPIJob, host: str) -> str:
    """A line of the hostfile."""
    line = MPIS[job.spec.mpi_implementation].host_line
    return line.format(host=host, slots=job.spec.slots_per_worker)


def launcher_environment(job: MPIJob, hostfile: str) -> dict[str, str]:
    """The variables that make mpirun read a hostfile, and those that ranks need."""
    mpi = MPIS[job.spec.mpi_implementation]
    hosts = mpi.hosts if uses_exec(job) else mpi.launcher
    worker = job.spec.worker
    is_on_host = worker is not None and worker.template["spec"].get("hostNetwork")
    variables = {
        **hosts,
        **(mpi.oversubscribe if _oversubscribes(job) else {}),
        **(mpi.host_network if is_on_host else {}),
    }
    slots = job.spec.slots_per_worker
    return {name: value.format(hostfile=hostfile, slots=slots) for name, value in variables.items()}


def _oversubscribes(job: MPIJob) -> bool:
    # Not without need: an Open MPI that may do so does not bind ranks to cores.
    return profile(job).oversubscribes and requested_ranks.exceed_slots(job)


def remote_shell_environment(job: MPIJob, script: str) -> dict[str, str]:
    """The variables that make mpirun start its daemons with a script, unless the user chose how."""
    given = _given(job)
    return {
        name: value.format(script=script)
        for shell in MPIS[job.spec.mpi_implementation].remote_shells
        if not shell.is_chosen(given)
        for name, value in shell.environment.items()
    }


def exec_environment(script: str) -> dict[str, str]:
    """The variables that make any mpirun start its daemons with a script.

    Those of all MPIs, because the versions that reach workers by exec do not say which one it is.
    """
    return {
        name: value.format(script=script)
        for mpi in MPIS.values()
        for name, value in mpi.exec_shell.items()
    }


def chooses_remote_shell(job: MPIJob) -> bool:
    """Whether the user has chosen a remote shell."""
    given = _given(job)
    if uses_exec(job):
        shells = MPIS[job.spec.mpi_implementation].exec_shell.items()
        return any(name in given for name, value in shells if value == "{script}")
    remote_shells = MPIS[job.spec.mpi_implementation].remote_shells
    return any(shell.is_chosen(given) for shell in remote_shells)


def _given(job: MPIJob) -> dict[str, str]:
    """The variables in the launcher's template; those from elsewhere are unknown."""
    container = main_container(job, job.spec.launcher)
    return {each["name"]: each.get("value", "") for each in container.get("env") or ()}
