"""Why pods of a job do not run: reported when it has lasted for a while, role by role."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from mpi_operator.api import names

from . import pod_state
from .cached_types import Pod, moment
from .decision import Decision, earliest
from .observed import Observed
from .problems import Problem, ProblemReason

# Most problems of a pod in its first seconds pass without help.
_REPORTED_AFTER = timedelta(seconds=10)
_READY_WITHIN = timedelta(seconds=30)
_STARTED_WITHIN = timedelta(minutes=1)


def diagnose_pods(seen: Observed, now: datetime) -> Decision:
    """One problem for each role and reason, with the pod that stands for the others."""
    launcher = _diagnose("launcher pods", seen.launcher_pods, now)
    workers = _diagnose("workers", tuple(seen.workers.values()), now, seen.probed_container)
    missing = _diagnose_missing_pod(seen, now)
    return Decision(
        problems=(
            *map(_with_advice, launcher.problems),
            *workers.problems,
            *missing.problems,
        ),
        requeue_after=earliest(
            launcher.requeue_after, workers.requeue_after, missing.requeue_after
        ),
    )


def _diagnose(role: str, pods: Sequence[Pod], now: datetime, probed: str = "") -> Decision:
    affected: dict[str, list[tuple[str, str]]] = defaultdict(list)
    waits: list[timedelta] = []
    for pod in pods:
        reason, message = pod_state.diagnosis(pod, probed) or ("", "")
        if reason and (wait := _time_until_reported(reason, pod, now)) > timedelta(0):
            waits.append(wait)
        elif reason and not _is_just_terminating(pod):
            affected[reason].append((pod.metadata.name, message))
    return Decision(
        problems=tuple(
            Problem(reason, _sentence(role, found, len(pods))) for reason, found in affected.items()
        ),
        requeue_after=min(waits, default=None),
    )


def _is_just_terminating(pod: Pod) -> bool:
    """Whether a pod just ends: nothing is wrong with it, unless it is evicted or its node lost."""
    return pod_state.is_terminating(pod) and not (pod_state.eviction(pod) or pod_state.silence(pod))


def _time_until_reported(reason: str, pod: Pod, now: datetime) -> timedelta:
    """For how long a diagnosis of a pod is too fresh to be reported."""
    if reason == pod_state.SLOW_START:
        return _STARTED_WITHIN - pod_state.time_on_node(pod, now)
    if reason == pod_state.NOT_READY:
        return _READY_WITHIN - pod_state.running_time(pod, now)
    return _REPORTED_AFTER - pod_state.age(pod, now)


def _diagnose_missing_pod(seen: Observed, now: datetime) -> Decision:
    """A launcher that was started and has had no pod at all for a while."""
    launcher = seen.launcher
    if launcher is None or launcher.spec.suspend or launcher.is_done or seen.launcher_pods:
        return Decision()
    started, lost = moment(launcher.status.start_time), seen.state.launcher_pod_lost
    if started is None:
        return Decision()
    wait = max(started, lost or started) + _REPORTED_AFTER - now
    if wait > timedelta(0):
        return Decision(requeue_after=wait)
    # A quota, most likely. The Job controller creates this pod, and reports failures in events.
    name, namespace = names.launcher(seen.job), seen.job.metadata.namespace
    message = f"Job {name} has no pod: see kubectl describe job {name} -n {namespace}"
    return Decision(problems=(Problem(ProblemReason.LAUNCHER_POD_MISSING, message),))


def _with_advice(found: Problem) -> Problem:
    if found.reason != pod_state.UNREACHABLE:
        return found
    return Problem(
        found.reason,
        f"{found.message}. The pod may still be running, so Kubernetes does not start another "
        "launcher until the node is back or the pod is deleted",
    )


def _sentence(role: str, found: Iterable[tuple[str, str]], total: int) -> str:
    (name, message), *others = sorted(found)
    if not others:
        return f"{name}: {message}"
    return f"{len(others) + 1} of {total} {role} are affected, for example {name}: {message}"
