"""How a job that `mpijob` follows has ended."""

import errno
import signal
from collections.abc import Iterator, Sequence
from itertools import chain

from mpi_operator.api import conditions, labels
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.cli import signals
from mpi_operator.cli.command_errors import BROKEN_PIPE, FAILURE, SUCCESS, TIMEOUT
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.runs.records import End

from .job_stream import role_of
from .launcher_failure import LastLines
from .pod_column import failed_init_container
from .worker_failure import worker_failure

SUCCEEDED = End("Succeeded", "succeeded", SUCCESS)
DELETED = End("Deleted", "was deleted", FAILURE)


def timed_out(seconds: float | None) -> End:
    return End("TimedOut", f"timed out after {seconds:g}s", TIMEOUT)


def interrupted(number: int) -> End:
    by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    return End("Interrupted", f"was interrupted{by}", signals.exit_code(number))


def output_lost(error: OSError) -> End:
    """How a job ends whose output cannot be delivered."""
    if error.errno == errno.EPIPE:
        return End("Interrupted", "was stopped: its output is no longer read", BROKEN_PIPE)
    return End("Interrupted", f"was stopped: cannot write its output: {error.strerror}", FAILURE)


def end_of(job: MPIJob, pods: Sequence[Manifest], last_lines: LastLines) -> End:
    """How a finished job ended; the last state of its pods has the exit code."""
    if conditions.is_true(job.status.conditions, ConditionType.SUCCEEDED):
        return SUCCEEDED
    last = conditions.describing(job.status.conditions)
    message = f"failed: {last.message if last else 'no reason was reported'}"
    launchers = [pod for pod in pods if role_of(pod) == labels.Role.LAUNCHER]
    failed = next((pod for pod in reversed(launchers) if _exit_code(pod)), None)
    if failed is None:
        return End("Failed", message, FAILURE)
    exit_code = _exit_code(failed)
    cause = _start_error(failed) or last_lines.cause(job, exit_code, worker_failure(pods, failed))
    if cause and (init := failed_init_container(failed)):
        cause = f"{cause} (init container {init[0]})"
    return End("Failed", message, exit_code, cause)


def _start_error(pod: Manifest) -> str:
    """Why a container could not start, in which case it has printed nothing."""
    ends = _terminations(pod, "initContainerStatuses", "containerStatuses")
    errors = (each for each in ends if each.get("reason") == "StartError")
    return next((str(each.get("message") or "") for each in errors), "")


def _exit_code(pod: Manifest) -> int:
    """That of a container that failed; 0 if none has."""
    ends = _terminations(pod, "containerStatuses")
    codes = (int(each.get("exitCode") or 0) for each in ends)
    if code := next(filter(None, codes), 0):
        return code
    failed = failed_init_container(pod)
    return failed[1] if failed else 0


def _terminations(pod: Manifest, *fields: str) -> Iterator[Manifest]:
    """How the containers of these statuses have ended, now or before they were restarted."""
    status = pod.get("status") or {}
    for container in chain.from_iterable(status.get(field) or () for field in fields):
        for name in ("state", "lastState"):
            yield (container.get(name) or {}).get("terminated") or {}
