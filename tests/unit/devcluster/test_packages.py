import pytest

from devcluster import packages
from devcluster.binaries import CannotBuild
from devcluster.packages import Package

MISSING = Package("moon-cheese", ("no-such-program",))
PRESENT = Package("dash", ("sh",))


@pytest.fixture
def apt(home, monkeypatch):
    """An apt-get that records its calls, and root's permission to call it."""
    program = home / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {home}/calls\n[ -e {home}/fresh ] || [ $2 = update ]'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return home


def calls(home):
    return [line.split()[1] for line in (home / "calls").read_text().splitlines()]


def test_what_is_there_is_not_installed(apt):
    packages.provide([PRESENT])
    assert not (apt / "calls").exists()


def test_what_is_missing_is_installed_and_named(apt):
    (apt / "fresh").touch()
    lines: list[str] = []
    packages.provide([PRESENT, MISSING], say=lines.append)
    assert lines == ["Installing with apt-get: moon-cheese"]
    assert "moon-cheese" in (apt / "calls").read_text()
    assert "dash" not in (apt / "calls").read_text()


def test_old_lists_of_packages_are_renewed_before_it_fails(apt):
    with pytest.raises(CannotBuild, match="`apt-get install moon-cheese` failed"):
        packages.provide([MISSING], say=lambda line: None)
    assert calls(apt) == ["install", "update", "install"]


def test_without_permission_the_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(CannotBuild, match=r"Nodes need these packages: moon-cheese\."):
        packages.provide([PRESENT, MISSING])
