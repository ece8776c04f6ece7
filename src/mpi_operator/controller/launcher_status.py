"""How a launcher is doing: whether it has ended, why it failed, how often it was restarted.

The node reports the pod of a launcher completed as soon as its containers have ended with 0, sets
its phase to Succeeded a second later, and its Job is complete a second or two after that. A Job of
one pod can only complete after that pod has succeeded, so success is read from the pod. Only the
Job knows whether a failure is the last one. `lost_workers` judges what a success is worth when
workers were lost.

Kubernetes restarts a launcher that failed: with the restart policy `Never` in a new pod, which the
Job counts; with `OnFailure` in the same pod, which the node counts. `launcher_retry` restarts one
that exited with 0 in a new Job, which `retry_count` counts.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import PurePosixPath

import msgspec

from mpi_operator.api import annotations, conditions
from mpi_operator.api.conditions import Reason
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import Implementation, MPIJob, MPIJobStatus

from . import pod_state
from .cached_types import JobCondition, Pod, StoredConfigMap, moment, stored_note
from .events import JobEvent, warning
from .job_state import NO_FAILURE, JobState, LastFailure
from .launcher_log import unreachable_worker
from .observed import Observed
from .problems import LONGEST_MESSAGE, shortened
from .remote_shell_events import readable, remote_shell_event
from .retry_count import restart_limit, restarts_left

RESTARTED = "LauncherRestarted"  # the reason of the event

_BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
_POD_FAILURE_POLICY = "PodFailurePolicy"
_MPIRUN = ("mpirun", "mpiexec", "orterun", "prterun")
_NOT_RETRIED = (
    "Launcher failed and is not retried: with the restart policy ExitCode, exit codes below "
    f"{annotations.FIRST_RETRYABLE} are final"
)
# With these options Open MPI continues without lost workers.
_SURVIVING = ("--with-ft", "-with-ft", "--enable-recovery", "-enable-recovery")


# --- its end ----------------------------------------------------------------------------------


def has_ended(seen: Observed) -> bool:
    return has_succeeded(seen) or (seen.launcher is not None and seen.launcher.is_done)


def has_succeeded(seen: Observed) -> bool:
    launcher, pod = seen.launcher, seen.successful_launcher
    if launcher is None or launcher.is_done:
        return launcher is not None and launcher.condition("Complete") is not None
    # A pod that is being deleted may have ended with 0 because of that: the Job decides.
    return pod is not None and not pod_state.is_terminating(pod)


def success_time(seen: Observed) -> datetime | None:
    """When a launcher that succeeded ended, as far as it is known."""
    launcher, pod = seen.launcher, seen.successful_launcher
    complete = launcher.condition("Complete") if launcher else None
    if launcher is not None and complete is not None:
        return moment(launcher.status.completion_time) or moment(complete.last_transition_time)
    return moment(pod_state.end_time(pod)) if pod else None


def is_bare_mpirun(job: MPIJob) -> bool:
    """Whether the launcher's command is Open MPI's mpirun, which ends when it loses a worker.

    What a script or another program would do is not known.
    """
    container = main_container(job, job.spec.launcher)
    command: list[str] = container.get("command") or []
    arguments: list[str] = container.get("args") or []
    return (
        job.spec.mpi_implementation is Implementation.OPEN_MPI
        and bool(command)
        and PurePosixPath(command[0]).name in _MPIRUN
        and not any(word.startswith(_SURVIVING) for word in (*command, *arguments))
    )


# --- why it failed ----------------------------------------------------------------------------


_decode = msgspec.json.Decoder(LastFailure).decode
_encode = msgspec.json.Encoder().encode


def last_failure(seen: Observed) -> LastFailure:
    """What is known of the last failure: the Job controller deletes the pod that it gives up on."""
    return latest_failure(seen.state, seen)


def latest_failure(state: JobState, seen: Observed) -> LastFailure:
    """What the pods of the launcher show, else what is remembered, else what is stored."""
    if seen.is_suspended:
        return NO_FAILURE  # a job that is resumed starts afresh
    found = state.last_failure
    found = stored_failure(seen.config_map) if found == NO_FAILURE else found
    for pod in sorted(filter(_is_of_this_start(seen), seen.launcher_pods), key=pod_state.by_age):
        words = _within_limit(pod_state.last_words(pod))
        found = LastFailure(pod_state.last_exit(pod) or found.exit, words or found.words)
    return found


def _is_of_this_start(seen: Observed) -> Callable[[Pod], bool]:
    """Whether a pod is of the job since it was last resumed: suspending ends pods with a signal."""
    started = seen.launcher.status.start_time if seen.launcher else ""
    if not started:
        return lambda pod: not pod_state.is_terminating(pod)
    return lambda pod: pod.metadata.creation_timestamp >= started


def _within_limit(words: str) -> str:
    """Words to store. What the remote shell reports comes first where not all of them fit."""
    if len(words) <= LONGEST_MESSAGE:
        return words
    lines = sorted(words.splitlines(), key=lambda line: remote_shell_event(line) is None)
    return "\n".join(lines)[:LONGEST_MESSAGE]


def failure_annotation(failure: LastFailure) -> dict[str, str]:
    """The failure as the ConfigMap records it; no annotation where there was none."""
    if failure == NO_FAILURE:
        return {}
    return {annotations.LAUNCHER_LAST_FAILURE: _encode(failure).decode()}


def stored_failure(config_map: StoredConfigMap | None) -> LastFailure:
    """The failure that the ConfigMap records."""
    return stored_note(config_map, annotations.LAUNCHER_LAST_FAILURE, _decode, NO_FAILURE)


def failure(seen: Observed, failed: JobCondition) -> tuple[str, str]:
    """A reason and a message: what the Job says, and what the pod that failed last says."""
    metadata = seen.job.metadata
    reason = failed.reason or Reason.FAILED
    message = failed.message or f"MPIJob {metadata.namespace}/{metadata.name} has failed"
    last, known = _last_failed(seen), last_failure(seen)
    if last is not None and reason == _BACKOFF_LIMIT_EXCEEDED:
        reason = "/".join(filter(None, (reason, last.status.reason)))
        message = ": ".join(filter(None, (message, last.status.message)))
    words = (pod_state.last_words(last) if last else "") or known.words
    ended = (pod_state.last_exit(last) if last else "") or known.exit
    if ended:
        message = _NOT_RETRIED if reason == _POD_FAILURE_POLICY else message
        message = f"{message} ({ended})"
    if sentence := unreachable_worker(seen, words):
        return reason, shortened(f"{sentence} ({message})")
    return reason, shortened(f"{message}: {readable(words)}" if words else message)


def _last_failed(seen: Observed) -> Pod | None:
    failed = [pod for pod in seen.launcher_pods if pod.status.phase == "Failed"]
    return max(failed, key=pod_state.by_age, default=None)


# --- its restarts -----------------------------------------------------------------------------


def restarts(seen: Observed) -> int:
    """How often a launcher was restarted in its pod."""
    return sum(pod_state.restarts(pod) for pod in seen.launcher_pods)


def launcher_events(
    seen: Observed, status: MPIJobStatus, known_restarts: int
) -> Iterator[JobEvent]:
    """That the launcher was restarted, once the status is stored. Its end has its own event."""
    is_new = _failed(status) > _failed(seen.job.status) or restarts(seen) > known_restarts
    failed, again = _failed(status) - seen.retries.failed, _restarts_in_live_pods(seen)
    if not is_new or conditions.is_finished(status.conditions) or _is_failing(seen, failed, again):
        return
    tries = f"{seen.retries.used + failed + again} of {restart_limit(seen.job)}"
    yield warning(RESTARTED, f"Launcher is being restarted ({tries}): {_how_it_ended(seen)}")


def tries_used(seen: Observed) -> int:
    """How many tries were used up before the one of the launcher that succeeded."""
    failed = seen.launcher.status.failed if seen.launcher else 0
    pod = seen.successful_launcher
    return seen.retries.used + failed + (pod_state.restarts(pod) if pod else 0)


def is_restarting(seen: Observed) -> bool:
    """Whether a launcher has failed, will be tried again, and does not run at the moment."""
    if seen.launcher is None:
        return seen.retries.used > 0
    if not seen.launcher_is_under_way or launcher_runs(seen):
        return False
    failed, again = seen.launcher.status.failed, _restarts_in_live_pods(seen)
    return seen.retries.used + failed + again > 0 and not _is_failing(seen, failed, again)


def launcher_runs(seen: Observed) -> bool:
    """Whether a launcher runs, and not only its pod."""
    return any(
        pod_state.is_running(pod) and not pod_state.is_in_backoff(pod) for pod in seen.launcher_pods
    )


def _is_failing(seen: Observed, failed: int, again: int) -> bool:
    """Whether the Job will fail in a moment; it cuts the last restart in a pod short."""
    limit = restarts_left(seen.job, seen.retries)
    is_decided = seen.launcher is not None and seen.launcher.condition("FailureTarget") is not None
    return is_decided or failed > limit or again >= max(limit, 1)


def _restarts_in_live_pods(seen: Observed) -> int:
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
    known = last_failure(seen)
    details = ": ".join(filter(None, (known.exit, readable(known.words))))
    return f"{pod_state.GONE} ({details})" if details else pod_state.GONE
