"""What a launcher runs, as far as its template says."""

from pathlib import PurePosixPath

from mpi_operator.api.types import Implementation, MPIJob

_MPIRUN = ("mpirun", "mpiexec", "orterun", "prterun")
# With these Open MPI goes on without the workers that it loses.
_SURVIVING = ("--with-ft", "-with-ft", "--enable-recovery", "-enable-recovery")


def gives_up_with_a_worker(job: MPIJob) -> bool:
    """Whether a launcher is nothing but an mpirun of Open MPI, which ends when it loses a worker.

    Of a script or another program nobody knows what it makes of that.
    """
    container = job.spec.launcher.template["spec"]["containers"][0]
    command: list[str] = container.get("command") or []
    arguments: list[str] = container.get("args") or []
    return (
        job.spec.mpi_implementation is Implementation.OPEN_MPI
        and bool(command)
        and PurePosixPath(command[0]).name in _MPIRUN
        and not any(word.startswith(_SURVIVING) for word in (*command, *arguments))
    )
