"""The choices of an administrator, and what all installed objects have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mpi_operator import __version__

Manifest: TypeAlias = dict[str, Any]

NAME = "mpi-operator"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "mpijob"}
# The Go operator's manifests have the label `app`, and people select and patch by it.
SELECTOR = {"app": NAME, **LABELS}


def default_image() -> str:
    """The image of this version."""
    return f"mpioperator/{NAME}:{__version__}"


@dataclass(frozen=True)
class Installation:
    """Where the operator runs, and which parts it has."""

    namespace: str = NAME
    image: str = ""
    """Default: the image of this version."""
    is_namespaced: bool = False
    """Whether it runs only the jobs of its own namespace, and needs no cluster-wide permission."""
    flags: tuple[str, ...] = ()
    """More flags of `mpi-operator`."""

    @property
    def has_webhooks(self) -> bool:
        """Whether it serves all API versions. Webhooks need cluster-wide permissions."""
        return not self.is_namespaced


def named(
    version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """An object with only its type and metadata."""
    where = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **where, "labels": LABELS | dict(labels or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
