"""The status of a pod, from the status of its containers: pure, by the kubelet's rules."""

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
    """Started and not ended."""

    since: datetime


class Terminated(msgspec.Struct, frozen=True):
    """Terminated, by itself or by a signal."""

    code: int
    """The exit code; below zero the signal that killed it."""
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


State = Waiting | Running | Terminated


class ContainerStatus(msgspec.Struct, frozen=True):
    """The current state of one container, and how it ended the last time."""

    name: str
    image: str
    is_init: bool = False
    is_sidecar: bool = False
    state: State = msgspec.field(default_factory=Waiting)
    last: Terminated | None = None
    restarts: int = 0
    is_started: bool = False
    is_ready: bool = False

    @property
    def is_running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def has_succeeded(self) -> bool:
        return isinstance(self.state, Terminated) and self.state.code == 0

    def changed(
        self,
        state: State,
        *,
        is_started: bool = False,
        is_ready: bool = False,
        restarts: int | None = None,
    ) -> "ContainerStatus":
        """The same container in another state."""
        return msgspec.structs.replace(
            self,
            state=state,
            last=self.state if isinstance(self.state, Terminated) else self.last,
            is_started=is_started,
            is_ready=is_ready,
            restarts=self.restarts if restarts is None else restarts,
        )


class Failure(msgspec.Struct, frozen=True):
    """Why a pod failed as a whole, whatever its containers did."""

    reason: str
    message: str


class PodFacts(msgspec.Struct, frozen=True):
    """What does not change while a pod is on the node."""

    restart_policy: str
    started: datetime
    pod_ip: str
    host_ip: str


def unschedulable(message: str, now: datetime, previous: Manifest) -> Manifest:
    """The status of a pod that does not fit on the machine."""
    scheduled = ("PodScheduled", "False", "Unschedulable", message)
    return {"phase": "Pending", "conditions": _conditions([scheduled], now, previous)}


def scheduling_message(pod: Manifest) -> str:
    """Why a pod is unschedulable, as its status says."""
    conditions = pod["status"].get("conditions") or ()
    return next(
        (each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), ""
    )


def rejected(message: str) -> Manifest:
    """The status of a malformed pod, with the reason that a kubelet gives."""
    return {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}


def status_of(
    containers: Sequence[ContainerStatus],
    facts: PodFacts,
    now: datetime,
    previous: Manifest,
    failure: Failure | None = None,
) -> Manifest:
    """The whole status of a pod that has been scheduled."""
    phase = "Failed" if failure else phase_of(containers, facts.restart_policy)
    status: Manifest = {
        "phase": phase,
        "conditions": _conditions(_condition_rows(containers, phase), now, previous),
        "startTime": timestamp(facts.started),
        "podIP": facts.pod_ip,
        "podIPs": [{"ip": facts.pod_ip}],
        "hostIP": facts.host_ip,
        "qosClass": previous.get("qosClass") or "BestEffort",
        "containerStatuses": [_container(each) for each in containers if not each.is_init],
    }
    if any(each.is_init for each in containers):
        status["initContainerStatuses"] = [_container(each) for each in containers if each.is_init]
    if failure:
        status |= {"reason": failure.reason, "message": failure.message}
    return status


def phase_of(containers: Sequence[ContainerStatus], restart_policy: str) -> str:
    """The phase by the kubelet's rules."""
    main = [each for each in containers if not each.is_init]
    if any(_is_done(each, restart_policy) and not each.has_succeeded for each in _init(containers)):
        return "Failed"
    if any(isinstance(each.state, Waiting) and each.last is None for each in main):
        return "Pending"
    if not all(_is_done(each, restart_policy) for each in main):
        return "Running"
    return "Succeeded" if all(each.has_succeeded for each in main) else "Failed"


def is_initialized(containers: Iterable[ContainerStatus]) -> bool:
    """Whether all init containers are done."""
    return all(
        (each.is_started if each.is_sidecar else each.has_succeeded)
        for each in containers
        if each.is_init
    )


def is_restarted(container: ContainerStatus, restart_policy: str) -> bool:
    """Whether a terminated container is started again."""
    if container.is_sidecar:
        return True
    if restart_policy == "Never" or not isinstance(container.state, Terminated):
        return False
    if container.is_init or restart_policy == "OnFailure":
        return not container.has_succeeded
    return True


def _init(containers: Sequence[ContainerStatus]) -> list[ContainerStatus]:
    return [each for each in containers if each.is_init and not each.is_sidecar]


def _is_done(container: ContainerStatus, restart_policy: str) -> bool:
    return isinstance(container.state, Terminated) and not is_restarted(container, restart_policy)


def _condition_rows(
    containers: Sequence[ContainerStatus], phase: str
) -> list[tuple[str, str, str, str]]:
    """The conditions as type, status, reason and message."""
    main = [each for each in containers if not each.is_init]
    unready_names = [each.name for each in main if not each.is_ready]
    is_done = phase in ("Succeeded", "Failed")
    initialized = is_initialized(containers)
    if is_done:
        unready = ("PodCompleted" if phase == "Succeeded" else "PodFailed", "")
    else:
        unready = (
            "ContainersNotReady",
            f"containers with unready status: {' '.join(unready_names)}",
        )
    ready = ("False", *unready) if is_done or unready_names or not initialized else ("True", "", "")
    return [
        ("PodScheduled", "True", "", ""),
        ("Initialized", str(initialized), "" if initialized else "ContainersNotInitialized", ""),
        ("ContainersReady", *ready),
        ("Ready", *ready),
    ]


def _conditions(
    rows: Iterable[tuple[str, str, str, str]], now: datetime, previous: Manifest
) -> list[Manifest]:
    before = {each["type"]: each for each in previous.get("conditions") or ()}
    conditions = []
    for kind, status, reason, message in rows:
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


def _container(container: ContainerStatus) -> Manifest:
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
