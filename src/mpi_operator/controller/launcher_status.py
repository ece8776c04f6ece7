"""Whether a launcher has ended, how, and how often it was tried.

The node reports the pod of a launcher completed as soon as its containers have ended with 0, sets
its phase to Succeeded a second later, and its Job is complete a second or two after that. A Job of
one pod can only complete after that pod has succeeded, so success is read from the pod. Only the
Job knows whether a failure is the last one. `lost_workers` judges what a success is worth when
workers were lost.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from mpi_operator.api import conditions
from mpi_operator.api.conditions import Reason
from mpi_operator.api.types import Implementation, MPIJob, MPIJobStatus

from . import pod_state
from .cached_types import JobCondition, Pod, moment
from .events import JobEvent, warning
from .launcher_log import given_up
from .observed import Observed
from .problems import shortened


def has_ended(seen: Observed) -> bool:
    return has_succeeded(seen) or (seen.launcher is not None and seen.launcher.is_done)


def has_succeeded(seen: Observed) -> bool:
    launcher, pod = seen.launcher, seen.successful_launcher
    if launcher is None or launcher.is_done:
        return launcher is not None and launcher.condition("Complete") is not None
    # What becomes of one that is deleted, the Job decides: it may have ended well because of that.
    return pod is not None and not pod_state.is_terminating(pod)


def success_time(seen: Observed) -> datetime | None:
    """When a launcher that succeeded had done its work, as far as anybody says."""
    launcher, pod = seen.launcher, seen.successful_launcher
    complete = launcher.condition("Complete") if launcher else None
    if launcher is not None and complete is not None:
        return moment(launcher.status.completion_time) or moment(complete.last_transition_time)
    ends = [status.state.terminated for status in pod.status.container_statuses] if pod else []
    times = (moment(end.finished_at or "") for end in ends if end)
    return max((time for time in times if time), default=None)


RESTARTED = "LauncherRestarted"  # the reason of the event

_USUAL_LIMIT = 6  # that of Jobs


def most_tries(job: MPIJob) -> int:
    """How often a launcher may be started again."""
    limit = job.spec.run_policy.backoff_limit
    return _USUAL_LIMIT if limit is None else limit


def restarts(seen: Observed) -> int:
    """How often a launcher was started again in its pod."""
    return sum(pod_state.restarts(pod) for pod in seen.launcher_pods)


def launcher_events(
    seen: Observed, status: MPIJobStatus, known_restarts: int
) -> Iterator[JobEvent]:
    """What is worth telling now that a status is on record. Of the last try its end tells."""
    is_new = _failed(status) > _failed(seen.job.status) or restarts(seen) > known_restarts
    if not is_new or conditions.is_finished(status.conditions):
        return
    most, failed, again = most_tries(seen.job), _failed(status), _restarts_of_the_living(seen)
    # Its Job will say so in a moment; of restarts in a pod it cuts the last one short.
    if failed > most or again >= max(most, 1):
        return
    tries = f"{failed + again} of {most} times"
    yield warning(RESTARTED, f"The launcher is started again ({tries}): {_how_it_ended(seen)}")


def _restarts_of_the_living(seen: Observed) -> int:
    """Those that Kubernetes counts: a pod that failed is one failure, however often it tried."""
    return sum(
        pod_state.restarts(pod) for pod in seen.launcher_pods if not pod_state.has_ended(pod)
    )


def _failed(status: MPIJobStatus) -> int:
    launcher = status.replica_statuses.launcher
    return launcher.failed if launcher else 0


def _how_it_ended(seen: Observed) -> str:
    ended = [
        pod for pod in seen.launcher_pods if pod_state.last_exit(pod) or pod_state.is_failed(pod)
    ]
    if ended:
        last = max(ended, key=pod_state.by_age)
        return f"{last.metadata.name}: {pod_state.how_it_ended(last)}"
    log_reading = ": ".join(filter(None, (seen.last_exit, seen.last_words)))
    return f"its pod is gone{f' ({log_reading})' if log_reading else ''}"


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


_BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"


def failure(seen: Observed, failed: JobCondition) -> tuple[str, str]:
    """A reason and a message: what the Job says, and what the pod that failed last says."""
    metadata = seen.job.metadata
    reason = failed.reason or Reason.FAILED
    message = failed.message or f"MPIJob {metadata.namespace}/{metadata.name} has failed"
    last = _last_failed(seen)
    if last is not None and reason == _BACKOFF_LIMIT_EXCEEDED:
        reason = "/".join(filter(None, (reason, last.status.reason)))
        message = ": ".join(filter(None, (message, last.status.message)))
    words = (pod_state.last_words(last) if last else "") or seen.last_words
    ended = (pod_state.last_exit(last) if last else "") or seen.last_exit
    message = f"{message} ({ended})" if ended else message
    if sentence := given_up(seen, words):
        return reason, shortened(f"{sentence} ({message})")
    return reason, shortened(f"{message}: {words}" if words else message)


def _last_failed(seen: Observed) -> Pod | None:
    failed = [pod for pod in seen.launcher_pods if pod.status.phase == "Failed"]
    return max(failed, key=pod_state.by_age, default=None)
