"""Schedulers that start all pods of a job or none, and how a pod tells them its group."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mpi_operator.api import MPIJob, names
from mpi_operator.kube.resources import Resource

from .settings import Settings

Place: TypeAlias = Literal["labels", "annotations"]


@dataclass(frozen=True)
class GangScheduler:
    """One kind of scheduler: its PodGroups, and the marks that it looks for on pods."""

    pod_groups: Resource
    fields: frozenset[str]
    """What it knows of a job's scheduling policy, as fields of a PodGroup's spec."""

    mark: str
    marks_are: Place


_VOLCANO = GangScheduler(
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
    frozenset({"minMember", "minResources", "queue", "priorityClassName"}),
    mark="scheduling.k8s.io/group-name",
    marks_are="annotations",
)
_SCHEDULER_PLUGINS = GangScheduler(
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    frozenset({"minMember", "minResources", "scheduleTimeoutSeconds"}),
    mark="scheduling.x-k8s.io/pod-group",
    marks_are="labels",
)
# The plugin has no name of its own: people build it into schedulers of any name.
_KNOWN = {"": None, "volcano": _VOLCANO}


def gang_scheduler(settings: Settings) -> GangScheduler | None:
    """The scheduler in use; None where pods are scheduled one by one."""
    return _KNOWN.get(settings.gang_scheduler, _SCHEDULER_PLUGINS)


def pod_marks(job: MPIJob, place: Place, settings: Settings) -> dict[str, str]:
    """The labels, or the annotations, that put a pod into the group of its job."""
    scheduler = gang_scheduler(settings)
    if scheduler is None or scheduler.marks_are != place:
        return {}
    return {scheduler.mark: names.pod_group(job)}


def scheduler_name(settings: Settings) -> dict[str, str]:
    """Who schedules a pod, over whom the template names: another one would not see the group."""
    return {"schedulerName": settings.gang_scheduler} if settings.gang_scheduler else {}
