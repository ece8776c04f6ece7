"""Waits until all replicas of the operator run, and says why they do not."""

import asyncio
from collections.abc import Iterator
from typing import Any

from mpi_operator.cli.command_errors import TIMEOUT, CommandError
from mpi_operator.install.installation import NAME, SELECTOR
from mpi_operator.kube.client import Selector
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import DEPLOYMENTS, PODS, Manifest

_SECONDS = 1.0  # between two reads: a person waits for minutes


class NotReady(CommandError):
    """The operator does not run in time."""

    exit_code = TIMEOUT


async def wait(client: HttpClient, namespace: str, seconds: float) -> int:
    """The number of ready replicas, once all are ready and of the newest version."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                deployment = await client.get(DEPLOYMENTS, NAME, namespace)
                if is_complete(deployment):
                    return int(deployment["spec"]["replicas"])
                await asyncio.sleep(_SECONDS)
    except TimeoutError:
        why = "; ".join(await _reasons(client, namespace)) or "its pods have not started"
        raise NotReady(
            f"the operator in namespace {namespace} is not ready after {seconds:g}s: {why}",
            f"kubectl describe pods -n {namespace}",
        ) from None


def is_complete(deployment: Manifest) -> bool:
    """Whether every replica is ready and has the template that was applied last."""
    status = deployment.get("status") or {}
    wanted = deployment["spec"]["replicas"]
    counts = (status.get(f"{name}Replicas", 0) for name in ("updated", "ready", "available"))
    is_seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    is_alone = status.get("replicas", 0) == wanted
    return is_seen and is_alone and all(count == wanted for count in counts)


async def _reasons(client: HttpClient, namespace: str) -> list[str]:
    labels = ",".join(f"{name}={value}" for name, value in SELECTOR.items())
    pods = (await client.list(PODS, namespace, Selector(labels=labels))).items
    return [f"{pod['metadata']['name']}: {why}" for pod in pods for why in problems(pod)]


def problems(pod: Manifest) -> Iterator[str]:
    """What keeps a pod from being ready."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield _sentence(condition)
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        last = (container.get("lastState") or {}).get("terminated")
        if waiting := state.get("waiting"):
            yield _sentence(waiting)
        if last:
            yield f"exit code {last['exitCode']}: {(last.get('message') or '').strip()}"
        elif "running" in state and not container["ready"]:
            yield "it runs but is not ready"


def _sentence(state: dict[str, Any]) -> str:
    return ": ".join(filter(None, (state.get("reason"), state.get("message"))))
