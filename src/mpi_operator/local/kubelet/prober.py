"""What is asked of a container while it runs, in the order of a kubelet.

    postStart ──► it runs ──► startupProbe ──► it has started ──► readinessProbe: may others come?
                                                              └─► livenessProbe: should it go on?

A hook that fails, or a container that is too late or no longer well, makes it `Sick`: then it is
ended as if its pod was, and started again if its policy says so.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.protocol import SandboxError, StartError

from . import probes
from .probes import Target


class Sick(Exception):
    """The container should not go on; the sentence says why."""

    def __init__(self, message: str, grace_seconds: float | None = None) -> None:
        super().__init__(message)
        self.grace_seconds = grace_seconds
        """What its probe gives it to end, if that is another time than its pod's."""


class Patient(Protocol):
    """Who hears how a container does."""

    def has_started(self) -> None:
        """Hear that its startupProbe has succeeded."""
        ...

    def is_ready(self, ready: bool) -> None:
        """Hear what its readinessProbe says, when that changes."""
        ...


def hook_of(container: Manifest, name: str) -> Manifest | None:
    """A hook of a container's life cycle, if it has it."""
    found: Manifest | None = (container.get("lifecycle") or {}).get(name)
    return found


async def call(hook: Manifest, name: str, target: Target) -> None:
    """Call a hook; Sick if it fails."""
    try:
        if await probes.attempt(hook, target):
            return
        words = "it did not succeed"
    except (OSError, ValueError, StartError, SandboxError) as error:
        words = str(error)
    raise Sick(f"the {name} hook failed: {words}")


async def watch(container: Manifest, target: Target, patient: Patient) -> None:
    """Ask for as long as it runs; Sick (in a group, maybe) when it should not any more."""

    async def ask(probe: Manifest) -> bool:
        return await probes.answer(probe, target)

    if startup := container.get("startupProbe"):
        if not await probes.has_started(startup, ask):
            raise Sick("its startupProbe did not succeed in time", _grace(startup))
        patient.has_started()
    async with asyncio.TaskGroup() as group:
        if readiness := container.get("readinessProbe"):
            group.create_task(_tell(readiness, ask, patient.is_ready))
        if liveness := container.get("livenessProbe"):
            group.create_task(_end_of_life(liveness, ask))


async def _tell(probe: Manifest, ask: probes.Ask, is_ready: Callable[[bool], None]) -> None:
    async for ready in probes.changes_of_readiness(probe, ask):
        is_ready(ready)


async def _end_of_life(probe: Manifest, ask: probes.Ask) -> None:
    await probes.end_of_life(probe, ask)
    raise Sick("its livenessProbe does not succeed any more", _grace(probe))


def _grace(probe: Manifest) -> float | None:
    seconds = probe.get("terminationGracePeriodSeconds")
    return None if seconds is None else float(seconds)
