"""The wheel in an empty environment, on each supported Python that this machine has."""

import subprocess
import sys
from pathlib import Path

import pytest

from mpi_operator import __version__
from scripts.release import python_packages
from scripts.release.source import Source
from tests.support import pythons

ROOT = Path(__file__).parents[2]
PYTHONS = pythons.installed()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_packages.build(Source(ROOT, __version__, 0), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=PYTHONS)
def programs(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The directory of the programs that the wheel installs."""
    place = tmp_path_factory.mktemp("venv")
    subprocess.run([PYTHONS[request.param], "-m", "venv", "--without-pip", place], check=True)
    into = [sys.executable, "-m", "pip", "--python", str(place / "bin/python")]
    pinned = ["--quiet", "--no-compile", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*into, "install", *pinned, f"{wheel}[cli]"], check=True, timeout=200)
    return place / "bin"


def output(program: Path, *arguments: str) -> str:
    # Away from the checkout, whose packages Python would find first.
    return subprocess.run(
        [program, *arguments], cwd="/", env={}, capture_output=True, text=True, check=True
    ).stdout


def test_this_python_is_among_them() -> None:
    assert "{}.{}".format(*sys.version_info) in PYTHONS


def test_the_commands_work(programs: Path) -> None:
    assert output(programs / "mpijob", "--version") == f"mpijob {__version__}\n"
    assert output(programs / "mpi-operator", "--help").startswith("usage: mpi-operator")
    assert __version__ in output(programs / "mpi-operator", "--version")


def test_the_files_that_are_not_python_are_there(programs: Path, tmp_path: Path) -> None:
    """A job has shell scripts of ours, and its schema is a file."""
    job = tmp_path / "job.yaml"
    job.write_text((ROOT / "examples/pi/pi.yaml").read_text())
    output(programs / "mpijob", "validate", "--strict", str(job))
    assert "kind: MPIJob" in output(
        programs / "mpijob", "run", "-np", "2", "--image=it", "--dry-run", "-o", "yaml", "hostname"
    )
