"""Our own images, by our own measure."""

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from mpi_operator.api.launcher_transport import Transport
from mpi_operator.cli.image_check import image_files
from mpi_operator.cli.image_check.image_contract import State, findings, is_usable
from mpi_operator.cli.image_check.image_files import Image

MPIS = {
    "pi-openmpi": "Open MPI 5.0",
    "pi-openmpi-4": "Open MPI 4.1",
    "pi-mpich": "MPICH 4.2",
    "pi-intel": "Intel MPI 2021",
    "allreduce-benchmark": "Open MPI 5.0",
}  # tests/peers/horovod has those that take long to build


@pytest.mark.timeout(900)  # the first time, they are built
@pytest.mark.parametrize("name", MPIS)
def test_our_images_have_everything_that_a_job_may_need(name):
    check(name, MPIS[name])


def check(name: str, mpi: str) -> None:
    """An image lacks nothing, and has this MPI."""
    image = _image(name)
    found = {each.rule: each for each in findings(image)}
    assert {rule: each for rule, each in found.items() if each.state is not State.OK} == {}
    assert mpi in found["mpirun"].detail
    assert is_usable(findings(image, Transport.EXEC))


@pytest.mark.timeout(900)
def test_an_image_without_sshd_serves_jobs_that_use_exec_and_no_others():
    image = _image("pi-openmpi-no-sshd")
    assert is_usable(findings(image, Transport.EXEC))
    assert not is_usable(findings(image, Transport.SSH))


def _image(name: str) -> Image:
    try:
        archive = image_builds.provide([name])[name]
    except CannotBuild as error:
        pytest.skip(str(error))
    with archive.open("rb") as stream:
        return image_files.of_archive(stream)
