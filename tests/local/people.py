"""Who types `mpijob`: whoever runs the tests, or a user who may do nothing special."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.local.environments import Environment, environment
from tests.local.shell import ROOT, Shell, User

NOBODY = 65534
_PYTHON = "/usr/bin/python3"  # of the machine: our own may be in a home that others cannot enter
_BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
_WHEELS = Path("/var/tmp") / f"mpi-operator-tests-{NOBODY}"  # kept: they are large
_NEEDS = ("click==8.5.1", "msgspec==0.22.0", "PyYAML==6.0.3")


class Myself:
    """Whoever runs the tests."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def mpi(self, implementation: str, *extra: str) -> Environment:
        return environment(implementation, extra=extra)

    def shell(self, mpi: Environment) -> Shell:
        return Shell(self.home, mpi)


class Nobody(Myself):
    """A user without rights, and with a Python and MPIs of their own."""

    def mpi(self, implementation: str, *extra: str) -> Environment:
        return environment(implementation, python=_PYTHON, place=_WHEELS, extra=(*_NEEDS, *extra))

    def shell(self, mpi: Environment) -> Shell:
        variables = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return Shell(self.home, mpi, User(str(mpi.python), _BECOME, variables))


@contextmanager
def nobody() -> Iterator[Nobody]:
    """That user, with a home for a while."""
    if reason := _why_not():
        pytest.skip(reason)
    _WHEELS.mkdir(exist_ok=True, mode=0o755)
    assert _WHEELS.stat().st_uid == 0, f"{_WHEELS} is somebody else's: remove it"
    home = Path("/var/tmp") / f"mpi-operator-home-{os.getpid()}"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    try:
        yield Nobody(home)
    finally:
        shutil.rmtree(home)


def _why_not() -> str:
    if os.geteuid() != 0:
        return "this is not root, so every test runs without privileges anyway"
    if not shutil.which("setpriv"):
        return "setpriv of util-linux is missing: root cannot become somebody else"
    reads = f"import sys, venv; open({str(ROOT / 'pyproject.toml')!r})"
    looks = [*_BECOME, _PYTHON, "-c", f"{reads}; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(looks, capture_output=True, check=False).returncode:
        return "another user cannot read this checkout, or there is no Python 3.11 for them"
    return ""
