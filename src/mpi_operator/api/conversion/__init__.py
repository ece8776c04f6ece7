"""Conversion between the API versions of an MPIJob, pure and total.

See docs/decisions/0006-api-versions.md for how it works and what goes where.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mpi_operator.api.types import Manifest

VERSIONS = ("v2beta1", "v1", "v1alpha2", "v1alpha1")


@dataclass(frozen=True)
class UnitSettings:
    """How v1alpha1's totals are split into workers: flags of the old operators."""

    gpus_per_node: int = 1
    processing_units_per_node: int = 1
    processing_resource_type: str = "nvidia.com/gpu"


class UnknownVersion(ValueError):
    """The apiVersion of a manifest is not one of ours."""


def convert(manifest: Mapping[str, object], to: str, units: UnitSettings | None = None) -> Manifest:
    """The same job in another version (`v1`, …), never changing the argument."""
    raise NotImplementedError
