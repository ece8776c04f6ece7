"""What is said about a pod: pure, from what its containers did.

A container is told by a `Container`: where it is now, and how it ended the last time. From all of
them follow the phase and the conditions, by the kubelet's rules.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.times import timestamp


class Waiting(msgspec.Struct, frozen=True):
    """Not started, or between two starts."""

    reason: str = "ContainerCreating"
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    since: datetime


class Ended(msgspec.Struct, frozen=True):
    """How it ended: an exit code, or the signal that ended it."""

    code: int
    since: datetime | None
    at: datetime
    reason: str = ""
    message: str = ""

    @property
    def exit_code(self) -> int:
        return self.code if self.code >= 0 else 128 - self.code

    @property
    def signal(self) -> int:
        return max(-self.code, 0)


State = Waiting | Running | Ended


class Container(msgspec.Struct, frozen=True):
    """One container, as far as anybody outside can know."""

    name: str
    image: str
    is_init: bool = False
    is_sidecar: bool = False
    state: State = msgspec.field(default_factory=Waiting)
    last: Ended | None = None
    restarts: int = 0
    is_started: bool = False
    is_ready: bool = False

    @property
    def is_running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def has_succeeded(self) -> bool:
        return isinstance(self.state, Ended) and self.state.code == 0

    def changed(
        self,
        state: State,
        *,
        is_started: bool = False,
        is_ready: bool = False,
        restarts: int | None = None,
    ) -> "Container":
        """The same container in another state."""
        return msgspec.structs.replace(
            self,
            state=state,
            last=self.state if isinstance(self.state, Ended) else self.last,
            is_started=is_started,
            is_ready=is_ready,
            restarts=self.restarts if restarts is None else restarts,
        )


class Verdict(msgspec.Struct, frozen=True):
    """What was decided about a whole pod, whatever its containers did."""

    phase: str
    reason: str = ""
    message: str = ""


class Facts(msgspec.Struct, frozen=True):
    """What is the same for a pod's whole life on a machine."""

    restart_policy: str
    started: datetime
    pod_ip: str
    host_ip: str


def unschedulable(message: str, now: datetime, previous: Manifest) -> Manifest:
    """The status of a pod that does not fit."""
    scheduled = ("PodScheduled", "False", "Unschedulable", message)
    return {"phase": "Pending", "conditions": _conditions([scheduled], now, previous)}


def refused(message: str) -> Manifest:
    """The status of a pod that this machine cannot make sense of; Kubernetes has the word."""
    return {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}


def status_of(
    containers: Sequence[Container],
    facts: Facts,
    now: datetime,
    previous: Manifest,
    verdict: Verdict | None = None,
) -> Manifest:
    """The whole status of a pod that this machine has taken."""
    phase = verdict.phase if verdict else phase_of(containers, facts.restart_policy)
    status: Manifest = {
        "phase": phase,
        "conditions": _conditions(_told(containers, phase), now, previous),
        "startTime": timestamp(facts.started),
        "podIP": facts.pod_ip,
        "podIPs": [{"ip": facts.pod_ip}],
        "hostIP": facts.host_ip,
        "qosClass": previous.get("qosClass") or "BestEffort",
        "containerStatuses": [_container(each) for each in containers if not each.is_init],
    }
    if any(each.is_init for each in containers):
        status["initContainerStatuses"] = [_container(each) for each in containers if each.is_init]
    if verdict and verdict.reason:
        status |= {"reason": verdict.reason, "message": verdict.message}
    return status


def phase_of(containers: Sequence[Container], restart_policy: str) -> str:
    """The phase by the kubelet's rules."""
    main = [each for each in containers if not each.is_init]
    if any(_is_over(each, restart_policy) and not _ended_well(each) for each in _first(containers)):
        return "Failed"
    if any(isinstance(each.state, Waiting) and each.last is None for each in main):
        return "Pending"
    if not all(_is_over(each, restart_policy) for each in main):
        return "Running"
    return "Succeeded" if all(each.has_succeeded for each in main) else "Failed"


def is_initialized(containers: Iterable[Container]) -> bool:
    """Whether everything that comes first has been done."""
    return all(
        (each.is_started if each.is_sidecar else each.has_succeeded)
        for each in containers
        if each.is_init
    )


def is_restarted(container: Container, restart_policy: str) -> bool:
    """Whether a container that ended like this one is started again."""
    if container.is_sidecar:
        return True
    if restart_policy == "Never" or not isinstance(container.state, Ended):
        return False
    if container.is_init or restart_policy == "OnFailure":
        return not container.has_succeeded
    return True


def _first(containers: Sequence[Container]) -> list[Container]:
    return [each for each in containers if each.is_init and not each.is_sidecar]


def _is_over(container: Container, restart_policy: str) -> bool:
    return isinstance(container.state, Ended) and not is_restarted(container, restart_policy)


def _ended_well(container: Container) -> bool:
    return container.has_succeeded


def _told(containers: Sequence[Container], phase: str) -> list[tuple[str, str, str, str]]:
    """The conditions as type, status, reason and message."""
    main = [each for each in containers if not each.is_init]
    late = [each.name for each in main if not each.is_ready]
    is_over = phase in ("Succeeded", "Failed")
    initialized = is_initialized(containers)
    if is_over:
        unready = ("PodCompleted" if phase == "Succeeded" else "PodFailed", "")
    else:
        unready = ("ContainersNotReady", f"containers with unready status: {' '.join(late)}")
    ready = ("False", *unready) if is_over or late or not initialized else ("True", "", "")
    return [
        ("PodScheduled", "True", "", ""),
        ("Initialized", str(initialized), "" if initialized else "ContainersNotInitialized", ""),
        ("ContainersReady", *ready),
        ("Ready", *ready),
    ]


def _conditions(
    told: Iterable[tuple[str, str, str, str]], now: datetime, previous: Manifest
) -> list[Manifest]:
    before = {each["type"]: each for each in previous.get("conditions") or ()}
    conditions = []
    for kind, status, reason, message in told:
        old = before.get(kind) or {}
        unchanged = old.get("status") == status and old.get("lastTransitionTime")
        condition = {
            "type": kind,
            "status": status,
            "lastTransitionTime": old["lastTransitionTime"] if unchanged else timestamp(now),
            **({"reason": reason} if reason else {}),
            **({"message": message} if message else {}),
        }
        conditions.append(condition)
    return conditions


def _container(container: Container) -> Manifest:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": container.is_ready or (container.is_init and container.has_succeeded),
        "started": container.is_running and container.is_started,
        "restartCount": container.restarts,
        "state": _state(container.state),
        "lastState": _state(container.last) if container.last else {},
    }


def _state(state: State) -> Manifest:
    if isinstance(state, Waiting):
        message = {"message": state.message} if state.message else {}
        return {"waiting": {"reason": state.reason, **message}}
    if isinstance(state, Running):
        return {"running": {"startedAt": timestamp(state.since)}}
    return {
        "terminated": {
            "exitCode": state.exit_code,
            **({"signal": state.signal} if state.signal else {}),
            "reason": state.reason or ("Completed" if state.code == 0 else "Error"),
            **({"message": state.message} if state.message else {}),
            "startedAt": timestamp(state.since or state.at),
            "finishedAt": timestamp(state.at),
        }
    }
