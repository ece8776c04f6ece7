"""The OpenAPI schemas of the older versions, generated from their types and rules."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from mpi_operator.api import schema
from mpi_operator.api.schema import OPEN, Generator, Schema

from . import OLD_VERSIONS, v1, v1alpha2
from .cel import RULES

_BY_ROLE: Mapping[type, type[msgspec.Struct]] = {
    **schema.BY_ROLE,
    v1.ReplicaSpecs: v1.ReplicaSpec,
    v1alpha2.ReplicaSpecs: v1alpha2.ReplicaSpec,
}


@cache
def job(version: str) -> Schema:
    """The schema that manifests are validated against, without descriptions.

    It is not open, because an unknown field is worth a warning.
    """
    return schema.validated(_generator().of(OLD_VERSIONS[version]), version)


def served_job(version: str) -> Schema:
    """The schema for the CRD, which accepts unknown fields."""
    kubernetes = {**schema.KUBERNETES, "PodTemplate": _open_pod_template}
    generator = _generator(with_docs=True, is_open=True, kubernetes=kubernetes)
    return schema.served(generator.of(OLD_VERSIONS[version]), version)


def _generator(**options: Any) -> Generator:
    return Generator(RULES, _BY_ROLE, allows_empty=True, **options)


def _open_pod_template() -> Schema:
    """As much of a pod template as rules and server-side apply have to know."""
    name: Schema = {"name": {"type": "string"}}
    containers = {
        "type": "array",
        "items": OPEN | {"properties": name, "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = OPEN | {"properties": {"containers": containers}, "required": ["containers"]}
    return OPEN | {"properties": {"spec": spec}}
