"""How long a job may be active, where Kubernetes does not watch over it.

Kubernetes limits the time of a Job. But a bare launcher is no Job, and between two tries of a
launcher there is none.
"""

from datetime import datetime, timedelta

from mpi_operator.api.types import MPIJob

from .decision import AT_ONCE, Decision
from .problems import Problem, ProblemReason


def active_deadline(job: MPIJob, began: datetime, now: datetime) -> Decision:
    """Fail a job that began then and has been active for too long."""
    seconds = job.spec.run_policy.active_deadline_seconds
    if seconds is None:
        return Decision()
    wait = began + timedelta(seconds=seconds) - now
    if wait > AT_ONCE:
        return Decision(requeue_after=wait)
    message = f"Job was active longer than {seconds}s"
    problem = Problem(ProblemReason.DEADLINE, message, is_fatal=True, ends_launcher=True)
    return Decision(problems=(problem,))
