"""Questions about one pod."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from mpi_operator.kube.objects import ContainerStatus, Terminated

from .cached_types import Pod, moment
from .remote_shell_events import readable

_LAST_LINES = 10
_BRIEF = 30
# Reasons to wait that a person has to do something about, and our names for them. Kubernetes has
# several for the same thing and switches between them: only a name that stays is no change.
_WAITING = {
    "ErrImagePull": "ImagePullFailed",
    "ImagePullBackOff": "ImagePullFailed",
    "ErrImageNeverPull": "ImagePullFailed",
    "InvalidImageName": "ImagePullFailed",
    "CreateContainerConfigError": "ContainerConfigError",
    "CreateContainerError": "ContainerConfigError",
    "RunContainerError": "ContainerConfigError",
    "CrashLoopBackOff": "CrashLoop",
}
GONE = "the pod is gone"  # all that is known about it
UNREACHABLE = "NodeUnreachable"
SLOW_START, NOT_READY = (
    "SlowStart",
    "NotReady",
)  # reported later than other reasons
_STARTING = ("ContainerCreating", "PodInitializing")
_ENDED_BY_NODE = "TerminationByKubelet"


def is_terminating(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp)


def is_running(pod: Pod) -> bool:
    return pod.status.phase == "Running" and not is_terminating(pod)


def is_failed(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and not is_terminating(pod)


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def has_completed(pod: Pod) -> bool:
    """Whether a pod has succeeded or is about to.

    A node knows that when the last container has ended well, calls the pod completed, and changes
    its phase a second later.
    """
    return pod.status.phase == "Succeeded" or _is_about_to_end(pod, "PodCompleted")


def has_failed_or_is_about_to(pod: Pod) -> bool:
    """Whether a pod has failed or is about to."""
    return pod.status.phase == "Failed" or _is_about_to_end(pod, "PodFailed")


def _is_about_to_end(pod: Pod, verdict: str) -> bool:
    return pod.status.phase == "Running" and any(
        each.type == "Ready" and each.reason == verdict for each in pod.status.conditions
    )


def is_ready(pod: Pod) -> bool:
    return is_running(pod) and _condition(pod, "Ready") == "True"


def is_evicted(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and pod.status.reason == "Evicted"


def is_about_to_be_deleted(pod: Pod) -> bool:
    """Whether Kubernetes has failed a pod in order to delete it; a node only fails it."""
    return any(
        each.type == "DisruptionTarget" and each.status == "True" and each.reason != _ENDED_BY_NODE
        for each in pod.status.conditions
    )


def exit_code(pod: Pod, container: str) -> int:
    """The exit code of a container that has ended; 0 if that is not known."""
    ended = (each.state.terminated for each in _containers(pod) if each.name == container)
    return next((end.exit_code for end in ended if end), 0)


def is_in_backoff(pod: Pod) -> bool:
    """Whether a container waits to be started again, or is about to."""
    restarted = (each.state for each in pod.status.container_statuses if each.restart_count)
    return any(
        state.waiting is not None or (state.terminated is not None and state.terminated.exit_code)
        for state in restarted
    )


def age(pod: Pod, now: datetime) -> timedelta:
    created = moment(pod.metadata.creation_timestamp)
    return now - created if created else timedelta(0)


def overdue(pod: Pod, now: datetime) -> timedelta:
    """How long a pod has been overdue: its deletionTimestamp includes its grace period."""
    due = moment(pod.metadata.deletion_timestamp)
    return now - due if due else timedelta(0)


def is_being_started(pod: Pod) -> bool:
    """Whether a node has the pod, and has neither started it nor reported why not."""
    waiting = (status.state.waiting for status in pod.status.container_statuses)
    return pod.status.phase == "Pending" and any(
        state is not None and state.reason in _STARTING for state in waiting
    )


def diagnosis(pod: Pod, probed: str = "") -> tuple[str, str] | None:
    """Why a pod does not run: a reason and a sentence.

    `probed` is the container that counts as ready when its sshd listens.
    """
    if is_ready(pod):
        return None  # most pods are: return early
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            return "Unschedulable", condition.message
    for status in _containers(pod):
        waiting = status.state.waiting
        if waiting and waiting.reason in _WAITING:
            return _WAITING[waiting.reason], _about_waiting(status)
    if sentence := silence(pod):
        return UNREACHABLE, sentence
    if sentence := eviction(pod):
        return "Evicted", sentence
    if is_being_started(pod):
        return SLOW_START, _about_slow_start(pod)
    if _is_unready(pod):
        return NOT_READY, _about_unreadiness(pod, probed)
    return None


def running_time(pod: Pod, now: datetime) -> timedelta:
    """How long all containers of a pod have run."""
    states = (status.state.running for status in pod.status.container_statuses)
    starts = [started for state in states if state and (started := moment(state.started_at))]
    return now - max(starts) if starts else age(pod, now)


def time_on_node(pod: Pod, now: datetime) -> timedelta:
    """How long the pod has been on its node."""
    taken = moment(pod.status.start_time)
    return now - taken if taken else age(pod, now)


def silence(pod: Pod) -> str:
    """A message if the node of a pod that ran has stopped reporting, else empty."""
    return f"node {pod.spec.node_name} has stopped reporting" if _is_unreachable(pod) else ""


def eviction(pod: Pod) -> str:
    """A message if Kubernetes evicts a pod: from which node, and why; else empty."""
    for condition in pod.status.conditions if is_terminating(pod) else ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            why = condition.message or condition.reason
            return f"evicted from {pod.spec.node_name or 'its node'}: {why}"
    return ""


def _is_unreachable(pod: Pod) -> bool:
    """Whether the cluster has given up on the node of a pod that ran.

    It then calls the pod not ready and changes nothing else; a node always adds its reason.
    """
    return pod.status.phase == "Running" and any(
        each.type == "Ready" and each.status == "False" and not each.reason
        for each in pod.status.conditions
    )


def still_runs(pod: Pod) -> bool:
    """Whether a pod that is being deleted still runs.

    Only known for pods with one container: a node reports several only when all have ended.
    """
    is_alone = sum(each.state.terminated is None for each in _containers(pod)) == 1
    return is_terminating(pod) and is_alone and _runs_as_a_whole(pod) and not _is_unreachable(pod)


def _is_unready(pod: Pod) -> bool:
    """Whether all containers of a pod run and its node does not call it ready."""
    return is_running(pod) and _runs_as_a_whole(pod) and _condition(pod, "Ready") == "False"


def _runs_as_a_whole(pod: Pod) -> bool:
    states = [status.state.running for status in pod.status.container_statuses]
    return pod.status.phase == "Running" and bool(states) and all(states)


def how_it_ended(pod: Pod) -> str:
    """Why a pod failed: what Kubernetes says, the exit code, and the last lines it printed."""
    facts = [fact for fact in (pod.status.reason, pod.status.message) if fact]
    for name, ended in _terminations(pod):
        facts.append(_about_termination(name, ended))
    return ": ".join(facts) or "cause unknown"


def how_it_was_lost(pod: Pod | None) -> str:
    """What became of a lost pod: it failed, is deleted, or is gone."""
    if pod is None:
        return GONE
    if is_terminating(pod):
        return eviction(pod) or "the pod was deleted"
    return how_it_ended(pod)


def briefly(pod: Pod) -> str:
    """Why a pod failed, in a few words: `Evicted`, `exit code 137, OOMKilled`."""
    return (pod.status.reason or last_exit(pod))[:_BRIEF]


def success_message(pod: Pod) -> str:
    """The termination messages of containers that ended with 0."""
    ended = (status.state.terminated for status in pod.status.container_statuses)
    return "\n".join(end.message for end in ended if end and not (end.exit_code or end.signal))


def ends(pod: Pod) -> int:
    """How often the containers of a pod have ended, restarts included."""
    return max(
        (
            status.restart_count + (status.state.terminated is not None)
            for status in pod.status.container_statuses
        ),
        default=0,
    )


def end_time(pod: Pod) -> str:
    """When the last container of a pod ended; empty if none has."""
    ended = (status.state.terminated for status in pod.status.container_statuses)
    return max((end.finished_at or "" for end in ended if end), default="")


def by_age(pod: Pod) -> str:
    """For sorting, the oldest first."""
    return pod.metadata.creation_timestamp


def restarts(pod: Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses)


def last_restart(pod: Pod) -> datetime | None:
    """When the container ended that was started again last."""
    ended = (status.last_state.terminated for status in pod.status.container_statuses)
    times = (moment(end.finished_at) for end in ended if end and end.finished_at)
    return max((time for time in times if time), default=None)


def last_words(pod: Pod) -> str:
    """The termination message of the container that failed last."""
    words = [ended.message.strip() for _, ended in _terminations(pod) if ended.message.strip()]
    return _last_lines(words[-1]) if words else ""


def last_exit(pod: Pod) -> str:
    """How the container ended that failed last: `exit code 137, OOMKilled`."""
    exits = [", ".join(filter(None, (_code(e), _cause(e)))) for _, e in _terminations(pod)]
    return exits[-1] if exits else ""


def _about_waiting(status: ContainerStatus) -> str:
    # Back-off messages contain the name and uid of the pod; only the cause is worth reporting.
    last = status.last_state.terminated
    if last is not None:
        return _about_termination(status.name, last)
    waiting = status.state.waiting
    return f"container {status.name}: {waiting.message or waiting.reason}" if waiting else ""


def _about_termination(name: str, ended: Terminated) -> str:
    reason = f" ({_cause(ended)})" if _cause(ended) else ""
    lines = readable(_last_lines(ended.message))
    said = f": {lines}" if lines else ""
    return f"container {name} ended with {_code(ended)}{reason}{said}"


def _about_slow_start(pod: Pod) -> str:
    metadata = pod.metadata
    return (
        f"node {pod.spec.node_name} has not started the pod. A volume may be missing, the image "
        "may be large, or the node may be lost: see "
        f"kubectl describe pod {metadata.name} -n {metadata.namespace}"
    )


def _about_unreadiness(pod: Pod, probed: str) -> str:
    if any(each.name == probed and not each.ready for each in pod.status.container_statuses):
        metadata = pod.metadata
        return (
            f"running on {pod.spec.node_name}, but sshd is not listening yet, or the node has "
            f"stopped reporting: see kubectl logs {metadata.name} -n {metadata.namespace}"
        )
    return (
        f"running on {pod.spec.node_name} but not ready: a readiness probe fails, or the node has "
        "stopped reporting"
    )


def _code(ended: Terminated) -> str:
    return f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"


def _cause(ended: Terminated) -> str:
    return "" if ended.reason == "Error" else ended.reason


def _terminations(pod: Pod) -> Iterator[tuple[str, Terminated]]:
    for status in _containers(pod):
        ended = status.state.terminated or status.last_state.terminated
        if ended is not None and (ended.exit_code or ended.signal):
            yield status.name, ended


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LAST_LINES:])


def _condition(pod: Pod, kind: str) -> str:
    found = (each.status for each in pod.status.conditions if each.type == kind)
    return next(found, "")
