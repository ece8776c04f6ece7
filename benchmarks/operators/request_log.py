"""The audit log of a running API server, read on from where the last reading ended."""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.operators.requests import Request, parse
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES

_PAUSE = 0.05


class TookTooLong(Exception):
    """What was waited for did not happen in time."""


class RequestLog:
    """Hands out each request once. To read costs the API server nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new(self) -> list[Request]:
        """What was answered since this was last called, but for what is still being written."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [parse(line) for line in whole.splitlines()]

    def skip(self) -> None:
        """Forget what there is so far."""
        self._offset = self._path.stat().st_size

    async def collect(
        self, is_enough: Callable[[Sequence[Request]], bool], seconds: float, what: str
    ) -> list[Request]:
        """Read until there is enough. `is_enough` is shown each request once, as they come."""
        found: list[Request] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            new = self.new()
            found += new
            if is_enough(new):
                return found
            await asyncio.sleep(_PAUSE)
        raise TookTooLong(f"{what}: not within {seconds:.0f} s")

    async def until_now(self, client: HttpClient) -> list[Request]:
        """All that was asked before now: a mark of ours comes after it."""
        mark = f"mark-{uuid.uuid4()}"
        with suppress(errors.NotFound):
            await client.get(NAMESPACES, mark)

        def is_marked(new: Sequence[Request]) -> bool:
            return any(each.name == mark for each in new)

        return await self.collect(is_marked, 30, "the audit log catches up")
