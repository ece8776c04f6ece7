"""`mpijob install` and `mpijob upgrade`: the operator on a cluster."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from mpi_operator.cli.command_errors import CommandError, InvalidInput, asynchronous
from mpi_operator.cli.duration import Duration
from mpi_operator.cli.format import counted
from mpi_operator.cli.installation import installer, rollout
from mpi_operator.cli.installation.cluster_connection import Chosen, cluster_options, connected
from mpi_operator.cli.manifests import manifest_text
from mpi_operator.install import manifests
from mpi_operator.install.installation import NAME, Installation
from mpi_operator.install.yaml_text import yaml_text
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest

F = TypeVar("F", bound=Callable[..., Any])

_TIMEOUT = 300.0


class _Choices(NamedTuple):
    """What to install, and how."""

    installation: Installation
    is_dry_run: bool
    output: str
    seconds: float | None  # to wait for; None: do not wait


def _options(command: F) -> F:
    for option in reversed(
        [
            click.option(
                "--namespace",
                "-n",
                default=NAME,
                show_default=True,
                metavar="NAME",
                help="Run the operator in this namespace.",
            ),
            click.option(
                "--image",
                default="",
                metavar="IMAGE",
                show_default="the image of this version",
                help="Run this image of the operator.",
            ),
            click.option(
                "--single-namespace",
                is_flag=True,
                help="Run only the jobs of that namespace, in v2beta1: needs no cluster role.",
            ),
            click.option(
                "--flag",
                "flags",
                multiple=True,
                metavar="--NAME=VALUE",
                help="Pass this flag to the operator; can be repeated.",
            ),
            click.option("--dry-run", is_flag=True, help="Show what would change."),
            click.option(
                "--output",
                "-o",
                type=click.Choice(["table", "json", "yaml"]),
                default="table",
                show_default=True,
                help="With --dry-run, print the objects instead of what would change.",
            ),
            click.option(
                "--no-wait", is_flag=True, help="Do not wait until the operator is ready."
            ),
            click.option(
                "--timeout",
                type=Duration(),
                default=_TIMEOUT,
                metavar="TIME",
                show_default="5m",
                help="Wait this long.",
            ),
            cluster_options,
        ]
    ):
        command = option(command)
    return command


@click.command("install")
@_options
@asynchronous
async def install_command(kubeconfig: Path | None, context: str | None, **options: Any) -> None:
    """Install the operator on the current cluster.

    Wait until the operator is ready, or print why it is not. Installing again repairs what has
    changed, and leaves the rest alone.

    \b
    Examples:
      mpijob install
      mpijob install --dry-run
      mpijob install --image registry.example.com/mpi-operator:1.0
      mpijob install --namespace team-a --single-namespace
      mpijob install --dry-run -o yaml > mpi-operator.yaml
    """
    choices = _choices(options)
    if choices.is_dry_run and choices.output != "table":
        _print_objects(manifests.everything(choices.installation), choices.output)
        return
    async with connected(Chosen(kubeconfig, context)) as client:
        _check_others(await installer.installed_in(client), choices.installation)
        await _install(client, choices)


@click.command("upgrade")
@_options
@asynchronous
async def upgrade_command(kubeconfig: Path | None, context: str | None, **options: Any) -> None:
    """Upgrade the operator on the current cluster.

    The operator becomes the version of this program. Jobs keep running.

    \b
    Examples:
      mpijob upgrade --dry-run
      mpijob upgrade
    """
    choices = _choices(options)
    async with connected(Chosen(kubeconfig, context)) as client:
        found = await installer.installed_in(client)
        _check_others(found, choices.installation)
        if not found:
            raise CommandError("the operator is not installed on this cluster", "mpijob install")
        await _install(client, choices)


def _choices(options: dict[str, Any]) -> _Choices:
    if options["output"] != "table" and not options["dry_run"]:
        raise InvalidInput("-o json and -o yaml need --dry-run: they print objects")
    installation = Installation(
        namespace=options["namespace"],
        image=options["image"],
        is_namespaced=options["single_namespace"],
        flags=options["flags"],
    )
    seconds = None if options["no_wait"] else options["timeout"]
    return _Choices(installation, options["dry_run"], options["output"], seconds)


def _check_others(found: Sequence[Manifest], wanted: Installation) -> None:
    """Refuse a second operator for the same jobs, and to change what Helm installed."""
    for each in found:
        namespace = each["metadata"]["namespace"]
        if namespace == wanted.namespace and installer.is_of_helm(each):
            raise CommandError(
                f"Helm installed the operator in namespace {namespace}",
                "helm upgrade mpi-operator deploy/chart",
            )
        if namespace != wanted.namespace and not wanted.is_namespaced:
            raise CommandError(
                f"the operator is already installed in namespace {namespace}",
                f"mpijob upgrade --namespace {namespace}",
            )


async def _install(client: HttpClient, choices: _Choices) -> None:
    objects = manifests.everything(choices.installation)
    async for change in installer.apply(client, objects, is_dry_run=choices.is_dry_run):
        click.echo(change)
    if choices.is_dry_run:
        click.echo("Nothing was changed: this was a dry run.")
        return
    namespace = choices.installation.namespace
    if choices.seconds is None:
        click.echo(
            f"Installed. Wait for it: kubectl rollout status deployment/{NAME} -n {namespace}"
        )
        return
    click.echo("Waiting until the operator is ready …", err=True)
    ready = await rollout.wait(client, namespace, choices.seconds)
    click.echo(f"The operator runs in namespace {namespace} ({counted(ready, 'replica')}).")


def _print_objects(objects: list[Manifest], output: str) -> None:
    if output == "json":
        content = {"apiVersion": "v1", "kind": "List", "items": objects}
        click.echo(manifest_text.as_json(content), nl=False)
    else:
        click.echo(yaml_text(objects, "MPI Operator. Install it with kubectl apply -f."), nl=False)
