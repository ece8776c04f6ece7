"""The hooks and probes of a running container, in the order of a kubelet.

    postStart ──► running ──► startupProbe ──► started ──► readinessProbe: is it ready?
                                                       └─► livenessProbe: should it go on?

A failed hook or probe makes the container `Unhealthy`: it is terminated as if its pod was, and
restarted if its policy says so.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.protocol import SandboxError, StartError

from . import probes
from .probes import Target


class Unhealthy(Exception):
    """The container should be terminated; the sentence says why."""

    def __init__(self, message: str, grace_seconds: float | None = None) -> None:
        super().__init__(message)
        self.grace_seconds = grace_seconds
        """The grace period of its probe, if that is not the pod's."""


class Observer(Protocol):
    """Receives the results of the probes of a container."""

    def on_started(self) -> None:
        """Its startupProbe has succeeded."""
        ...

    def on_ready(self, ready: bool) -> None:
        """The result of its readinessProbe has changed."""
        ...


def hook_of(container: Manifest, name: str) -> Manifest | None:
    """A lifecycle hook of a container, if it has one."""
    found: Manifest | None = (container.get("lifecycle") or {}).get(name)
    return found


async def call(hook: Manifest, name: str, target: Target) -> None:
    """Call a hook; Unhealthy if it fails."""
    try:
        if await probes.attempt(hook, target):
            return
        why = "it did not succeed"
    except (OSError, ValueError, StartError, SandboxError) as error:
        why = str(error)
    raise Unhealthy(f"{name} failed: {why}")


async def watch(container: Manifest, target: Target, observer: Observer) -> None:
    """Probe for as long as it runs; Unhealthy (maybe in a group) when it should be terminated."""

    async def ask(probe: Manifest) -> bool:
        return await probes.answer(probe, target)

    name = container["name"]
    if startup := container.get("startupProbe"):
        if not await probes.has_started(startup, ask):
            raise Unhealthy(f"Container {name} failed startup probe", _grace(startup))
        observer.on_started()
    async with asyncio.TaskGroup() as group:
        if readiness := container.get("readinessProbe"):
            group.create_task(_watch_readiness(readiness, ask, observer.on_ready))
        if liveness := container.get("livenessProbe"):
            group.create_task(_watch_liveness(name, liveness, ask))


async def _watch_readiness(
    probe: Manifest, ask: probes.Ask, on_ready: Callable[[bool], None]
) -> None:
    async for ready in probes.readiness_changes(probe, ask):
        on_ready(ready)


async def _watch_liveness(name: str, probe: Manifest, ask: probes.Ask) -> None:
    await probes.until_not_alive(probe, ask)
    raise Unhealthy(f"Container {name} failed liveness probe", _grace(probe))


def _grace(probe: Manifest) -> float | None:
    seconds = probe.get("terminationGracePeriodSeconds")
    return None if seconds is None else float(seconds)
