"""What the tests of the development cluster share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from devcluster import binaries, runs
from devcluster.control_plane import ControlPlane

Owner = tuple[subprocess.Popen[str], Path]
StartOwner = Callable[[], Owner]

_OWNER = """
import sys
from devcluster.control_plane import ControlPlane
with ControlPlane() as control_plane:
    print(control_plane.directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own for runs, so that nothing else on this machine is seen or touched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """All programs, for tests that start them in another process."""
    try:
        return binaries.provide(binaries.USES["control-plane"])
    except binaries.CannotBuild as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def minimal(programs: dict[str, Path]) -> Iterator[ControlPlane]:
    """Only etcd and the API server. A test may break it if it mends it again."""
    with ControlPlane() as control_plane:
        yield control_plane


@pytest.fixture
def start_owner(state: Path, programs: dict[str, Path]) -> Iterator[StartOwner]:
    """Starts another process that owns a control plane; returns it and the run's directory."""
    owners: list[subprocess.Popen[str]] = []

    def start() -> Owner:
        owner = subprocess.Popen(
            [sys.executable, "-c", _OWNER],
            cwd=Path(runs.__file__).parents[1],
            env=os.environ | {"XDG_STATE_HOME": str(state)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        owners.append(owner)
        assert owner.stdout
        return owner, Path(owner.stdout.readline().strip())

    yield start
    for owner in owners:
        with suppress(ProcessLookupError):
            owner.kill()
        owner.communicate()
    runs.reap()
