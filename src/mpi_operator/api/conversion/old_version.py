"""What an old version consists of, and what its functions know besides the job."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from mpi_operator.api.types import Manifest

from .fields import Field
from .lossless import Groups


@dataclass(frozen=True)
class UnitSettings:
    """How v1alpha1's totals are split into workers: flags of the old operators."""

    gpus_per_node: int = 1
    processing_units_per_node: int = 1
    processing_resource_type: str = "nvidia.com/gpu"


@dataclass(frozen=True)
class View:
    """A job as seen in one old version."""

    is_own: bool
    """Whether the job was written in that version, so that it has the version's defaults. Others
    are shown as they are."""

    units: UnitSettings = field(default_factory=UnitSettings)


Mapping: TypeAlias = Callable[[Manifest, View], Manifest]


@dataclass(frozen=True)
class OldVersion:
    """One old version. Its functions are pure, total, and sensible; `lossless` makes them exact."""

    name: str
    up: Mapping
    """From this version to the hub, in the form that the API server stores."""

    down: Mapping
    """From the hub to this version."""

    places: tuple[Field, ...]
    """The fields that this version has elsewhere than the hub."""

    own_groups: Groups
    """Places of this version that stand for the same facts."""

    hub_groups: Groups
    """Places of the hub that stand for the same facts."""
