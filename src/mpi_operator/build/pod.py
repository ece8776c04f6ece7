"""What the pods of both roles share: the user's template, and in it what MPI needs.

The template wins: its environment, its mounts, its command. Only what makes a pod part of its job
is ours: labels, host name, restart policy and, where there is one, the gang scheduler.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from mpi_operator.api import MPIJob, names
from mpi_operator.api.types import LauncherSpec, WorkerSpec
from mpi_operator.kube.resources import Manifest

from . import gang
from .settings import Settings
from .volumes import Added, Volume, added

Replica: TypeAlias = LauncherSpec | WorkerSpec


@dataclass(frozen=True)
class Equipment:
    """What MPI needs in the first container of a role."""

    environment: Mapping[str, str]
    volumes: tuple[Volume, ...]
    container: Manifest = field(default_factory=dict)
    """Fields that the container has instead of its own."""


def pod_metadata(
    job: MPIJob, replica: Replica, labels: Mapping[str, str], settings: Settings
) -> Manifest:
    """The labels and annotations of a template, and ours over them."""
    annotations = _marks(job, replica, "annotations", settings)
    return {
        "labels": {**_marks(job, replica, "labels", settings), **labels},
        **({"annotations": annotations} if annotations else {}),
    }


def pod_spec(job: MPIJob, replica: Replica, equipment: Equipment, settings: Settings) -> Manifest:
    """The pod of a template with its equipment, found under the job's domain."""
    spec: Manifest = replica.template["spec"]
    first, *others = spec["containers"]
    extra = added(equipment.volumes, spec)
    return {
        **spec,
        **_dns_policy(spec),
        **gang.scheduler_name(settings),
        "subdomain": names.service(job),
        "restartPolicy": replica.restart_policy.value,
        "volumes": [*(spec.get("volumes") or ()), *extra.volumes],
        "containers": [_equipped(first, equipment, extra), *others],
    }


def _marks(job: MPIJob, replica: Replica, place: gang.Place, settings: Settings) -> dict[str, str]:
    metadata = replica.template.get("metadata") or {}
    return {**(metadata.get(place) or {}), **gang.pod_marks(job, place, settings)}


def _dns_policy(spec: Manifest) -> Manifest:
    # On the node's network the default policy would ask the node's resolver, which does not know
    # the names of pods. Whoever chose another policy meant it.
    is_default = spec.get("dnsPolicy") in (None, "", "ClusterFirst")
    asks_the_node = spec.get("hostNetwork") and is_default
    return {"dnsPolicy": "ClusterFirstWithHostNet"} if asks_the_node else {}


def _equipped(container: Manifest, equipment: Equipment, extra: Added) -> Manifest:
    return {
        **container,
        **equipment.container,
        "env": _environment(container, equipment),
        "volumeMounts": [*(container.get("volumeMounts") or ()), *extra.mounts],
        # So that the status of a failed pod says why: its last lines, if it wrote no message.
        "terminationMessagePolicy": container.get("terminationMessagePolicy")
        or "FallbackToLogsOnError",
    }


def _environment(container: Manifest, equipment: Equipment) -> list[Manifest]:
    """The user's variables, then ours where the user has none of that name."""
    given = container.get("env") or []
    names_given = {variable["name"] for variable in given}
    ours = equipment.environment.items()
    return [
        *given,
        *({"name": name, "value": value} for name, value in ours if name not in names_given),
    ]
