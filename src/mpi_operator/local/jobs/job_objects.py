"""What the Job controller keeps of Jobs and of their pods: what it decides by, and nothing else."""

from typing import Any

import msgspec

from mpi_operator.kube.objects import Compact, Metadata, Object

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
# On a pod whose end the Job has not counted: until then it must not vanish.
TRACKING = "batch.kubernetes.io/job-tracking"
OURSELVES = "kubernetes.io/job-controller"

SUSPENDED, COMPLETE, FAILED = "Suspended", "Complete", "Failed"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


def tracking_labels(name: str, uid: str) -> dict[str, str]:
    """How pods say whose they are: today's labels and those from before they had a prefix."""
    return {CONTROLLER_UID: uid, "controller-uid": uid, JOB_NAME: name, "job-name": name}


class Ended(Compact, frozen=True):
    """How a container ended: when."""

    finished_at: str = ""


class ContainerState(Compact, frozen=True):
    """What a container does."""

    terminated: Ended | None = None


class Container(Compact, frozen=True):
    """What the node says about one container."""

    restart_count: int = 0
    state: ContainerState = ContainerState()


class Condition(Compact, frozen=True):
    """A condition of a pod or of a Job."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: str = ""
    last_transition_time: str = ""


class PodMetadata(Metadata, frozen=True):
    """Metadata with what keeps a deleted pod."""

    finalizers: tuple[str, ...] = ()
    deletion_grace_period_seconds: int | None = None


class PodStatus(Compact, frozen=True):
    """What the node says about a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[Container, ...] = ()
    container_statuses: tuple[Container, ...] = ()


class JobPod(Object, frozen=True):
    """A pod of a Job."""

    metadata: PodMetadata = PodMetadata()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_tracked(self) -> bool:
        return TRACKING in self.metadata.finalizers

    @property
    def is_deleted(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    @property
    def has_succeeded(self) -> bool:
        return self.status.phase == "Succeeded"

    @property
    def has_failed(self) -> bool:
        """A pod that is deleted without grace is on no node any more, whatever its phase says."""
        is_lost = self.is_deleted and not self.metadata.deletion_grace_period_seconds
        return self.status.phase == "Failed" or (is_lost and not self.has_succeeded)

    @property
    def is_terminating(self) -> bool:
        return self.is_deleted and not (self.has_failed or self.has_succeeded)

    @property
    def is_active(self) -> bool:
        return not (self.is_deleted or self.has_failed or self.has_succeeded)

    @property
    def is_ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.conditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.status.conditions

    @property
    def restarts(self) -> int:
        containers = (*self.status.init_container_statuses, *self.status.container_statuses)
        return sum(container.restart_count for container in containers)


class JobSpec(Compact, frozen=True):
    """What is asked of the Job controller."""

    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    pod_replacement_policy: str = "TerminatingOrFailed"
    managed_by: str = OURSELVES
    template: dict[str, Any] = msgspec.field(default_factory=dict)


class Uncounted(Compact, frozen=True, omit_defaults=True):
    """Pods that have ended, by uid, that are counted as soon as they are let go."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Compact, frozen=True, omit_defaults=True):
    """What the Job controller says."""

    start_time: str = ""
    completion_time: str = ""
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    uncounted_terminated_pods: Uncounted = Uncounted()
    conditions: tuple[Condition, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """The condition of a type, where it is true."""
        true = (each for each in self.conditions if each.status == "True")
        return next((each for each in true if each.type == kind), None)


class Job(Object, frozen=True):
    """A Job of one pod."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def end(self) -> Condition | None:
        """How the Job ended, if it has."""
        return self.status.condition(COMPLETE) or self.status.condition(FAILED)

    @property
    def restarts_in_place(self) -> bool:
        policy = (self.spec.template.get("spec") or {}).get("restartPolicy")
        return bool(policy == "OnFailure")

    @property
    def replaces_only_ended(self) -> bool:
        """Whether a pod that is ending has to be gone before there is another one."""
        return self.spec.pod_replacement_policy == "Failed"
