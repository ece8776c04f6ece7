"""The first commands of the how-to, typed in a fresh checkout."""

import os
import re
import shutil
import subprocess

import pytest

from tests.local.shell import ROOT

HOW_TO = ROOT / "docs" / "how-to" / "run-a-job-here.md"


@pytest.fixture
def checkout(tmp_path):
    """What a clone of this checkout would have."""
    listed = subprocess.run(
        ["git", "ls-files", "src", "examples", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        target = tmp_path / "checkout" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return tmp_path / "checkout"


@pytest.mark.timeout(600)
def test_the_first_commands_run_a_job(checkout, tmp_path):
    script = re.findall(r"```shell\n(.*?)```", HOW_TO.read_text(), re.DOTALL)[0]
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=checkout,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pi is about 3.1" in done.stdout
