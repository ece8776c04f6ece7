"""The help of `mpijob` and its verbs."""

import ast
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from mpi_operator.cli.main import mpijob

OUR_FIRST = (".signals", ".standard_streams")
VERBS = [
    "run",
    "list",
    "get",
    "describe",
    "logs",
    "wait",
    "exec",
    "scale",
    "suspend",
    "resume",
    "delete",
    "validate",
    "convert",
]

OF_CLUSTERS = ["install", "upgrade", "uninstall", "version"]


def help_of(*words: str) -> str:
    result = CliRunner().invoke(mpijob, [*words, "--help"])
    assert result.exit_code == 0
    return result.output


def test_every_verb_is_listed():
    names = re.findall(r"^  (\w+)  ", help_of().partition("Commands:")[2], re.M)
    assert names == [*VERBS, "image", *OF_CLUSTERS]


def test_the_list_says_what_each_verb_says_itself():
    context = click.Context(mpijob)
    for name in mpijob.list_commands(context):
        command = mpijob.get_command(context, name)
        assert command is not None
        assert re.search(
            rf"^  {name} +{re.escape(command.get_short_help_str(100))}$", help_of(), re.M
        )


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_verb(option):
    program = (
        "import sys; sys.argv[1:] = sys.argv[1:]\n"
        "from mpi_operator.cli.main import mpijob\n"
        "try: mpijob(prog_name='mpijob')\n"
        "except SystemExit: print([n for n in sys.modules if n.startswith('mpi_operator.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, option], capture_output=True, text=True, check=True
    )
    loaded = ast.literal_eval(done.stdout.splitlines()[-1])
    assert {*loaded} <= {f"mpi_operator.cli{part}" for part in ("", ".main", *OUR_FIRST)}


@pytest.mark.parametrize("words", [*VERBS, "image check"])
def test_every_verb_has_an_example(words):
    assert f"  mpijob {words}" in help_of(*words.split())


def test_an_unknown_verb_gets_a_suggestion():
    result = CliRunner().invoke(mpijob, ["lst"])
    assert result.exit_code == 2
    assert "No such command 'lst'. Did you mean 'list'?" in result.output
