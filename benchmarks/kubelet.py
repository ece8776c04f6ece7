"""Marks pods as running where no node does."""

from benchmarks.pods import running_status
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import PODS


async def let_run(client: HttpClient, namespace: str, name: str, index: int) -> None:
    """Mark a pod as running, as a kubelet would."""
    status = {"status": running_status(index)}
    await client.patch(PODS, name, status, namespace, subresource="status")
