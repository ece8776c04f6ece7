"""The same commit gives the same files, byte by byte, wherever and whenever they are made."""

import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.release import chart_package, manifests, python_packages
from scripts.release.checksums import digest
from scripts.release.source import Source

ROOT = Path(__file__).parents[3]
PARTS = ("src", "deploy", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
EPOCH = 1_700_000_000


def copied(directory: Path, modified: int) -> Source:
    """A copy of what is released, with another age."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PARTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if not (ROOT / name).exists():
            continue  # deleted, and not committed
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, directory / name)
        os.utime(directory / name, (modified, modified))
    return Source(directory, "1.2.3", EPOCH)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two releases of the same files, in different places and from files of different age."""
    made = []
    for name, modified in (("one", 1_500_000_000), ("two", 1_600_000_000)):
        place = tmp_path_factory.mktemp(name)
        source = copied(place / f"checkout-{name}", modified)
        python_packages.build(source, place / "release/python")
        chart_package.build(source.directory / "deploy/chart", place / "release/chart", EPOCH)
        manifests.write(source, place / "release/manifests")
        made.append(place / "release")
    return made


def digests(release: Path) -> dict[str, str]:
    files = (path for path in release.rglob("*") if path.is_file())
    return {path.relative_to(release).as_posix(): digest(path) for path in files}


def only(release: Path, pattern: str) -> Path:
    [found] = release.glob(pattern)
    return found


def test_wheel_source_chart_and_manifests_are_reproducible(releases: list[Path]) -> None:
    one, two = map(digests, releases)
    assert len(one) == 5
    assert one == two


def test_the_wheel_has_the_package_and_nothing_else(releases: list[Path]) -> None:
    names = zipfile.ZipFile(only(releases[0], "python/*.whl")).namelist()
    others = [name for name in names if not name.startswith("mpi_operator/")]
    outside_metadata = [name for name in others if ".dist-info/" not in name]
    assert [name.partition("/")[2] for name in outside_metadata] == ["scripts/mpijob"]
    shipped = {name for name in names if name.startswith("mpi_operator/")}
    package = ROOT / "src/mpi_operator"
    there = {
        f"mpi_operator/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert shipped == there


def test_the_chart_package_has_one_folder_with_the_chart(releases: list[Path]) -> None:
    with tarfile.open(only(releases[0], "chart/*.tgz")) as package:
        names = set(package.getnames())
    assert {name.partition("/")[0] for name in names} == {"mpi-operator"}
    assert {"mpi-operator/Chart.yaml", "mpi-operator/templates/crd.yaml"} <= names


def test_the_manifests_are_those_of_deploy(releases: list[Path]) -> None:
    with tarfile.open(only(releases[0], "manifests/*.tar.gz")) as archive:
        names = set(archive.getnames())
    assert {"deploy/v2beta1/mpi-operator.yaml", "deploy/base/kustomization.yaml"} <= names
    assert not [name for name in names if name.startswith(("deploy/chart", "deploy/images"))]
