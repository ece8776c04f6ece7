"""What the pods of both roles share: the user's template, with additions for MPI.

The environment, mounts and command of the template take precedence. The operator overrides only
what makes a pod part of its job: labels, host name, restart policy and the gang scheduler, if any.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from mpi_operator.api import MPIJob, names
from mpi_operator.api.main_container import chosen_container, main_container
from mpi_operator.api.types import LauncherSpec, WorkerSpec
from mpi_operator.kube.resources import Manifest

from . import gang
from .restart_policies import pod_restart_policy
from .settings import Settings
from .volumes import AddedVolumes, Volume, added_volumes

Replica: TypeAlias = LauncherSpec | WorkerSpec

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True)
class Additions:
    """What the operator adds to the main container of a role."""

    environment: Mapping[str, str]
    volumes: tuple[Volume, ...]
    container: Manifest = field(default_factory=dict)
    """Fields that replace those of the container."""


def pod_metadata(
    job: MPIJob, replica: Replica, labels: Mapping[str, str], settings: Settings
) -> Manifest:
    """The labels and annotations of a template, overridden by ours."""
    annotations = _default_container(job, replica) | _metadata(
        job, replica, "annotations", settings
    )
    return {
        "labels": {**_metadata(job, replica, "labels", settings), **labels},
        **({"annotations": annotations} if annotations else {}),
    }


def pod_spec(job: MPIJob, replica: Replica, additions: Additions, settings: Settings) -> Manifest:
    """The pod spec of a template with the additions, in the DNS domain of the job."""
    spec: Manifest = replica.template["spec"]
    main = main_container(job, replica)
    extra = added_volumes(additions.volumes, spec, main)
    return {
        **spec,
        **_dns_policy(spec),
        **gang.scheduler_name(settings),
        "subdomain": names.service(job),
        "restartPolicy": pod_restart_policy(job, replica),
        "volumes": [*(spec.get("volumes") or ()), *extra.volumes],
        "containers": [
            _container(each, additions, extra) if each is main else each
            for each in spec["containers"]
        ],
    }


def dns_config(job: MPIJob, replica: Replica, settings: Settings) -> Manifest:
    """The user's DNS config with the job's search domain, in which bare host names resolve.

    Hydra's proxies use the bare name of the launcher if the remote shell finds no address. Where
    the launcher uses exec, its hostfile has bare names.
    """
    given = replica.template["spec"].get("dnsConfig") or {}
    searches = [*(given.get("searches") or ()), names.search_domain(job, settings.cluster_domain)]
    return {**given, "searches": list(dict.fromkeys(searches))}


def _metadata(
    job: MPIJob, replica: Replica, field: gang.MetadataField, settings: Settings
) -> dict[str, str]:
    metadata = replica.template.get("metadata") or {}
    return {**(metadata.get(field) or {}), **gang.membership(job, field, settings)}


def _default_container(job: MPIJob, replica: Replica) -> dict[str, str]:
    """The container whose log kubectl and `mpijob` show, where it is not the first."""
    name = chosen_container(job, replica)
    return {DEFAULT_CONTAINER: name} if name else {}


def _dns_policy(spec: Manifest) -> Manifest:
    # On the node's network the default policy uses the node's resolver, which does not know the
    # names of pods. Other policies were chosen on purpose.
    is_default = spec.get("dnsPolicy") in (None, "", "ClusterFirst")
    uses_node = spec.get("hostNetwork") and is_default
    return {"dnsPolicy": "ClusterFirstWithHostNet"} if uses_node else {}


def _container(container: Manifest, additions: Additions, extra: AddedVolumes) -> Manifest:
    return {
        **container,
        **additions.container,
        "env": _environment(container, additions),
        "volumeMounts": [*(container.get("volumeMounts") or ()), *extra.mounts],
        # So that the status of a failed pod has its last log lines if it wrote no message.
        "terminationMessagePolicy": container.get("terminationMessagePolicy")
        or "FallbackToLogsOnError",
    }


def _environment(container: Manifest, additions: Additions) -> list[Manifest]:
    """The user's variables, then ours unless the user has set them."""
    given = container.get("env") or []
    names_given = {variable["name"] for variable in given}
    ours = additions.environment.items()
    return [
        *given,
        *({"name": name, "value": value} for name, value in ours if name not in names_given),
    ]
