"""Why pods of a job do not come to run: told when it has lasted for a while, role by role."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from mpi_operator.api import names

from . import pod_state
from .cached_types import Pod, moment
from .observed import Observed
from .problems import Problem, ProblemReason

# Much of what pods complain about in their first seconds passes by itself.
_PATIENCE = timedelta(seconds=10)
_READY_WITHIN = timedelta(seconds=30)
_NONE = timedelta(0)
_STARTED_WITHIN = timedelta(minutes=1)


def pod_problems(seen: Observed, now: datetime) -> Iterator[Problem]:
    """One problem for each reason, with the pod that stands for the others."""
    yield from map(_with_advice, _of_role("launcher pods", seen.launcher_pods, now))
    yield from _of_role("workers", tuple(seen.workers.values()), now, seen.probed_container)
    podless = _time_without_pod(seen, now)
    if podless is not None and podless >= _PATIENCE:
        yield _launcher_without_pod(seen)


def time_to_tell(seen: Observed, now: datetime) -> timedelta | None:
    """In how long a diagnosis that is too fresh now would be told."""
    pods = (*seen.launcher_pods, *seen.workers.values())
    found_problems = ((pod, pod_state.diagnosis(pod)) for pod in pods)
    waits = [_patience(found[0], pod, now) for pod, found in found_problems if found]
    podless = _time_without_pod(seen, now)
    if podless is not None:
        waits.append(_PATIENCE - podless)
    return min((wait for wait in waits if wait > _NONE), default=None)


def _patience(reason: str, pod: Pod, now: datetime) -> timedelta:
    """For how long a diagnosis of a pod is still too fresh to be told."""
    if reason == pod_state.SLOW_START:
        return _STARTED_WITHIN - pod_state.time_on_node(pod, now)
    if reason == pod_state.NOT_READY:
        return _READY_WITHIN - pod_state.running_time(pod, now)
    return _PATIENCE - pod_state.age(pod, now)


def _time_without_pod(seen: Observed, now: datetime) -> timedelta | None:
    """For how long a launcher that was let loose has had no pod at all; None where it is not so."""
    launcher = seen.launcher
    if launcher is None or launcher.spec.suspend or launcher.is_done or seen.launcher_pods:
        return None
    started, lost = moment(launcher.status.start_time), seen.launcher_pod_lost
    return now - max(started, lost or started) if started else None


def _launcher_without_pod(seen: Observed) -> Problem:
    # A quota, most likely. Kubernetes makes this pod, not we, and tells why not in events only.
    metadata = seen.job.metadata
    return Problem(
        ProblemReason.LAUNCHER_POD_MISSING,
        f"Kubernetes has not made a pod of Job {names.launcher(seen.job)} yet: see kubectl "
        f"describe job {names.launcher(seen.job)} -n {metadata.namespace}",
    )


def _with_advice(found: Problem) -> Problem:
    if found.reason != pod_state.UNREACHABLE:
        return found
    return Problem(
        found.reason,
        f"{found.message}. It may still run, so no other launcher is started until the node is "
        "back or the pod is deleted",
    )


def _of_role(role: str, pods: Sequence[Pod], now: datetime, probed: str = "") -> Iterator[Problem]:
    affected: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pod in pods:
        reason, message = pod_state.diagnosis(pod, probed) or ("", "")
        # What ends has nothing to complain about any more, unless it has to, or nobody ends it.
        is_leaving = pod_state.is_terminating(pod) and not (
            pod_state.eviction(pod) or pod_state.silence(pod)
        )
        if reason and not is_leaving and _patience(reason, pod, now) <= _NONE:
            affected[reason].append((pod.metadata.name, message))
    for reason, found_problems in affected.items():
        yield Problem(reason, _sentence(role, found_problems, len(pods)))


def _sentence(role: str, found_problems: Iterable[tuple[str, str]], total: int) -> str:
    (name, message), *others = sorted(found_problems)
    if not others:
        return f"{name}: {message}"
    return f"{len(others) + 1} of {total} {role}, such as {name}: {message}"
