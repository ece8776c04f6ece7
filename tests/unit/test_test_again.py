"""`scripts/test-again`: which failed tests are run again, and what their second result means."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
def test_stable_failure():
    assert False

def test_unstable():
    pass  # now; it is on record as failed
"""
FORBID = "MPI_OPERATOR_FORBID_FLAKES"
UNSTABLE, BROKEN = "tests/test_it.py::test_unstable", "tests/test_it.py::test_stable_failure"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A tree with the script, a Python and two tests."""
    for name in ("scripts", "tests", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "test-again", tmp_path / "scripts")
    python = tmp_path / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "tests/test_it.py").write_text(TESTS)
    return tmp_path


def second_run(
    checkout: Path, failed: list[str], *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    cache = checkout / (arguments[1] if arguments else ".pytest_cache") / "v/cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
    # This run itself may forbid flakes.
    given = {name: each for name, each in os.environ.items() if name != FORBID}
    return subprocess.run(
        [checkout / "scripts/test-again", *arguments],
        env={**given, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("forbid", "code"), [("", 0), ("yes", 1)])
def test_a_test_that_passes_alone_is_named_and_fails_the_run_where_that_is_forbidden(
    checkout: Path, forbid: str, code: int
) -> None:
    run = second_run(checkout, [UNSTABLE], **{FORBID: forbid})
    assert "UNSTABLE" in run.stderr
    assert UNSTABLE in run.stderr
    assert run.returncode == code


@pytest.mark.parametrize(("failed", "code"), [([UNSTABLE], 0), ([UNSTABLE, BROKEN], 1)])
def test_a_run_of_another_python_has_a_cache_of_its_own(
    checkout: Path, failed: list[str], code: int
) -> None:
    run = second_run(checkout, failed, ".venv/bin/python", ".pytest_cache/3.99", "tests")
    assert run.returncode == code
    assert ("UNSTABLE" in run.stderr) == (code == 0)


def test_a_test_that_fails_again_fails_the_run(checkout: Path) -> None:
    run = second_run(checkout, [UNSTABLE, BROKEN])
    assert run.returncode == 1
    assert "UNSTABLE" not in run.stderr


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param([], id="none"),
        pytest.param([f"{UNSTABLE}[{number}]" for number in range(4)], id="too many"),
        pytest.param(["tests/cluster/operator/test_implementations.py::test_x"], id="strict"),
    ],
)
def test_other_runs_are_not_repeated(checkout: Path, failed: list[str]) -> None:
    run = second_run(checkout, failed)
    assert run.returncode == 1
    assert "passed" not in run.stdout
