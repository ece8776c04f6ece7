"""The commit that is released."""

import subprocess
from pathlib import Path

import pytest

from devcluster.image_builds import catalog
from scripts.release import checksums
from scripts.release.source import NotReleasable, export


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    (place / "src/mpi_operator").mkdir(parents=True)
    (place / "src/mpi_operator/__init__.py").write_text('__version__ = "1.2.3"  # the one\n')
    (place / ".gitignore").write_text("*.secret\n")
    (place / "mine.secret").write_text("not for others")
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message=it", "--date=@1700000000 +0000")
    return place


def git(place: Path, *arguments: str) -> None:
    who = ("-c", "user.name=it", "-c", "user.email=it@example.com")
    subprocess.run(["git", "-C", str(place), *who, *arguments], check=True)


def test_only_committed_files_are_released(checkout: Path, tmp_path: Path) -> None:
    source = export(checkout, tmp_path / "export", "v1.2.3")
    files = {path.name for path in source.directory.rglob("*") if path.is_file()}
    assert files == {"__init__.py", ".gitignore"}
    assert source.version == "1.2.3"


@pytest.mark.parametrize("name", ["new.py", "src/mpi_operator/__init__.py"])
def test_uncommitted_changes_are_not_released(checkout: Path, tmp_path: Path, name: str) -> None:
    (checkout / name).write_text("changed")
    with pytest.raises(NotReleasable, match=name):
        export(checkout, tmp_path / "export")


def test_a_tag_of_another_version_is_not_released(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(NotReleasable, match=r"The tag is v2\.0, but the version is 1\.2\.3"):
        export(checkout, tmp_path / "export", "v2.0")


def test_sha256sum_finds_a_changed_file(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part/file").write_text("as released")
    checksums.write(tmp_path)
    check = ["sha256sum", "--check", "--status", checksums.FILE]
    assert subprocess.run(check, cwd=tmp_path).returncode == 0
    (tmp_path / "part/file").write_text("not as released")
    assert subprocess.run(check, cwd=tmp_path).returncode == 1


def test_images_of_tests_are_not_released() -> None:
    released = set(catalog.released())
    assert {"mpi-operator", "kubectl-delivery", "base-trixie", "openmpi-builder"} <= released
    assert not {name for name in released if "flyte" in name or "no-sshd" in name}
    # People who build on one of our images can get all of its parts.
    needed = {need for name in released for need in catalog.IMAGES[name].needs}
    assert needed <= released
