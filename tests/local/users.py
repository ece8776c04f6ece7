"""The users that run `mpijob`: the one that runs the tests, and one without privileges."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.local.environments import Environment, environment
from tests.local.shell import ROOT, Shell, User

NOBODY = 65534
_PYTHON = "/usr/bin/python3"  # ours may be in a home directory that other users cannot enter
_BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
_WHEELS = Path("/var/tmp") / f"mpi-operator-tests-{NOBODY}"  # kept, because they are large
_NEEDS = ("click==8.5.1", "msgspec==0.22.0", "PyYAML==6.0.3")


class CurrentUser:
    """The user that runs the tests."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def mpi(self, implementation: str, *extra: str) -> Environment:
        return environment(implementation, extra=extra)

    def shell(self, mpi: Environment, variables: Mapping[str, str] | None = None) -> Shell:
        return Shell(self.home, mpi, User(environment={**os.environ, **(variables or {})}))


class UnprivilegedUser(CurrentUser):
    """A user without privileges, with its own Python and MPIs."""

    def mpi(self, implementation: str, *extra: str) -> Environment:
        return environment(implementation, python=_PYTHON, place=_WHEELS, extra=(*_NEEDS, *extra))

    def shell(self, mpi: Environment, variables: Mapping[str, str] | None = None) -> Shell:
        own = {
            **(variables or {}),
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return Shell(self.home, mpi, User(str(mpi.python), _BECOME, own))


@contextmanager
def unprivileged_user() -> Iterator[UnprivilegedUser]:
    """An unprivileged user whose home exists until the block ends."""
    if reason := _why_not():
        pytest.skip(reason)
    _WHEELS.mkdir(exist_ok=True, mode=0o755)
    assert _WHEELS.stat().st_uid == 0, f"{_WHEELS} belongs to another user: remove it"
    home = Path("/var/tmp") / f"mpi-operator-home-{os.getpid()}"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    try:
        yield UnprivilegedUser(home)
    finally:
        shutil.rmtree(home)


def _why_not() -> str:
    if os.geteuid() != 0:
        return "the tests do not run as root, so all of them run without privileges"
    if not shutil.which("setpriv"):
        return "setpriv of util-linux is missing: root cannot become another user"
    read = f"import sys, venv; open({str(ROOT / 'pyproject.toml')!r})"
    check = [*_BECOME, _PYTHON, "-c", f"{read}; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(check, capture_output=True, check=False).returncode:
        return "another user cannot read this checkout, or has no Python 3.11"
    return ""
