"""Tries a launcher again that exited with 0 although it lost a worker.

For Kubernetes such a launcher has succeeded, and its Job is complete. So the Job is retired:
another one replaces it, with the same name, which clients look for:

    count the try in the ConfigMap ──► the job takes over the pods ──► delete the Job ──►
    all workers run again ──► create the next Job

The pods stay, because they have the log of that try; from then on the MPIJob itself owns them. Each
step follows from what the steps before it have stored, so the operator may stop between any two of
them. docs/decisions/0008-retrying-a-launcher.md has the reasons.
"""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from mpi_operator.api.types import MPIJob
from mpi_operator.build.ownership import owner_reference
from mpi_operator.kube.resources import JOBS, PODS

from . import pod_state
from .actions import Action, delete, patch
from .cached_types import moment
from .deadline import active_deadline
from .decision import Decision, ahead
from .events import JobEvent, warning
from .launcher_status import RESTARTED, has_succeeded, tries_used
from .lost_workers import lost_workers
from .observed import Observed
from .replacement import stored_counts
from .retry_count import LauncherRetries, restart_limit, restarts_left

# Times in the cluster are whole seconds. A try that starts in a later second than the last loss of
# a worker certainly did not lose it.
_ANOTHER_SECOND = timedelta(seconds=1)


def with_retry(seen: Observed, now: datetime) -> Observed:
    """The job as it is once its launcher is retired, if it is to be tried again."""
    if not has_succeeded(seen):
        return seen
    judged = lost_workers(seen, now)
    why = next((each.message for each in judged.problems if each.is_retried), "")
    return seen.retiring(_counted(seen), why) if why else seen


def _counted(seen: Observed) -> LauncherRetries:
    """The count that includes the current launcher."""
    launcher, known = seen.launcher, seen.retries
    if launcher is None:
        return known
    return LauncherRetries(
        used=tries_used(seen) + 1,
        failed=known.failed + max(launcher.status.failed, 0),
        uid=launcher.metadata.uid,
        since=known.since or moment(launcher.status.start_time) or seen.job.status.start_time,
    )


def retry_events(seen: Observed) -> tuple[JobEvent, ...]:
    """That the launcher is tried again, with the write that counts it."""
    if seen.retired is None or not seen.retired.why:
        return ()
    tries = f"{seen.retries.used} of {restart_limit(seen.job)}"
    what = f"Launcher will be restarted ({tries}) once all workers are running"
    message = f"{what}. Cause: {seen.retired.why}"
    return (warning(RESTARTED, message),)


def keeping_actions(seen: Observed) -> Iterator[Action]:
    """Let the job own the pods of a retired launcher, or they would be deleted with it."""
    for pod in seen.retired.pods if seen.retired else ():
        owners = {"ownerReferences": [owner_reference(seen.job)]}
        yield patch(PODS, pod, {"metadata": owners})


def retiring_actions(seen: Observed) -> Iterator[Action]:
    """Delete the Job of a retired launcher."""
    if seen.retired is not None and not seen.retired.job.metadata.deletion_timestamp:
        yield delete(JOBS, seen.retired.job)


def check_retry(seen: Observed, now: datetime) -> Decision:
    """Fail a job that has been active for too long when no launcher exists.

    Otherwise, wait until the second of the last loss is over.
    """
    if seen.launcher is not None or not seen.retries.used:
        return Decision()
    deadline = active_deadline(seen.job, seen.retries.since or now, now)
    wait = _time_to_next_second(seen, now)
    return deadline if wait is None or deadline.problems else Decision(requeue_after=wait)


def may_try_again(seen: Observed, now: datetime) -> bool:
    """Whether every worker is back, so that the next try can begin."""
    are_back = seen.are_workers_running and not any(map(pod_state.silence, seen.workers.values()))
    return are_back and _time_to_next_second(seen, now) is None


def _time_to_next_second(seen: Observed, now: datetime) -> timedelta | None:
    ages = (now - count.at for count in stored_counts(seen.config_map).values())
    return ahead(max((_ANOTHER_SECOND - age for age in ages if age >= timedelta(0)), default=None))


def with_limits_left(seen: Observed, now: datetime) -> MPIJob:
    """The job with what is left of its limits for the next launcher."""
    job, policy, retries = seen.job, seen.job.spec.run_policy, seen.retries
    if not retries.used:
        return job
    left = replace(
        policy,
        backoff_limit=restarts_left(job, retries),
        active_deadline_seconds=_seconds_left(policy.active_deadline_seconds, retries.since, now),
    )
    return replace(job, spec=replace(job.spec, run_policy=left))


def _seconds_left(deadline: int | None, since: datetime | None, now: datetime) -> int | None:
    if deadline is None or since is None:
        return deadline
    return max(math.ceil(deadline - (now - since).total_seconds()), 1)
