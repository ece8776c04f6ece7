"""`mpijob exec`: run a command in the sandbox of the launcher or of a worker."""

import os
import shlex
import sys
from pathlib import Path

import click

from mpi_operator.api import labels, names
from mpi_operator.cli.command_errors import CommandError, asynchronous
from mpi_operator.cli.job_output.job_stream import role_of
from mpi_operator.cli.known_jobs import local_jobs
from mpi_operator.cli.known_jobs.local_jobs import RunningJob
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import PODS
from mpi_operator.local.kubelet import pod_logs
from mpi_operator.local.remote_exec import agent
from mpi_operator.local.remote_exec.stand_ins import SOCKET

from . import arguments

_HERE = "localhost"


@click.command("exec")
@arguments.NAME
@arguments.WORKER
@arguments.RUN
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@asynchronous
async def exec_command(
    name: str, worker: int | None, run: str | None, command: tuple[str, ...]
) -> None:
    """Run COMMAND in the launcher or in a worker of a running job.

    The command gets the variables, volumes and host name of the main container, and a terminal if
    standard input is one. The exit code is that of the command.

    \b
    Examples:
      mpijob exec pi -- cat /etc/mpi/hostfile
      mpijob exec pi --worker 1 -- hostname
      mpijob exec pi -w 0 -- sh
    """
    found = await local_jobs.find_running(name, run)
    pod = await _pod(found, worker)
    place = pod_logs.directory_of(found.cluster.run, pod)
    if place is None:
        raise CommandError(f"{pod} of {found} is not running")
    sys.stdout.flush()
    sys.exit(_run(place / pod_logs.HOME / SOCKET, shlex.join(command)))


async def _pod(found: RunningJob, worker: int | None) -> str:
    """The name of the pod; the newest launcher, because it may have been tried several times."""
    if worker is not None:
        arguments.check_worker(found, worker)
        return names.worker(found.job, worker)
    selector = labels.as_selector(labels.pod_selector(found.job))
    pods = (await found.cluster.list(PODS, found.namespace, Selector(labels=selector))).items
    launchers = [each for each in pods if role_of(each) == labels.Role.LAUNCHER]
    if not launchers:
        raise CommandError(f"the launcher of {found} has not been created yet")
    newest = max(launchers, key=lambda each: str(each["metadata"]["creationTimestamp"]))
    return str(newest["metadata"]["name"])


def _run(address: Path, command: str) -> int:
    if not os.isatty(0):
        return agent.main([str(address), _HERE, command])
    from . import terminal  # noqa: PLC0415 — only a terminal needs it

    return terminal.run(str(address), ["run", _HERE, f"{_terminal_type()}exec {command}"])


def _terminal_type() -> str:
    """The container has the type of the terminal that the job was started in, if any."""
    kind = os.environ.get("TERM")
    return f"export TERM={shlex.quote(kind)}; " if kind else ""
