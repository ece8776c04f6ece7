"""The kinds that the cluster serves, as a table.

The kinds that any pod needs are built in. A controller of another kind registers it with its
defaults and validation in `admit`: this package knows pods, but not MPIJobs.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    SERVICES,
    Manifest,
    Resource,
)

from . import defaulting

# Returns the object with its defaults, or raises Invalid. It must not modify its argument, and must
# return an object that it has returned before unchanged.
Admission: TypeAlias = Callable[[Manifest], Manifest]

_ALWAYS_SELECTABLE = ("metadata.name", "metadata.namespace")


def _unchanged(manifest: Manifest) -> Manifest:
    return manifest


class Scale(msgspec.Struct, frozen=True):
    """The paths of the scale subresource, as in a CustomResourceDefinition."""

    replicas: str
    status_replicas: str = ""
    selector: str = ""


class Kind(msgspec.Struct, frozen=True):
    """A served kind and how the cluster treats its objects."""

    resource: Resource
    has_status: bool = False  # the status is a subresource, written separately
    scale: Scale | None = None
    admit: Admission = _unchanged
    is_graceful: bool = False  # deletion has a grace period
    selectable: tuple[str, ...] = ()  # for field selectors, besides name and namespace

    @property
    def fields(self) -> frozenset[str]:
        return frozenset((*_ALWAYS_SELECTABLE, *self.selectable))


BUILT_IN: tuple[Kind, ...] = (
    Kind(
        PODS,
        has_status=True,
        admit=defaulting.pod,
        is_graceful=True,
        selectable=("spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"),
    ),
    Kind(JOBS, has_status=True, admit=defaulting.job),
    Kind(SERVICES, has_status=True),
    Kind(CONFIG_MAPS),
    Kind(SECRETS, admit=defaulting.secret, selectable=("type",)),
    Kind(PERSISTENT_VOLUME_CLAIMS, has_status=True),
    Kind(PERSISTENT_VOLUMES, has_status=True),
    Kind(
        EVENTS,
        selectable=(
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "type",
        ),
    ),
    Kind(LEASES),
    Kind(NAMESPACES, has_status=True),
    Kind(NODES, has_status=True),
)
