"""Workers whose failure ends their job: they are not replaced, and the launcher is stopped.

That depends on the job: v1 ends with any worker that failed, and with the restart policy `ExitCode`
the exit code decides. Workers that are deleted are always replaced, and so are those of a launcher
that asks for the list of hosts: it continues with the others.
"""

from mpi_operator.api import annotations
from mpi_operator.api.main_container import launcher_command_line, main_container
from mpi_operator.api.profiles import profile
from mpi_operator.api.types import MPIJob, WorkerSpec
from mpi_operator.build.config_map import DISCOVER_SCRIPT
from mpi_operator.build.restart_policies import uses_exit_codes

from . import pod_state
from .cached_types import Pod
from .decision import Decision
from .observed import Observed
from .problems import Problem, ProblemReason


def failed_worker(seen: Observed) -> Decision:
    """Fail the job of a worker whose failure is final."""
    worker = seen.job.spec.worker
    if worker is None:
        return Decision()
    final = [pod for pod in seen.workers.values() if _is_final(seen, worker, pod)]
    return Decision(problems=(_problem(final),) if final else ())


def _is_final(seen: Observed, worker: WorkerSpec, pod: Pod) -> bool:
    if not pod_state.is_failed(pod) or pod_state.is_about_to_be_deleted(pod):
        return False
    if uses_exit_codes(seen.job, worker):
        code = pod_state.exit_code(pod, main_container(seen.job, worker)["name"])
        if code:
            return code < annotations.FIRST_RETRYABLE
    return profile(seen.job).failed_worker_fails_job and not _survives(seen.job)


def _survives(job: MPIJob) -> bool:
    """Whether the launcher continues without a worker that it lost, as far as the job shows."""
    if policy := annotations.lost_workers(job.metadata.annotations):
        return policy == annotations.SURVIVE
    # As in `horovodrun --host-discovery-script /etc/mpi/discover_hosts.sh`.
    return DISCOVER_SCRIPT in launcher_command_line(job)


def _problem(final: list[Pod]) -> Problem:
    first, *others = final
    more = f" (and {len(others)} more)" if others else ""
    is_evicted = pod_state.is_evicted(first)
    return Problem(
        ProblemReason.WORKER_EVICTED if is_evicted else ProblemReason.WORKER_FAILED,
        f"Worker {first.metadata.name} failed{more}: {pod_state.how_it_ended(first)}",
        is_fatal=True,
        ends_launcher=True,
    )
