"""What `mpijob --help` says."""

import re

import pytest
from click.testing import CliRunner

from mpi_operator.cli.main import mpijob

ABOUT_A_JOB = ["get", "describe", "logs", "scale", "suspend", "resume", "delete"]


def help_of(*words: str) -> str:
    told = CliRunner().invoke(mpijob, [*words, "--help"])
    assert told.exit_code == 0
    return told.output


def test_every_verb_is_named():
    names = re.findall(r"^  (\w+)  ", help_of().partition("Commands:")[2], re.M)
    assert names == ["run", "list", *ABOUT_A_JOB, "image"]


@pytest.mark.parametrize("words", ["run", "list", *ABOUT_A_JOB, "image check"])
def test_each_has_an_example(words):
    assert f"  mpijob {words}" in help_of(*words.split())


def test_what_is_no_verb_is_told_with_the_one_that_may_be_meant():
    told = CliRunner().invoke(mpijob, ["lst"])
    assert told.exit_code == 2
    assert "No such command 'lst'. Did you mean 'list'?" in told.output
