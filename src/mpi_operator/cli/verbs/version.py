"""`mpijob version`: this program, the operator on the cluster, and the API versions it serves."""

from pathlib import Path
from typing import Any

import click

from mpi_operator import __version__
from mpi_operator.api.types import GROUP
from mpi_operator.cli.command_errors import CommandError, asynchronous
from mpi_operator.cli.format import table
from mpi_operator.cli.installation import installer
from mpi_operator.cli.installation.cluster_connection import Chosen, cluster_options, connected
from mpi_operator.cli.manifests import manifest_text
from mpi_operator.kube import discovery, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest

from . import arguments


@click.command("version")
@click.option("--client", "is_client_only", is_flag=True, help="Show only this program's version.")
@arguments.OUTPUT
@cluster_options
@asynchronous
async def version_command(
    is_client_only: bool, output: str, kubeconfig: Path | None, context: str | None
) -> None:
    """Show the versions of this program, of the operator, and of the API.

    The last two are those of the current cluster.

    \b
    Examples:
      mpijob version
      mpijob version --client
    """
    found: dict[str, Any] = {"client": __version__}
    try:
        if not is_client_only:
            found |= await _of_cluster(Chosen(kubeconfig, context))
    finally:  # without a cluster, this program still has a version
        _print(found, output)


def _print(found: dict[str, Any], output: str) -> None:
    if output == "table":
        click.echo(table([(name, _text(value)) for name, value in found.items()]))
    else:
        written = manifest_text.as_json if output == "json" else manifest_text.as_yaml
        click.echo(written(found), nl=False)


async def _of_cluster(chosen: Chosen) -> dict[str, Any]:
    try:
        async with connected(chosen) as client:
            return {
                "kubernetes": await discovery.server_version(client),
                "operator": [*map(_operator, await installer.installed_in(client))],
                "api": await _api_versions(client),
            }
    except errors.KubeError as error:
        raise CommandError(
            f"cannot reach the cluster: {error}", "mpijob version --client"
        ) from error


async def _api_versions(client: HttpClient) -> list[str]:
    versions = await discovery.api_versions(client)
    return [each for each in versions if each.startswith(f"{GROUP}/")]


def _operator(deployment: Manifest) -> dict[str, str]:
    [container, *_] = deployment["spec"]["template"]["spec"]["containers"]
    return {"image": container["image"], "namespace": deployment["metadata"]["namespace"]}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return ", ".join(map(_part, value)) or "none"


def _part(value: Any) -> str:
    return value if isinstance(value, str) else f"{value['image']} in {value['namespace']}"
