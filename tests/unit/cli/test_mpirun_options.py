"""Options that `mpijob run` gives to the mpirun of a job."""

from pathlib import Path

import pytest

from mpi_operator.api.decode import decode_job
from mpi_operator.cli.job_input.workload import LoadedJob
from mpi_operator.cli.running.mpirun_options import with_live_output
from mpi_operator.local.mpi_installation import Installation
from tests.support.mpijobs import mpijob

RAW = ["--output", ":raw"]


@pytest.fixture
def open_mpi_5(tmp_path):
    (tmp_path / "prterun").touch()
    (tmp_path / "mpirun").touch()
    return Installation("OpenMPI", tmp_path / "mpirun")


def command_with_live_output(command: list[str], installation: Installation) -> list[str]:
    manifest = mpijob()
    launcher = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    launcher["containers"][0]["command"] = command
    loaded = LoadedJob(manifest, decode_job(manifest), (), Path())
    changed = with_live_output(loaded, installation).manifest
    assert launcher["containers"][0]["command"] is command  # the job itself is not changed
    launcher = changed["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    return [*launcher["containers"][0]["command"]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["mpirun", "a"], ["mpirun", *RAW, "a"]),
        (["/usr/bin/mpiexec", "-n", "2", "a"], ["/usr/bin/mpiexec", *RAW, "-n", "2", "a"]),
        (["mpirun", "a", "--output", "x"], ["mpirun", *RAW, "a", "--output", "x"]),
        (["mpirun", "--output", "tag", "a"], ["mpirun", "--output", "tag", "a"]),
        (["mpirun", "-n", "2", "--tag-output", "a"], ["mpirun", "-n", "2", "--tag-output", "a"]),
        (["sh", "-c", "mpirun a"], ["sh", "-c", "mpirun a"]),
    ],
    ids=[
        "mpirun",
        "options of its own",
        "options of the program",
        "another output",
        "tags",
        "script",
    ],
)
def test_mpirun_of_open_mpi_5_does_not_wait_for_lines(open_mpi_5, before, after):
    assert command_with_live_output(before, open_mpi_5) == after


def test_other_mpis_do_not_wait_for_lines(open_mpi_5, tmp_path):
    mpich = Installation("MPICH", open_mpi_5.mpirun)
    assert command_with_live_output(["mpirun", "a"], mpich) == ["mpirun", "a"]
    (tmp_path / "orterun").touch()
    open_mpi_5.mpirun.unlink()
    open_mpi_5.mpirun.symlink_to("orterun")  # Open MPI 4, beside the PRRTE of another package
    assert command_with_live_output(["mpirun", "a"], open_mpi_5) == ["mpirun", "a"]
