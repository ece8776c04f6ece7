"""The reference of `mpijob`: every verb with its options and examples, as `--help` has them."""

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

from mpi_operator.cli.main import mpijob

_WIDTH = 120


def text() -> str:
    context = click.Context(mpijob, info_name="mpijob")
    verbs = "".join(_verb(mpijob, name, context) for name in mpijob.list_commands(context))
    return (
        "# `mpijob`\n\n"
        "`mpijob --help` lists the verbs, `mpijob VERB --help` shows what is below, and"
        " `mpijob --version` the version.\n"
        "[How to run a job here](../how-to/run-a-job-here.md).\n"
        f"{verbs}"
    )


def _verb(group: click.Group, name: str, parent: click.Context) -> str:
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    if isinstance(command, click.Group):
        return "".join(_verb(command, each, context) for each in command.list_commands(context))
    usage = " ".join(command.collect_usage_pieces(context))
    options = "".join(map(_option_row, _options(command)))
    table = f"\n| option | default | meaning |\n|---|---|---|\n{options}" if options else ""
    return (
        f"\n## `{context.command_path}`\n\n"
        f"```\n{context.command_path} {usage}\n```\n\n{_help(command)}{table}"
    )


def _help(command: click.Command) -> str:
    """The help of a verb; what it shows line by line, such as examples, becomes a code block."""
    parts = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n".join(_paragraph(part) for part in parts)


def _paragraph(part: str) -> str:
    if not part.startswith("\b"):
        joined = " ".join(part.split())
        return textwrap.fill(joined, _WIDTH, break_on_hyphens=False, break_long_words=False) + "\n"
    title, *lines = part.removeprefix("\b\n").splitlines()
    block = textwrap.dedent("\n".join(lines))
    return f"{title}\n\n```\n{block}\n```\n"


def _options(command: click.Command) -> Iterator[click.Option]:
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            yield option


def _option_row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    return f"| {names}{_value(option)} | {_default(option)} | {_escaped(option.help or '')} |\n"


def _value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return f" `{_escaped('|'.join(option.type.choices))}`"
    return f" `{option.metavar}`" if option.metavar else ""


def _default(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    return f"`{option.default}`" if option.show_default and option.default is not None else ""


def _escaped(meaning: str) -> str:
    return re.sub(r"\|", r"\\|", meaning)
