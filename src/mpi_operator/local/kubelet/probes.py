"""Probing a container: by a command, a TCP port, or an HTTP request. Hooks work the same way."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.protocol import SandboxError, StartError

_STARTING_SECONDS = 0.25  # a person is waiting, so a starting container is probed more often

# Runs a command in the container and returns its exit code.
Execute: TypeAlias = Callable[[list[str]], Awaitable[int]]
# Probes once.
Ask: TypeAlias = Callable[[Manifest], Awaitable[bool]]


class Target(msgspec.Struct, frozen=True):
    """The container that is probed."""

    container: Manifest
    address: str
    execute: Execute
    is_stand_in: bool = False
    """It stands in for an sshd, which no one connects to here: its ports count as open."""


class Thresholds(msgspec.Struct):
    """The result of a probe: it changes after enough equal answers in a row."""

    success_threshold: int
    failure_threshold: int
    is_good: bool = False
    _streak: int = 0

    def add(self, good: bool) -> bool:
        """Count an answer; the result after it."""
        self._streak = self._streak + 1 if good != self.is_good else 0
        needed = self.success_threshold if good else self.failure_threshold
        if self._streak >= needed:
            self.is_good, self._streak = good, 0
        return self.is_good


async def has_started(probe: Manifest, ask: Ask) -> bool:
    """Probe until it succeeds, or until its period times its threshold has passed."""
    await _delay(probe)
    period = _period(probe)
    deadline = _time() + period * (_failures(probe) - 1)
    while not await ask(probe):
        if _time() >= deadline:
            return False
        await asyncio.sleep(min(period, _STARTING_SECONDS))
    return True


async def readiness_changes(probe: Manifest, ask: Ask) -> AsyncGenerator[bool, None]:
    """Whether it is ready, each time that this changes. At first it is not."""
    thresholds = Thresholds(probe.get("successThreshold") or 1, _failures(probe))
    await _delay(probe)
    while True:
        before = thresholds.is_good
        if thresholds.add(await ask(probe)) != before:
            yield not before
        period = _period(probe)
        await asyncio.sleep(period if thresholds.is_good else min(period, _STARTING_SECONDS))


async def until_not_alive(probe: Manifest, ask: Ask) -> None:
    """Return when it has failed so often that the container should be terminated."""
    thresholds = Thresholds(1, _failures(probe), is_good=True)
    await _delay(probe)
    while True:
        if not thresholds.add(await ask(probe)):
            return
        await asyncio.sleep(_period(probe))


async def answer(probe: Manifest, target: Target) -> bool:
    """Probe once."""
    try:
        async with asyncio.timeout(float(probe.get("timeoutSeconds") or 1)):
            return await attempt(probe, target)
    except (TimeoutError, OSError, ValueError, StartError, SandboxError):
        return False


async def attempt(action: Manifest, target: Target) -> bool:
    """Do what a probe or a hook says, without a timeout; whether it succeeded."""
    if command := action.get("exec"):
        return await target.execute(list(command["command"])) == 0
    if place := action.get("tcpSocket"):
        return target.is_stand_in or await _accepts(place, target)
    if page := action.get("httpGet"):
        return await _serves(page, target)
    if pause := action.get("sleep"):
        await asyncio.sleep(float(pause["seconds"]))
    return True  # unsupported (gRPC): better than waiting forever


async def _accepts(place: Manifest, target: Target) -> bool:
    host, port = place.get("host") or target.address, _port(place["port"], target.container)
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _serves(page: Manifest, target: Target) -> bool:
    host, port = page.get("host") or target.address, _port(page["port"], target.container)
    reader, writer = await asyncio.open_connection(host, port)
    headers = "".join(
        f"{each['name']}: {each['value']}\r\n" for each in page.get("httpHeaders") or ()
    )
    request = f"GET {page.get('path') or '/'} HTTP/1.0\r\nHost: {host}\r\n{headers}\r\n"
    writer.write(request.encode())
    try:
        words = (await reader.readline()).split()
    finally:
        writer.close()
    return len(words) > 1 and 200 <= int(words[1]) < 400


def _port(port: int | str, container: Manifest) -> int:
    if str(port).isdecimal():
        return int(port)
    named = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
    if port not in named:
        raise ValueError(f"container {container['name']} has no port named {port!r}")
    return int(named[port])


async def _delay(probe: Manifest) -> None:
    await asyncio.sleep(float(probe.get("initialDelaySeconds") or 0))


def _period(probe: Manifest) -> float:
    return float(probe.get("periodSeconds") or 10)


def _failures(probe: Manifest) -> int:
    return int(probe.get("failureThreshold") or 3)


def _time() -> float:
    return asyncio.get_running_loop().time()
