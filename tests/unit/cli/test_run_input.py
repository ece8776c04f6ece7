"""Arguments of `mpijob run` that are missing, or do not belong together."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpi_operator.cli.verbs.run import run_command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prefix", "rank", "-d"], "--prefix rank cannot be used with --detach"),
        (["--timestamps", "-d"], "--timestamps cannot be used with --detach"),
        (["--prefix", "rank", "-o", "json"], "--prefix rank cannot be used with -o json"),
        (["--dry-run", "-d"], "--detach cannot be used with --dry-run"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message):
    result = CliRunner().invoke(run_command, [*options, "-np", "2", "true"])
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param([], "Missing argument 'FILE | PROGRAM", id="nothing at all"),
        pytest.param(["-np", "2"], "Missing argument 'FILE | PROGRAM", id="ranks of no program"),
        pytest.param(["--workers", "2", "--", "", "x"], "the program is empty", id="after --"),
    ],
)
def test_there_must_be_something_to_run(words, message):
    result = CliRunner().invoke(run_command, words)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "nosuch.yaml"], id="a file that does not exist"),
        pytest.param(["run"], id="a usage error"),
        pytest.param(["lst"], id="an unknown verb"),
    ],
)
def test_an_error_that_cannot_be_printed_has_its_exit_code(words):
    program = "from mpi_operator.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", program, *words], stderr=full, check=False)
    assert done.returncode == 2
