"""The help of `mpijob` and its verbs."""

import re

import pytest
from click.testing import CliRunner

from mpi_operator.cli.main import mpijob

VERBS = [
    "run",
    "list",
    "get",
    "describe",
    "logs",
    "scale",
    "suspend",
    "resume",
    "delete",
    "validate",
    "convert",
]


def help_of(*words: str) -> str:
    result = CliRunner().invoke(mpijob, [*words, "--help"])
    assert result.exit_code == 0
    return result.output


def test_every_verb_is_listed():
    names = re.findall(r"^  (\w+)  ", help_of().partition("Commands:")[2], re.M)
    assert names == [*VERBS, "image"]


@pytest.mark.parametrize("words", [*VERBS, "image check"])
def test_every_verb_has_an_example(words):
    assert f"  mpijob {words}" in help_of(*words.split())


def test_an_unknown_verb_gets_a_suggestion():
    result = CliRunner().invoke(mpijob, ["lst"])
    assert result.exit_code == 2
    assert "No such command 'lst'. Did you mean 'list'?" in result.output
