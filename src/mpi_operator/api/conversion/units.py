"""v1alpha1's processing units: how many workers a total of GPUs or CPUs makes."""

from dataclasses import dataclass
from typing import Any

from mpi_operator.api import field_errors

from .old_version import UnitSettings
from .places import get

GPU, CPU = "nvidia.com/gpu", "cpu"


@dataclass(frozen=True)
class _Total:
    """A field with a total, and where its units per node come from."""

    field: str
    per_node_field: str
    per_node_setting: str
    noun: str


_TOTALS = (
    _Total("gpus", "gpusPerNode", "gpus_per_node", "GPUs per node"),
    _Total(
        "processingUnits",
        "processingUnitsPerNode",
        "processing_units_per_node",
        "processing units per node",
    ),
)
FIELDS = (
    *(name for each in _TOTALS for name in (each.field, each.per_node_field)),
    "processingResourceType",
    "replicas",
)


@dataclass(frozen=True)
class Allocation:
    """The workers of a job. Without a total, `replicas` and the template say it all."""

    replicas: Any = None
    units: int | None = None
    """The units of each worker, if the job has a total of them."""

    resource: str = GPU
    settled_per_node: int | None = None
    """The units per node if they come from the operator's settings: they are remembered."""

    error: str = ""


def allocation(spec: dict[str, Any], remembered: int | None, settings: UnitSettings) -> Allocation:
    """The workers that a spec asks for; none, with an error, if it cannot be satisfied."""
    totals = [each for each in _TOTALS if spec.get(each.field) is not None]
    if not totals:
        return Allocation(spec.get("replicas"), resource=_resource(spec, settings))
    if len(totals) > 1:
        return Allocation(0, error="spec.gpus: may not be given together with spec.processingUnits")
    return _split(spec, totals[0], remembered, settings)


def whole_number(value: object) -> int | None:
    """A positive number, also as a quantity without a unit."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    return value if type(value) is int and value > 0 else None


def _split(
    spec: dict[str, Any], total: _Total, remembered: int | None, settings: UnitSettings
) -> Allocation:
    amount, given_per_node = spec[total.field], whole_number(spec.get(total.per_node_field))
    settled = None if given_per_node else remembered or getattr(settings, total.per_node_setting)
    per_node = given_per_node or settled or 1
    where = f"spec.{total.field}: "
    if type(amount) is not int or amount < 1:
        problem = field_errors.invalid(amount, "must be an integer of at least 1")
        return Allocation(0, settled_per_node=settled, error=where + problem)
    if amount > per_node and amount % per_node:
        rule = f"must be less than {per_node} or a multiple of it ({total.noun})"
        problem = field_errors.invalid(amount, rule)
        return Allocation(0, settled_per_node=settled, error=where + problem)
    resource = GPU if total.field == "gpus" else _resource(spec, settings)
    return Allocation(
        max(amount // per_node, 1), min(amount, per_node), resource, settled_per_node=settled
    )


def _resource(spec: dict[str, Any], settings: UnitSettings) -> str:
    """The resource that is counted; the old operators took anything unknown for GPUs."""
    asked = get(spec, ("processingResourceType",)) or settings.processing_resource_type
    return CPU if asked == CPU else GPU
