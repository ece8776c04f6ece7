"""Arguments that several verbs share."""

import click

NAME = click.argument("name")
RUN = click.option(
    "--run",
    metavar="ID",
    help="Select the run if several jobs have this name; see `mpijob list`.",
)
OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Print a table, or whole objects for programs.",
)
