"""Arguments that several verbs have."""

import click

NAME = click.argument("name")
RUN = click.option(
    "--run",
    metavar="ID",
    help="Which one, where several jobs have the same name: the run that `mpijob list` shows.",
)
OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="For people, or the whole objects for programs.",
)
