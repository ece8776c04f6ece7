"""Which MPI an image has, according to its files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from .image_files import Image


@dataclass(frozen=True)
class Mpi:
    """An MPI, and the files and packages that identify it."""

    name: str
    implementation: str
    """Its name in `mpiImplementation` of a job."""
    programs: tuple[str, ...]
    packages: tuple[str, ...]


# Intel MPI is derived from MPICH and has its programs too, so MPICH comes last.
_MPIS = (
    Mpi("Intel MPI", "Intel", ("impi_info", "hydra_bstrap_proxy"), ("impi_rt", "intel-oneapi-mpi")),
    Mpi(
        "Open MPI", "OpenMPI", ("ompi_info", "prte", "prterun", "orted"), ("openmpi-bin", "openmpi")
    ),
    Mpi("MPICH", "MPICH", ("hydra_pmi_proxy", "mpichversion"), ("mpich",)),
)


def describe(image: Image, mpirun: str) -> str:
    """Name and version of the MPI of this mpirun, and its name in a job."""
    real = image.resolve(mpirun) or mpirun.lstrip("/")
    mpi = _which(image, real)
    if mpi is None:
        return "unknown MPI"
    version = _version(image, mpi, real)
    return f"{mpi.name}{f' {version}' if version else ''} (mpiImplementation: {mpi.implementation})"


def _which(image: Image, mpirun: str) -> Mpi | None:
    directory = mpirun.rpartition("/")[0]
    programs = {path.rpartition("/")[2] for path in image.files if path.startswith(f"{directory}/")}
    named = (mpi for mpi in _MPIS if any(name in mpirun for name in mpi.packages))
    recognised = (
        mpi for mpi in _MPIS if programs & {*mpi.programs, f"mpirun.{mpi.implementation.lower()}"}
    )
    return next(named, None) or next(recognised, None)


def _version(image: Image, mpi: Mpi, mpirun: str) -> str:
    versions = chain(
        _of_debian(image, mpi), _of_path(mpirun), _of_wheels(image, mpi), _of_library(image, mpi)
    )
    return next(versions, "")


def _of_debian(image: Image, mpi: Mpi) -> Iterator[str]:
    status = image.text("/var/lib/dpkg/status")
    for package in mpi.packages:
        found = re.search(
            rf"^Package: {package}\n(?:.+\n)*?Version: (?:\d+:)?(?:[\d.]+\+really)?([\d.]+)",
            status,
            re.MULTILINE,
        )
        if found:
            yield found[1].rstrip(".")


def _of_path(mpirun: str) -> list[str]:
    return re.findall(r"/(\d+\.\d+(?:\.\d+)?)/", mpirun)


def _of_wheels(image: Image, mpi: Mpi) -> Iterator[str]:
    for path in image.files:
        found = re.search(r"/([a-z_]+)-([\d.]+)\.dist-info$", path)
        if found and found[1] in mpi.packages:
            yield found[2]


# The number of libmpi.so.40.<this> in each series of Open MPI.
_SERIES: Mapping[str, str] = {"20": "4.0", "30": "4.1", "40": "5.0"}


def _of_library(image: Image, mpi: Mpi) -> Iterator[str]:
    if mpi.implementation != "OpenMPI":
        return
    for path in image.files:
        found = re.search(r"/libmpi\.so\.40\.(\d\d)\.", path)
        if found and found[1] in _SERIES:
            yield _SERIES[found[1]]
