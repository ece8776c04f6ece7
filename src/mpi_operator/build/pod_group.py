"""The PodGroup that tells a gang scheduler which pods to start together."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.types import SchedulingPolicy
from mpi_operator.kube.resources import Manifest, Resource

from .gang import GangScheduler, gang_scheduler
from .min_resources import min_resources
from .ownership import metadata
from .quantity import parse_quantity
from .settings import Settings

_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
_FIELDS = (
    "minMember",
    "minResources",
    "queue",
    "priorityClassName",
    "scheduleTimeoutSeconds",
)
# Volcano sets a queue if we do not.
_FILLED_IN = frozenset({"queue"})


def resource(settings: Settings) -> Resource:
    """The PodGroup resource of the gang scheduler in use."""
    return _scheduler(settings).pod_groups


def pod_group(
    job: MPIJob, settings: Settings, priorities: Mapping[str, int], *, with_launcher: bool
) -> Manifest:
    """The PodGroup of a job.

    It leaves out a launcher that waits for the workers: the two would wait for each other forever.
    `priorities` are the values of priority classes.
    """
    kind = resource(settings)
    fields = _scheduler(settings).fields
    spec = _spec(job, priorities, with_launcher=with_launcher)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata(job, names.pod_group(job), labels.object_labels(job)),
        "spec": {
            name: value for name, value in spec.items() if name in fields and _is_given(value)
        },
    }


def needs_update(stored_spec: Mapping[str, Any], wanted: Manifest) -> bool:
    """Whether our fields of a stored PodGroup differ. The scheduler's own fields do not count."""
    spec = wanted["spec"]
    return any(
        _comparable(stored_spec.get(name)) != _comparable(spec.get(name))
        for name in _FIELDS
        if name in spec or name not in _FILLED_IN
    )


def correction(stored_spec: Mapping[str, Any], wanted: Manifest) -> Manifest:
    """A merge patch of the spec that sets our fields and keeps the scheduler's own."""
    spec: Manifest = wanted["spec"]
    gone: Manifest = {
        name: None
        for name in _FIELDS
        if name in stored_spec and name not in spec and name not in _FILLED_IN
    }
    # A merge would keep resources that are no longer requested.
    resources = dict.fromkeys(stored_spec.get("minResources") or (), None)
    merged = {"minResources": resources | spec["minResources"]} if "minResources" in spec else {}
    return gone | spec | merged


def _scheduler(settings: Settings) -> GangScheduler:
    scheduler = gang_scheduler(settings)
    if scheduler is None:
        raise ValueError("gang scheduling is off, so there are no PodGroups")
    return scheduler


def _spec(job: MPIJob, priorities: Mapping[str, int], *, with_launcher: bool) -> Manifest:
    policy = job.spec.run_policy.scheduling_policy or SchedulingPolicy()
    members = policy.min_available
    pods = job.spec.worker_count + (1 if with_launcher else 0)
    if members is None or (members > pods and not with_launcher):
        members = pods
    return {
        "minMember": members,
        "minResources": policy.min_resources
        or min_resources(job, members, priorities, with_launcher=with_launcher),
        "queue": policy.queue or job.metadata.annotations.get(_QUEUE_ANNOTATION),
        "priorityClassName": policy.priority_class or _priority_class(job),
        "scheduleTimeoutSeconds": policy.schedule_timeout_seconds,
    }


def _priority_class(job: MPIJob) -> str | None:
    """The launcher's priority class, else the workers'."""
    replicas = (job.spec.launcher, job.spec.worker)
    classes = (each.template["spec"].get("priorityClassName") for each in replicas if each)
    return next(filter(None, classes), None)


def _is_given(value: object) -> bool:
    return value not in (None, "", {})


def _comparable(value: object) -> object:
    """A field normalized for comparison: `1000m` equals `1`, and a missing value equals 0."""
    if not value:
        return None
    return {k: _amount(v) for k, v in value.items()} if isinstance(value, dict) else value


def _amount(text: Any) -> object:
    with suppress(ValueError):
        return parse_quantity(text).amount
    return text
