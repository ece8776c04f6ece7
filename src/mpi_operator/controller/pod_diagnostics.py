"""Why pods of a job do not come to run: told when it has lasted for a while, role by role."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from mpi_operator.api import names

from . import pod_state, problems
from .cached_types import Pod, moment
from .observed import Observed
from .problems import Trouble

# Much of what pods complain about in their first seconds passes by itself.
_PATIENCE = timedelta(seconds=10)
_READY_WITHIN = timedelta(seconds=30)
_NONE = timedelta(0)
_STARTED_WITHIN = timedelta(minutes=1)


def pod_troubles(seen: Observed, now: datetime) -> Iterator[Trouble]:
    """One trouble for each reason, with the pod that stands for the others."""
    yield from map(_with_advice, _of_role("launcher pods", seen.launcher_pods, now))
    yield from _of_role("workers", tuple(seen.workers.values()), now, seen.probed_container)
    podless = _time_without_pod(seen, now)
    if podless is not None and podless >= _PATIENCE:
        yield _launcher_without_pod(seen)


def time_to_tell(seen: Observed, now: datetime) -> timedelta | None:
    """In how long a complaint that is too fresh now would be told."""
    everybody = (*seen.launcher_pods, *seen.workers.values())
    complaints = ((pod, pod_state.complaint(pod)) for pod in everybody)
    waits = [_patience(found[0], pod, now) for pod, found in complaints if found]
    podless = _time_without_pod(seen, now)
    if podless is not None:
        waits.append(_PATIENCE - podless)
    return min((wait for wait in waits if wait > _NONE), default=None)


def _patience(reason: str, pod: Pod, now: datetime) -> timedelta:
    """For how long a complaint of a pod is still too fresh to be told."""
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


def _launcher_without_pod(seen: Observed) -> Trouble:
    # A quota, most likely. Kubernetes makes this pod, not we, and tells why not in events only.
    metadata = seen.job.metadata
    return Trouble(
        problems.Reason.LAUNCHER_POD_MISSING,
        f"Kubernetes has not made a pod of Job {names.launcher(seen.job)} yet: see kubectl "
        f"describe job {names.launcher(seen.job)} -n {metadata.namespace}",
    )


def _with_advice(found: Trouble) -> Trouble:
    if found.reason != pod_state.UNREACHABLE:
        return found
    return Trouble(
        found.reason,
        f"{found.message}. It may still run, so no other launcher is started until the node is "
        "back or the pod is deleted",
    )


def _of_role(
    role: str, everybody: Sequence[Pod], now: datetime, probed: str = ""
) -> Iterator[Trouble]:
    affected: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pod in everybody:
        reason, message = pod_state.complaint(pod, probed) or ("", "")
        # What ends has nothing to complain about any more, unless it has to, or nobody ends it.
        is_leaving = pod_state.is_terminating(pod) and not (
            pod_state.eviction(pod) or pod_state.silence(pod)
        )
        if reason and not is_leaving and _patience(reason, pod, now) <= _NONE:
            affected[reason].append((pod.metadata.name, message))
    for reason, complaints in affected.items():
        yield Trouble(reason, _sentence(role, complaints, len(everybody)))


def _sentence(role: str, complaints: Iterable[tuple[str, str]], total: int) -> str:
    (name, message), *others = sorted(complaints)
    if not others:
        return f"{name}: {message}"
    return f"{len(others) + 1} of {total} {role}, such as {name}: {message}"
