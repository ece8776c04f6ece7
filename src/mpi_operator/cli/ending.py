"""How a job ended, and the exit code of `mpijob run`."""

from collections.abc import Sequence

from mpi_operator.api import conditions, labels
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.runs.records import End

SUCCESS = 0
FAILED = 1
TIMED_OUT = 124
INTERRUPTED = 130

SUCCEEDED = End("Succeeded", "succeeded", SUCCESS)
DELETED = End("Deleted", "was deleted", FAILED)
INTERRUPTION = End("Interrupted", "was interrupted", INTERRUPTED)


def timed_out(seconds: float | None) -> End:
    return End("TimedOut", f"did not end within {seconds:g} s", TIMED_OUT)


def end_of(job: MPIJob, pods: Sequence[Manifest]) -> End:
    """How a job that is finished ended; what its pods were like last tells the exit code."""
    if conditions.is_true(job.status.conditions, ConditionType.SUCCEEDED):
        return SUCCEEDED
    last = conditions.describing(job.status.conditions)
    message = f"failed: {last.message if last else 'nobody knows why'}"
    return End("Failed", message, _exit_code(pods))


def _exit_code(pods: Sequence[Manifest]) -> int:
    """That of the container of the last launcher, as far as it is known."""
    launchers = [pod for pod in pods if _role(pod) == labels.Role.LAUNCHER]
    codes = [code for pod in launchers if (code := _pod_exit_code(pod))]
    return codes[-1] if codes else FAILED


def _role(pod: Manifest) -> str | None:
    return (pod["metadata"].get("labels") or {}).get(labels.JOB_ROLE)


def _pod_exit_code(pod: Manifest) -> int:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            if code := (state.get("terminated") or {}).get("exitCode"):
                return int(code)
    return 0
