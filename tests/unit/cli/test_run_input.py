"""Arguments of `mpijob run` that are missing, or do not belong together."""

import pytest
from click.testing import CliRunner

from mpi_operator.cli.run import run_command


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
        pytest.param(["-np", "2", ""], "the name of the program is empty", id="an empty program"),
        pytest.param(["--workers", "2", "--", "", "x"], "the name of the program", id="after --"),
    ],
)
def test_there_must_be_something_to_run(words, message):
    result = CliRunner().invoke(run_command, words)
    assert result.exit_code == 2
    assert message in result.output
