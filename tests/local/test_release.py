"""A whole release, made from a commit of the current files."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from mpi_operator import __version__
from tests.support import virtual_environments

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "scripts/release/requirements.txt"
IMAGES = ("mpi-operator", "kubectl-delivery")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose only commit has the current files."""
    place = tmp_path_factory.mktemp("checkout")
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in git(ROOT, *listing).rstrip("\0").split("\0"):
        if (ROOT / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message=all of it")
    return place


def git(place: Path, *arguments: str) -> str:
    who = ("-c", "user.name=it", "-c", "user.email=it@example.com")
    command = ["git", "-C", str(place), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def release(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make release images='mpi-operator kubectl-delivery'` writes."""
    try:
        image_builds.provide(IMAGES)
    except CannotBuild as error:
        pytest.skip(str(error))
    output = tmp_path_factory.mktemp("release") / "dist"
    [tool] = re.findall(r"^cyclonedx-bom==.+$", REQUIREMENTS.read_text(), re.MULTILINE)
    pins = {"PIP_CONSTRAINT": str(REQUIREMENTS)}
    tools = virtual_environments.provide(tool, variables=pins)
    options = (f"--output={output}", f"--tools={tools}", "--images", *IMAGES)
    subprocess.run(
        [sys.executable, "-m", "scripts.release", *options],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": f"{checkout}/src:{checkout}"},
        check=True,
        timeout=200,
    )
    return output


def components(release: Path, name: str) -> set[str]:
    bill = json.loads((release / "sbom" / name).read_text())
    assert bill["bomFormat"] == "CycloneDX"
    return {each["purl"].partition("?")[0] for each in bill["components"]}


def test_it_has_all_parts_and_their_digests(release: Path) -> None:
    files = {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()}
    [chart] = (name for name in files if name.startswith("chart/"))
    assert files == {
        "RELEASE_NOTES.md",
        "SHA256SUMS",
        chart,
        "images/kubectl-delivery.tar.gz",
        "images/mpi-operator.tar.gz",
        "manifests/mpi-operator.yaml",
        f"manifests/mpi-operator-{__version__}-manifests.tar.gz",
        f"python/mpi_operator-{__version__}-py3-none-any.whl",
        f"python/mpi_operator-{__version__}.tar.gz",
        f"sbom/mpi-operator-{__version__}.cdx.json",
        "sbom/kubectl-delivery-image.cdx.json",
        "sbom/mpi-operator-image.cdx.json",
    }
    check = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release)
    assert check.returncode == 0
    assert len((release / "SHA256SUMS").read_text().splitlines()) == len(files) - 1


def test_the_bill_of_the_wheel_has_its_dependencies_in_the_pinned_versions(release: Path) -> None:
    name = f"mpi-operator-{__version__}.cdx.json"
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    found = components(release, name)
    wanted = ("aiohttp", "click", "cryptography", "msgspec")
    assert {f"pkg:pypi/{each}@{pins[each]}" for each in wanted} <= found
    assert not [each for each in found if each.startswith("pkg:pypi/pip@")]
    # Nothing about the machine that made it.
    assert "file://" not in (release / "sbom" / name).read_text()


def test_the_bill_of_the_image_has_debian_and_python_packages(release: Path) -> None:
    found = components(release, "mpi-operator-image.cdx.json")
    names = {each.partition("@")[0] for each in found}
    assert {"pkg:deb/debian/libc6", "pkg:deb/debian/libssl3t64", "pkg:pypi/aiohttp"} <= names
    assert f"pkg:pypi/mpi-operator@{__version__}" in found


def test_the_bill_of_an_image_has_go_modules(release: Path) -> None:
    found = components(release, "kubectl-delivery-image.cdx.json")
    [required] = re.findall(
        r"^require (\S+) (\S+)", (ROOT / "cmd/kubectl-delivery/go.mod").read_text(), re.MULTILINE
    )[:1]
    assert f"pkg:golang/{'@'.join(required)}" in found
    assert [each for each in found if each.startswith("pkg:golang/stdlib@1.")]


def test_a_tag_of_another_version_is_refused(checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.release", "--tag=v99", "--images"],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": f"{checkout}/src:{checkout}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == f"error: The tag is v99, but the version is {__version__}\n"
    assert not (checkout / "dist").exists()
