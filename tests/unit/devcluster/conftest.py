"""A home of its own for each test, and a `go` that does what the test says."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

FakeGo = Callable[..., None]

_GO = """#!/bin/sh
case "$1" in
version) {version};;
build)
    while [ "$1" != -o ]; do shift; done
    echo compiled >> {compilations}
    {build}
    printf '#!/bin/sh\\necho %s\\n' {reports} > "$2"
    chmod +x "$2";;
esac
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the caches and clusters of the person who runs it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


@pytest.fixture
def fake_go(home: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """Puts a `go` on the PATH whose programs report a version; called again, it replaces it."""
    program = home / "bin" / "go"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    def install(
        *,
        reports: str = "v3.6.5",
        build: str = ":",
        version: str = "echo go version go1.99.0 linux/amd64",
    ) -> None:
        program.write_text(
            _GO.format(
                version=version,
                build=build,
                reports=shlex.quote(reports),
                compilations=home / "compilations",
            )
        )
        program.chmod(0o755)

    install()
    return install
