"""Asking a container something: by a command, a port, or a page. Probes and hooks do."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.protocol import SandboxError, StartError

_IMPATIENT_SECONDS = 0.25

# Runs a command in the container; its exit code.
Execute: TypeAlias = Callable[[list[str]], Awaitable[int]]
# Asks what a probe says, once.
Ask: TypeAlias = Callable[[Manifest], Awaitable[bool]]


class Target(msgspec.Struct, frozen=True):
    """The container that is asked."""

    container: Manifest
    address: str
    execute: Execute
    is_stand_in: bool = False
    """On a cluster it would listen to ssh. Here nobody has to: its ports are as good as open."""


class Verdicts(msgspec.Struct):
    """Enough answers in a row change a mind."""

    success_threshold: int
    failure_threshold: int
    is_good: bool = False
    _streak: int = 0

    def hear(self, good: bool) -> bool:
        """Take an answer; what is so now."""
        self._streak = self._streak + 1 if good != self.is_good else 0
        needed = self.success_threshold if good else self.failure_threshold
        if self._streak >= needed:
            self.is_good, self._streak = good, 0
        return self.is_good


async def has_started(probe: Manifest, ask: Ask) -> bool:
    """Ask until it says yes, or has had the time that it is given.

    Somebody waits, so it is asked more often than the probe says; how long it may take to start is
    still its period times its threshold.
    """
    await _delay(probe)
    period = _period(probe)
    given_up = _time() + period * (_failures(probe) - 1)
    while not await ask(probe):
        if _time() >= given_up:
            return False
        await asyncio.sleep(min(period, _IMPATIENT_SECONDS))
    return True


async def changes_of_readiness(probe: Manifest, ask: Ask) -> AsyncGenerator[bool, None]:
    """Whether it is ready, each time that changes. It begins as not ready."""
    verdicts = Verdicts(probe.get("successThreshold") or 1, _failures(probe))
    await _delay(probe)
    while True:
        before = verdicts.is_good
        if verdicts.hear(await ask(probe)) != before:
            yield not before
        # Somebody waits for one that is about to be ready; one that is, is only looked after.
        period = _period(probe)
        await asyncio.sleep(period if verdicts.is_good else min(period, _IMPATIENT_SECONDS))


async def end_of_life(probe: Manifest, ask: Ask) -> None:
    """Return when it has said no so often that it should be ended."""
    verdicts = Verdicts(1, _failures(probe), is_good=True)
    await _delay(probe)
    while True:
        if not verdicts.hear(await ask(probe)):
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
    """Do what a probe or a hook says, however long it takes; whether it went well."""
    if command := action.get("exec"):
        return await target.execute(list(command["command"])) == 0
    if place := action.get("tcpSocket"):
        return target.is_stand_in or await _accepts(place, target)
    if page := action.get("httpGet"):
        return await _serves(page, target)
    if pause := action.get("sleep"):
        await asyncio.sleep(float(pause["seconds"]))
    return True  # gRPC and what is yet to come: no reason to wait for ever


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
        raise ValueError(f"the container has no port {port!r}")
    return int(named[port])


async def _delay(probe: Manifest) -> None:
    await asyncio.sleep(float(probe.get("initialDelaySeconds") or 0))


def _period(probe: Manifest) -> float:
    return float(probe.get("periodSeconds") or 10)


def _failures(probe: Manifest) -> int:
    return int(probe.get("failureThreshold") or 3)


def _time() -> float:
    return asyncio.get_running_loop().time()
