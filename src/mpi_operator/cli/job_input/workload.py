"""What one `mpijob run` runs, whether it comes from a file or from a program."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mpi_operator.api.field_errors import FieldError
from mpi_operator.api.types import MPIJob
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.mpi_installation import Installation


class LoadedJob(NamedTuple):
    """A valid job, and the directory that its programs start in."""

    manifest: Manifest
    job: MPIJob
    warnings: Sequence[FieldError]
    directory: Path
    namespace: str = ""
    """What its author wrote. Here it runs in NAMESPACE."""
    installation: Installation | None = None
    """The MPI to run it with, if that has been found already."""
    is_name_free: bool = False
    """Whether the name is ours, so that it may be changed if another job has it."""


class Workload(NamedTuple):
    """All that one `mpijob run` runs: valid jobs, and the objects that they need."""

    jobs: Sequence[LoadedJob]
    objects: Sequence[Manifest] = ()
    notices: Sequence[str] = ()
    namespaces: Mapping[str, str] = MappingProxyType({})
    """Those that a file gives to its objects, by title. Here all are in NAMESPACE."""


class Changes(NamedTuple):
    """The options of the command line that change what is in a file."""

    settings: Sequence[str] = ()
    variables: Sequence[str] = ()
    units: Mapping[str, Any] = MappingProxyType({})
    """Fields of `UnitSettings`: how the totals of v1alpha1 are split into workers."""
    config_maps: Sequence[str] = ()
    secret_files: Sequence[str] = ()
    volumes: Sequence[str] = ()
    gpus: int | None = None
    """For each worker, or for the launcher if it runs the ranks."""
