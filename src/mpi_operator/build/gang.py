"""Gang schedulers, and the metadata that makes a pod a member of its PodGroup."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mpi_operator.api import MPIJob, names
from mpi_operator.kube.resources import Resource

from .settings import Settings

MetadataField: TypeAlias = Literal["labels", "annotations"]


@dataclass(frozen=True)
class GangScheduler:
    """One kind of gang scheduler."""

    pod_groups: Resource
    fields: frozenset[str]
    """The fields of a PodGroup's spec that it supports."""

    group_key: str
    """The label or annotation of a pod that names its group."""

    group_field: MetadataField


_VOLCANO = GangScheduler(
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
    frozenset({"minMember", "minResources", "queue", "priorityClassName"}),
    group_key="scheduling.k8s.io/group-name",
    group_field="annotations",
)
_SCHEDULER_PLUGINS = GangScheduler(
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    frozenset({"minMember", "minResources", "scheduleTimeoutSeconds"}),
    group_key="scheduling.x-k8s.io/pod-group",
    group_field="labels",
)
# The coscheduling plugin has no name of its own: schedulers of any name include it.
_KNOWN = {"": None, "volcano": _VOLCANO}


def gang_scheduler(settings: Settings) -> GangScheduler | None:
    """The gang scheduler in use; None if pods are scheduled one by one."""
    return _KNOWN.get(settings.gang_scheduler, _SCHEDULER_PLUGINS)


def membership(job: MPIJob, field: MetadataField, settings: Settings) -> dict[str, str]:
    """The labels, or the annotations, that make a pod a member of its job's group."""
    scheduler = gang_scheduler(settings)
    if scheduler is None or scheduler.group_field != field:
        return {}
    return {scheduler.group_key: names.pod_group(job)}


def scheduler_name(settings: Settings) -> dict[str, str]:
    """The scheduler of a pod. It overrides the template's, which would not see the group."""
    return {"schedulerName": settings.gang_scheduler} if settings.gang_scheduler else {}
