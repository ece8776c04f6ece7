"""The fields of Jobs and of their pods that the Job controller reads, and no others."""

from typing import Any

import msgspec

from mpi_operator.kube.objects import Compact, Metadata, Object

# The finalizer that keeps a pod until the Job status has counted it.
TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
CONTROLLER_NAME = "kubernetes.io/job-controller"

SUSPENDED, COMPLETE, FAILED = "Suspended", "Complete", "Failed"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


class Terminated(Compact, frozen=True):
    """The `terminated` state of a container."""

    exit_code: int = 0
    finished_at: str = ""


class ContainerState(Compact, frozen=True):
    """The state of a container."""

    terminated: Terminated | None = None


class ContainerStatus(Compact, frozen=True):
    """The status of one container, as the kubelet reports it."""

    name: str = ""
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
    """Metadata, with the fields that delay the deletion of a pod."""

    finalizers: tuple[str, ...] = ()
    deletion_grace_period_seconds: int | None = None


class PodStatus(Compact, frozen=True):
    """The status of a pod, as the kubelet reports it."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class JobPod(Object, frozen=True):
    """A pod of a Job."""

    metadata: PodMetadata = PodMetadata()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_tracked(self) -> bool:
        return TRACKING_FINALIZER in self.metadata.finalizers

    @property
    def is_deleted(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    @property
    def has_succeeded(self) -> bool:
        return self.status.phase == "Succeeded"

    @property
    def has_failed(self) -> bool:
        """A pod deleted with no grace period left runs on no node, whatever its phase says."""
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


class OnExitCodes(Compact, frozen=True):
    """The exit codes that a rule is about."""

    container_name: str | None = None
    operator: str = ""
    values: frozenset[int] = frozenset()


class OnPodCondition(Compact, frozen=True):
    """A condition that a rule is about."""

    type: str = ""
    status: str = "True"


class PodFailurePolicyRule(Compact, frozen=True):
    """What to do about a pod that failed in a certain way."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Compact, frozen=True):
    """How failed pods are judged."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class JobSpec(Compact, frozen=True):
    """The part of a Job's spec that the controller acts on."""

    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    pod_replacement_policy: str = "TerminatingOrFailed"
    pod_failure_policy: PodFailurePolicy | None = None
    managed_by: str = CONTROLLER_NAME
    template: dict[str, Any] = msgspec.field(default_factory=dict)


class UncountedTerminatedPods(Compact, frozen=True, omit_defaults=True):
    """UIDs of terminated pods that become part of the counts once their finalizer is gone."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Compact, frozen=True, omit_defaults=True):
    """The status of a Job."""

    start_time: str = ""
    completion_time: str = ""
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    uncounted_terminated_pods: UncountedTerminatedPods = UncountedTerminatedPods()
    conditions: tuple[Condition, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type if its status is True."""
        true = (each for each in self.conditions if each.status == "True")
        return next((each for each in true if each.type == kind), None)


class Job(Object, frozen=True):
    """A Job of one pod."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def finished(self) -> Condition | None:
        """The terminal condition of the Job, if it has one."""
        return self.status.condition(COMPLETE) or self.status.condition(FAILED)

    @property
    def restarts_containers(self) -> bool:
        policy = (self.spec.template.get("spec") or {}).get("restartPolicy")
        return bool(policy == "OnFailure")

    @property
    def replaces_only_failed_pods(self) -> bool:
        """Whether a terminating pod has to be gone before the Job gets another one."""
        return self.spec.pod_replacement_policy == "Failed"
