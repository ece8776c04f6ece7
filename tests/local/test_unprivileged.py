"""The same as a user who may do nothing special. Tests of root become that user for a while."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.local.environments import PACKAGES, environment

CHECKOUT = Path(__file__).parents[2]
NOBODY = 65534
PYTHON = "/usr/bin/python3"  # of the machine: our own may be in a home that others cannot enter

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("this is not root, so every test runs without privileges anyway")
    if not shutil.which("setpriv"):
        pytest.skip("setpriv of util-linux is missing: root cannot become somebody else")
    probe = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    sees = [
        *probe,
        PYTHON,
        "-c",
        f"import sys, venv; open({str(CHECKOUT / 'pyproject.toml')!r}); "
        "sys.exit(sys.version_info < (3, 11))",
    ]
    if subprocess.run(sees, capture_output=True, check=False).returncode:
        pytest.skip("another user cannot read this checkout, or there is no Python 3.11 for them")
    directory = Path("/var/tmp") / f"mpi-operator-tests-{NOBODY}"  # kept: wheels are large
    directory.mkdir(exist_ok=True, mode=0o755)
    assert directory.stat().st_uid == 0, f"{directory} is somebody else's: remove it"
    return directory


@pytest.mark.parametrize("implementation", PACKAGES)
def test_a_job_of_somebody_without_privileges(place, tmp_path, root, kind, implementation):
    made = environment(implementation, python=PYTHON, place=place, extra=("msgspec",))
    home = Path("/var/tmp") / f"mpi-operator-home-{os.getpid()}"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    try:
        done = subprocess.run(
            [
                *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"),
                *(str(made.python), "-m", "tests.local.whole_job", str(home)),
                *(kind.value, implementation),
            ],
            cwd=CHECKOUT,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(home),
                "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.splitlines()[-2:] == [
            "(0, 'default/pi-worker-0', 3)",
            "(1, 'default/pi-worker-1', 3)",
        ], done.stdout + done.stderr
        assert sorted(entry.name for entry in home.iterdir()) == ["ranks.py", "runs"]
    finally:
        shutil.rmtree(home)
