"""Which kinds of objects the cluster has, as rows of a table.

Those that any pod needs are here. Whoever runs a controller of another kind gives a row for it,
with the rules of that kind in `admit`: this package knows pods, not what they are for.
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
    PODS,
    SECRETS,
    SERVICES,
    Manifest,
    Resource,
)

from . import defaulting

# From an object that is about to be stored to the one that is: with defaults, or else Invalid. It
# must not change what it is given, and has to leave alone what it returned before.
Admission: TypeAlias = Callable[[Manifest], Manifest]

_NAMING = ("metadata.name", "metadata.namespace")


def as_given(manifest: Manifest) -> Manifest:
    return manifest


class Scale(msgspec.Struct, frozen=True):
    """Where an object keeps its size, in the notation of a CustomResourceDefinition."""

    replicas: str
    status_replicas: str = ""
    selector: str = ""


class Kind(msgspec.Struct, frozen=True):
    """A kind of object and how it behaves."""

    resource: Resource
    has_status: bool = False  # as a subresource: then the two are written apart
    scale: Scale | None = None
    admit: Admission = as_given
    is_graceful: bool = False  # something runs for it that needs time to end
    selectable: tuple[str, ...] = ()  # fields to select by, besides its name and namespace

    @property
    def fields(self) -> frozenset[str]:
        return frozenset((*_NAMING, *self.selectable))


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
