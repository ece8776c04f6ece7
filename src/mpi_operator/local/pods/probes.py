"""Whether a container says that it is ready: by a command, a port, or a page."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.protocol import SandboxError, StartError

_IMPATIENT_SECONDS = 0.25

# Runs a command in the container; its exit code.
Execute: TypeAlias = Callable[[list[str]], Awaitable[int]]


@dataclass
class Verdicts:
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


async def answers(
    probe: Manifest, container: Manifest, address: str, execute: Execute
) -> AsyncGenerator[bool, None]:
    """Whether it is ready, each time that changes. It begins as not ready."""
    verdicts = Verdicts(probe.get("successThreshold") or 1, probe.get("failureThreshold") or 3)
    period = float(probe.get("periodSeconds") or 10)
    await asyncio.sleep(probe.get("initialDelaySeconds") or 0)
    while True:
        before = verdicts.is_good
        if verdicts.hear(await ask(probe, container, address, execute)) != before:
            yield not before
        # Somebody waits for one that is about to be ready; one that is, is only looked after.
        await asyncio.sleep(period if verdicts.is_good else min(period, _IMPATIENT_SECONDS))


async def ask(probe: Manifest, container: Manifest, address: str, execute: Execute) -> bool:
    """Probe once."""
    try:
        async with asyncio.timeout(float(probe.get("timeoutSeconds") or 1)):
            if command := probe.get("exec"):
                return await execute(list(command["command"])) == 0
            if place := probe.get("tcpSocket"):
                return await _accepts(place, container, address)
            if page := probe.get("httpGet"):
                return await _serves(page, container, address)
            return True  # gRPC and what is yet to come: no reason to wait for ever
    except (TimeoutError, OSError, ValueError, StartError, SandboxError):
        return False


async def _accepts(place: Manifest, container: Manifest, address: str) -> bool:
    _, writer = await asyncio.open_connection(
        place.get("host") or address, _port(place["port"], container)
    )
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _serves(page: Manifest, container: Manifest, address: str) -> bool:
    host = page.get("host") or address
    reader, writer = await asyncio.open_connection(host, _port(page["port"], container))
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
