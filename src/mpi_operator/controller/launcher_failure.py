"""Why a launcher failed, as far as Kubernetes still knows it."""

from mpi_operator.api.conditions import Reason

from . import pod_state
from .cached_types import JobCondition, Pod
from .given_up import given_up
from .news import shortened
from .observed import Observed

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
