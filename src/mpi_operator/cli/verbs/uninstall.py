"""`mpijob uninstall`: take the operator off a cluster, with or without its jobs."""

from collections.abc import Sequence
from pathlib import Path

import click

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.command_errors import CommandError, asynchronous
from mpi_operator.cli.format import counted
from mpi_operator.cli.installation import installer
from mpi_operator.cli.installation.cluster_connection import Chosen, cluster_options, connected
from mpi_operator.install import manifests
from mpi_operator.install.installation import NAME, Installation
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest

_TIMEOUT = 120.0
_CRD, _NAMESPACE = "CustomResourceDefinition", "Namespace"


@click.command("uninstall")
@click.option(
    "--namespace",
    "-n",
    default=NAME,
    show_default=True,
    metavar="NAME",
    help="Uninstall the operator in this namespace.",
)
@click.option(
    "--delete-jobs", is_flag=True, help="Also delete the CRD, all MPIJobs and all of their pods."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@cluster_options
@asynchronous
async def uninstall_command(
    namespace: str, delete_jobs: bool, yes: bool, kubeconfig: Path | None, context: str | None
) -> None:
    """Uninstall the operator from the current cluster.

    Jobs stay, and their pods continue. The CRD stays too, with v2beta1 only, so that jobs can be
    read without the operator. If you install the operator again, it continues where it left off.

    \b
    Examples:
      mpijob uninstall
      mpijob uninstall --delete-jobs
    """
    async with connected(Chosen(kubeconfig, context)) as client:
        found = await installer.installed_in(client)
        _check(found, namespace)
        jobs = await _count_jobs(client)
        if delete_jobs and jobs and not yes:
            click.confirm(f"Delete {counted(jobs, 'MPIJob')} and all of their pods?", abort=True)
        chosen = installer.installation_of(found, namespace)
        if chosen.has_webhooks and (change := await installer.without_webhooks(client)):
            click.echo(change)
        crds = [manifests.crd(chosen)] if delete_jobs else []
        deleted = []
        async for each in installer.delete(client, [*crds, *await _objects(client, chosen)]):
            click.echo(each)
            deleted.append(each.manifest)
        if not await installer.are_gone(client, deleted, _TIMEOUT):
            click.echo(f"Some objects are still being deleted after {_TIMEOUT:g}s.", err=True)
    if jobs and not delete_jobs:
        click.echo(f"Left {counted(jobs, 'MPIJob')} in place, unmanaged until `mpijob install`.")


def _check(found: Sequence[Manifest], namespace: str) -> None:
    places = [each["metadata"]["namespace"] for each in found]
    if places and namespace not in places:
        raise CommandError(
            f"the operator is not installed in namespace {namespace}",
            f"mpijob uninstall --namespace {places[0]}",
        )
    if any(installer.is_of_helm(each) for each in found):
        raise CommandError("Helm installed the operator", "helm uninstall mpi-operator")


async def _objects(client: HttpClient, chosen: Installation) -> list[Manifest]:
    """What was installed but for the CRD; webhooks first, so that nothing waits for them."""
    is_ours = not chosen.is_namespaced and await installer.is_our_namespace(client, chosen)
    kept = {_CRD} if is_ours else {_CRD, _NAMESPACE}
    return [each for each in reversed(manifests.everything(chosen)) if each["kind"] not in kept]


async def _count_jobs(client: HttpClient) -> int:
    try:
        return len((await client.list(MPI_JOBS)).items)
    except errors.NotFound:
        return 0
