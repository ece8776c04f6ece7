"""How `mpijob` ends: its exit codes, and errors with a message for the user."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import IO, Any, ParamSpec

import click

from mpi_operator.kube import errors

from . import signals
from .plain_text import printable_lines

P = ParamSpec("P")

SUCCESS = 0
FAILURE = 1
INVALID_INPUT = 2
TIMEOUT = 124
BROKEN_PIPE = signals.exit_code(signal.SIGPIPE)


class CommandError(click.ClickException):
    """A verb cannot do what was asked: why, and a command that helps if there is one."""

    exit_code = FAILURE

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"mpijob: {printable_lines(self.message)}", err=True)
        if self.command:
            click.echo(printable_lines(self.command), err=True)


class InvalidInput(CommandError):
    """A file, an image or an option cannot be used."""

    exit_code = INVALID_INPUT


def asynchronous(work: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a coroutine function the callback of a verb."""

    @wraps(work)
    def callback(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            asyncio.run(work(*args, **kwargs))
        except errors.KubeError as error:
            raise CommandError(str(error)) from error

    return callback
