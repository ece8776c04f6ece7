"""Options of `mpijob run` that do not belong together."""

import pytest
from click.testing import CliRunner

from mpi_operator.cli.run import run_command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prefix", "rank", "-d"], "--prefix rank cannot be used with --detach"),
        (["--timestamps", "-d"], "--timestamps cannot be used with --detach"),
        (["--prefix", "rank", "-o", "json"], "--prefix rank cannot be used with -o json"),
    ],
)
def test_options_about_lines_need_lines(options, message):
    result = CliRunner().invoke(run_command, [*options, "-np", "2", "true"])
    assert result.exit_code == 2
    assert message in result.output
