"""Ranks of Open MPI use loopback, unless something has chosen another network."""

from pathlib import Path

import pytest

from mpi_operator.local.kubelet.container_env import Tools
from mpi_operator.local.kubelet.network_choice import network_variables

LOOPBACK = {"OMPI_MCA_btl_tcp_if_include": "lo"}
EXCLUDE = "btl_tcp_if_exclude = docker0\n"


def chosen(
    tmp_path: Path, *argv: str, variables: dict[str, str] | None = None, prefix: str = ""
) -> dict[str, str]:
    environment = {"HOME": str(tmp_path / "home"), **(variables or {})}
    tools = Tools([tmp_path / prefix / "bin"])
    return network_variables(argv, environment, str(tmp_path), tools)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_ranks_use_loopback(tmp_path):
    assert chosen(tmp_path, "mpirun", "python", "train.py") == LOOPBACK


@pytest.mark.parametrize(
    "argv",
    [
        ("mpirun", "--mca", "btl_tcp_if_exclude", "lo,docker0", "hostname"),
        ("mpirun", "-mca", "btl_tcp_if_include", "eth0", "hostname"),
        ("sh", "-c", "mpirun --mca btl_tcp_if_exclude docker0 hostname"),
        ("horovodrun", "--mpi-args=-mca btl_tcp_if_exclude lo", "python", "train.py"),
    ],
    ids=["excludes networks", "includes a network", "in a shell command", "by horovodrun"],
)
def test_a_choice_on_the_command_line_stays_the_only_one(tmp_path, argv):
    assert chosen(tmp_path, *argv) == {}


@pytest.mark.parametrize(
    "variables",
    [{"OMPI_MCA_btl_tcp_if_exclude": "docker0"}, {"FLAGS": "--mca btl_tcp_if_include eth0"}],
    ids=["by its name", "by its value"],
)
def test_a_choice_in_a_variable_stays_the_only_one(tmp_path, variables):
    assert chosen(tmp_path, "mpirun", "hostname", variables=variables) == {}


@pytest.mark.parametrize(
    "file",
    ["home/.openmpi/mca-params.conf", "mpi/etc/openmpi-mca-params.conf", "run.sh"],
    ids=["of the user", "of the installation", "that is the script of the job"],
)
def test_a_choice_in_a_file_stays_the_only_one(tmp_path, file):
    write(tmp_path / file, EXCLUDE)
    assert chosen(tmp_path, "sh", "run.sh", prefix="mpi") == {}


def test_a_comment_is_no_choice(tmp_path):
    write(tmp_path / "home/.openmpi/mca-params.conf", f"  # {EXCLUDE}")
    assert chosen(tmp_path, "mpirun", "hostname") == LOOPBACK


@pytest.mark.parametrize("word", ["", ".", "a\0b", "x" * 5000, "/proc/self/mem"])
def test_words_that_are_no_scripts_are_no_choice(tmp_path, word):
    assert chosen(tmp_path, "mpirun", word) == LOOPBACK


def test_a_binary_program_is_no_choice(tmp_path):
    (tmp_path / "program").write_bytes(bytes(range(256)) * 1000)
    assert chosen(tmp_path, "mpirun", "./program") == LOOPBACK
