"""Clusters and objects for tests."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from mpi_operator.kube.resources import Manifest, Resource
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind, Scale

START = datetime(2026, 1, 1, tzinfo=UTC)
_OUTSIDE = ("spec", "data", "status")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def virtual_now() -> datetime:
    """The time of day on a loop with virtual time."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def a_cluster(*kinds: Kind, **settings: Any) -> LocalCluster:
    widgets = Kind(
        WIDGETS,
        has_status=True,
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    )
    return LocalCluster((widgets, *kinds), **settings)


def named(name: str, *, namespace: str = "here", **fields: Any) -> Manifest:
    """An object; what is none of the usual parts is a field of its metadata."""
    outside = {field: value for field, value in fields.items() if field in _OUTSIDE}
    metadata = {field: value for field, value in fields.items() if field not in _OUTSIDE}
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, **outside}


def pod(name: str, *, node: str = "", **spec: Any) -> Manifest:
    placed = {"nodeName": node} if node else {}
    return named(name, spec={"containers": [{"name": "main"}], **placed, **spec})


def owned(name: str, *owners: Manifest, blocking: bool = False, **fields: Any) -> Manifest:
    """A ConfigMap with owners of the same kind."""
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if blocking else {}),
        }
        for owner in owners
    ]
    return named(name, ownerReferences=references, **fields)
