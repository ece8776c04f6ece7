"""That a launcher failed and is started again, which Kubernetes does by itself.

How depends on its restart policy: with `Never` in a new pod, which the Job counts; with `OnFailure`
in the same one, which the node counts.
"""

from collections.abc import Iterator

from mpi_operator.api import conditions
from mpi_operator.api.types import MPIJob, MPIJobStatus

from . import pod_state
from .news import News, warning
from .observed import Observed

RESTARTED = "LauncherRestarted"  # the reason of the event

_USUAL_LIMIT = 6  # that of Jobs


def most_tries(job: MPIJob) -> int:
    """How often a launcher may be started again."""
    limit = job.spec.run_policy.backoff_limit
    return _USUAL_LIMIT if limit is None else limit


def restarts(seen: Observed) -> int:
    """How often a launcher was started again in its pod."""
    return sum(pod_state.restarts(pod) for pod in seen.launcher_pods)


def launcher_news(seen: Observed, status: MPIJobStatus, known_restarts: int) -> Iterator[News]:
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
    heard = ": ".join(filter(None, (seen.last_exit, seen.last_words)))
    return f"its pod is gone{f' ({heard})' if heard else ''}"
