"""Workers that were lost while a launcher ran that then ended with 0.

Most launchers exit with an error when they lose a worker. Two kinds do not: elastic launchers,
which continue with the remaining workers, and the mpirun of Open MPI 5.0, which gives up and exits
with 0. The remote shell distinguishes them: it reports a broken session, and anything started after
it. If a worker was lost, a session in it broke, and nothing was started afterwards, the job has
failed. But Open MPI may exit before the report is written. So a launcher that is just its mpirun
has also failed if a worker was lost in its last seconds: that is why it exited. If all that is
known is that a worker was lost, the job has succeeded and its message says so, unless its
annotation says that it needs every worker.

A launcher that has failed that way is tried again (`launcher_retry`) for as long as it has tries
left. Then its job has failed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from mpi_operator.api import annotations, conditions, names
from mpi_operator.api.types import ConditionType, Implementation, MPIJob

from . import pod_state
from .cached_types import Pod, moment
from .decision import Decision, ahead
from .failed_worker import failed_worker
from .launcher_log import lost_contacts
from .launcher_status import is_bare_mpirun, success_time, tries_used
from .observed import Observed
from .problems import Problem, ProblemReason
from .remote_shell_events import RemoteShellEvent
from .replacement import Count, replacements, stored_counts
from .retry_count import restart_limit

# A node reports a container that ended within a second, and a little later where it is busy. The
# launcher ended after the worker that it lost, but its node may be the faster one.
_TIME_TO_REPORT = timedelta(seconds=1.5)
# A worker that is being deleted may take this long. If it still runs then, it was not lost.
_TIME_TO_LEAVE = timedelta(seconds=5)
# A cluster reports a silent node after a grace period, which is 50 seconds by default.
_GRACE_PERIOD = timedelta(seconds=75)
# Open MPI ends within two seconds of losing a worker, and Kubernetes reports that a little later.
_LAST_SECONDS = timedelta(seconds=15)
# A Job is complete a second or two after its pod, and that change requeues the MPIJob.
_TIME_TO_COMPLETE = timedelta(seconds=10)

_WORK_LOST = "Work on that worker probably did not complete"
_SURVIVAL = (
    ". If the program tolerates lost workers, set the annotation "
    f"{annotations.LOST_WORKERS}: {annotations.SURVIVE} on the job"
)


def lost_workers(seen: Observed, now: datetime) -> Decision:
    """Judge a launcher that exited with 0, and report the workers that it lost.

    While `requeue_after` is set it is too early to judge.
    """
    wait = _time_to_report(seen, now) or _time_to_leave(seen, now) or _time_to_prove(seen, now)
    if wait is not None:
        return Decision(requeue_after=wait)
    problem = _verdict(seen)
    if problem is None or not problem.is_fatal:
        return Decision(problems=(problem,) if problem else ())
    if not _may_retry(seen, now):
        return Decision(problems=(_final(seen, problem),))
    if seen.launcher is not None and not seen.launcher.is_done:
        return Decision(requeue_after=_TIME_TO_COMPLETE)  # until then its Job tracks the pods
    return Decision(problems=(replace(problem, is_fatal=False, is_retried=True),))


def _may_retry(seen: Observed, now: datetime) -> bool:
    """Whether the launcher has tries left, and can have its workers back."""
    if seen.bare_launcher is not None or tries_used(seen) >= restart_limit(seen.job):
        return False
    return not (failed_worker(seen).problems or replacements(seen, now).given_up)


def _final(seen: Observed, problem: Problem) -> Problem:
    """The problem, with why the launcher is not tried again, if it was before."""
    used, limit = tries_used(seen), restart_limit(seen.job)
    if not used or used < limit:
        return problem
    message = f"{problem.message}. Launcher reached its restart limit ({limit})"
    return replace(problem, message=message)


def _verdict(seen: Observed) -> Problem | None:
    losses, contacts = _losses(seen), _contacts(seen)
    policy = annotations.lost_workers(seen.job.metadata.annotations)
    proven = _proven(contacts, losses)
    if proven and policy != annotations.SURVIVE:
        contact = proven[0]
        return _problem(
            f"{contact.sentence} ({losses[contact.worker]}). It started nothing after that and "
            f"exited with code 0, as Open MPI 5.0 does. {_WORK_LOST}{_SURVIVAL}",
            is_fatal=True,
        )
    if losses:
        gave_up = policy != annotations.SURVIVE and _has_given_up(seen)
        message = _loss_message(seen, losses) + (_SURVIVAL if gave_up else "")
        return _problem(message, is_fatal=gave_up or policy == annotations.FAIL)
    return _problem(contacts[0].sentence) if contacts else None


def _time_to_report(seen: Observed, now: datetime) -> timedelta | None:
    """Until the nodes have reported what they know; a Job takes longer than that to complete."""
    is_judged = seen.launcher is not None and seen.launcher.is_done
    if is_judged or not _may_have_lost_a_worker(seen.job):
        return None
    return ahead((seen.state.launcher_done_since or now) + _TIME_TO_REPORT - now)


def _time_to_leave(seen: Observed, now: datetime) -> timedelta | None:
    """Until it is certain that workers which are being deleted have outlived the launcher."""
    ended = seen.state.launcher_done_since or success_time(seen)
    if ended is None or not _may_have_lost_a_worker(seen.job):
        return None
    is_any_leaving = any(_has_outlived(seen, index) for index in seen.workers)
    return ahead(ended + _TIME_TO_LEAVE - now) if is_any_leaving else None


def _may_have_lost_a_worker(job: MPIJob) -> bool:
    """Whether it may have ended with 0 because of that, or must not have lost any."""
    policy = annotations.lost_workers(job.metadata.annotations)
    is_open_mpi = job.spec.mpi_implementation is Implementation.OPEN_MPI
    return is_open_mpi or policy == annotations.FAIL


def _time_to_prove(seen: Observed, now: datetime) -> timedelta | None:
    """Until the cluster has given up on the node of a worker that the launcher says it lost."""
    completed = success_time(seen)
    contacts = _contacts(seen)
    if completed is None or not contacts or _proven(contacts, _losses(seen)):
        return None
    return ahead(completed + _GRACE_PERIOD - now)


def _contacts(seen: Observed) -> tuple[RemoteShellEvent, ...]:
    launcher = seen.successful_launcher
    return lost_contacts(pod_state.success_message(launcher)) if launcher else ()


def _proven(
    contacts: Iterable[RemoteShellEvent], losses: Mapping[str, str]
) -> list[RemoteShellEvent]:
    return [contact for contact in contacts if contact.worker in losses]


def _losses(seen: Observed) -> Mapping[str, str]:
    """The workers that were lost while the launcher ran, and what became of them."""
    began = _began(seen)
    counted = _counted_since(seen, began) if began is not None else _reported_losses(seen)
    return {**counted, **_missing(seen)}


def _reported_losses(seen: Observed) -> Mapping[str, str]:
    """Those that a restarted launcher reports as lost, in its last attempt."""
    launcher = seen.successful_launcher
    created = moment(launcher.metadata.creation_timestamp) if launcher else None
    counted = _counted_since(seen, created) if created is not None else {}
    reported = {contact.worker for contact in _contacts(seen)}
    return {name: how for name, how in counted.items() if name in reported}


def _has_given_up(seen: Observed) -> bool:
    """Whether the launcher can only have ended because it lost a worker."""
    if not is_bare_mpirun(seen.job):
        return False
    ended = success_time(seen)
    return bool(_missing(seen) or (ended and _has_just_lost_one(seen, ended - _LAST_SECONDS)))


def _has_just_lost_one(seen: Observed, since: datetime) -> bool:
    """Whether a worker was counted or replaced: one that is deleted is counted before it ends."""
    counted = set(stored_counts(seen.config_map))
    made = (
        seen.workers[index].metadata.creation_timestamp for index in counted & set(seen.workers)
    )
    return bool(_counted_since(seen, since)) or any(
        time >= since for each in made if (time := moment(each))
    )


def _counted_since(seen: Observed, time: datetime) -> Mapping[str, str]:
    """The workers that have been replaced, or will be, and how they ended."""
    return {
        names.worker(seen.job, index): count.how or pod_state.GONE
        for index, count in sorted(stored_counts(seen.config_map).items())
        if (lost := _lost_at(seen, index, count)) and lost >= time
    }


def _lost_at(seen: Observed, index: int, count: Count) -> datetime | None:
    """When a worker was lost last. The pod that was counted may have outlived the launcher."""
    has_outlived = _has_outlived(seen, index) and _is_about(count, seen.workers[index])
    return count.before if has_outlived else count.at


def _is_about(count: Count, pod: Pod) -> bool:
    """Whether it is this pod that was counted; old counts have no uid."""
    created = moment(pod.metadata.creation_timestamp)
    is_old_enough = created is not None and created <= count.at
    return count.uid == pod.metadata.uid or (not count.uid and is_old_enough)


def _missing(seen: Observed) -> Mapping[str, str]:
    """The workers with which something is wrong now."""
    known = _known(seen)
    return {
        names.worker(seen.job, index): how
        for index in sorted(seen.worker_indexes)
        if not _has_outlived(seen, index)
        and (how := _state(seen.workers.get(index), is_known=index in known))
    }


def _state(pod: Pod | None, *, is_known: bool) -> str:
    """What is wrong with a worker at the end of its job; empty where nothing is."""
    if pod is None and not is_known:
        return ""
    if pod is None or pod_state.has_failed_or_is_about_to(pod) or pod_state.is_terminating(pod):
        return pod_state.how_it_was_lost(pod)
    return pod_state.silence(pod)


def _known(seen: Observed) -> set[int]:
    """The workers that ran while the launcher did."""
    began = _began(seen)
    counts = stored_counts(seen.config_map)
    return {
        *seen.listed_hosts,
        *(index for index, count in counts.items() if began is None or count.at >= began),
    }


def _has_outlived(seen: Observed, index: int) -> bool:
    """Whether a worker that is being deleted runs, and the launcher does not say it lost it."""
    pod = seen.workers.get(index)
    if pod is None or not pod_state.still_runs(pod):
        return False
    return pod.metadata.name not in {contact.worker for contact in _contacts(seen)}


def _began(seen: Observed) -> datetime | None:
    """Since when a lost worker matters: before the job ran, the launcher waited for workers.

    None where a launcher was restarted in its pod: a worker that was lost before may be counted
    after that.
    """
    launcher = seen.successful_launcher
    if launcher is None or pod_state.ends(launcher) > 1:
        return None
    since = conditions.true_since(seen.job.status.conditions, ConditionType.RUNNING)
    created = moment(launcher.metadata.creation_timestamp)
    return max((time for time in (created, since) if time), default=None)


def _loss_message(seen: Observed, losses: Mapping[str, str]) -> str:
    name, how = next(iter(losses.items()))
    total = seen.job.spec.worker_count
    count = "its only worker" if total == 1 else f"{len(losses)} of {total} workers"
    if len(losses) > 1:
        return (
            f"Launcher lost {count} while it ran, including {name} ({how}), and exited with "
            "code 0. Work on those workers probably did not complete"
        )
    return (
        f"Launcher lost {name} ({how}), {count}, while it ran, and exited with code 0. {_WORK_LOST}"
    )


def _problem(message: str, *, is_fatal: bool = False) -> Problem:
    return Problem(ProblemReason.WORKER_LOST, message, is_fatal=is_fatal)
