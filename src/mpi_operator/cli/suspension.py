"""Whether a job has to wait: what `suspend` and `resume` have in common."""

from mpi_operator.build.ownership import MPI_JOBS

from . import local_jobs


async def set_suspended(name: str, run: str | None, *, suspended: bool) -> bool:
    """Say whether a job has to wait; False where it is so already."""
    found = await local_jobs.find_running(name, run)
    if found.job.spec.run_policy.suspend is suspended:
        return False
    change = {"spec": {"runPolicy": {"suspend": suspended}}}
    await found.cluster.patch(MPI_JOBS, found.name, change, found.namespace)
    return True
