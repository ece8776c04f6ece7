"""The first commands of the how-to, typed in a fresh checkout, and those of the README."""

import os
import re
import shutil
import subprocess

import pytest

from tests.local.shell import ROOT

HOW_TO = ROOT / "docs" / "how-to" / "run-a-job-here.md"
PROGRAM = "mpijob run -np 2 python examples/pi/pi.py"


def snippets(text: str) -> list[str]:
    return re.findall(r"```shell\n(.*?)```", text, re.DOTALL)


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
    script = snippets(HOW_TO.read_text())[0]
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=checkout,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("pi is about 3.1") == 2


def test_the_readme_shows_the_form_without_a_file_first():
    start = (ROOT / "README.md").read_text().partition("## 60-second start")[2]
    make, commands, *_ = snippets(start)
    typed = [line.partition("  #")[0].rstrip() for line in commands.splitlines()]
    assert typed[:2] == [". .venv-demo/bin/activate", PROGRAM]
    known = snippets(HOW_TO.read_text())[0].splitlines()
    assert {*typed} <= {*known}  # the other test runs them
    shown = subprocess.run(
        ["make", "--dry-run", *make.split()[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[-1] == f". .venv-demo/bin/activate && {PROGRAM}"
