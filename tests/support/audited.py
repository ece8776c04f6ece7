"""What an operator wrote, as the API server's audit log has it."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from devcluster import audit
from devcluster.audit import Record
from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from tests.support.jobs import Jobs
from tests.support.mpijobs import install
from tests.support.waiting import until

_PAUSE = 0.05


class TookTooLong(Exception):
    """The expected record did not appear in time."""


class AuditLog(audit.Log):
    """The log of a control plane that runs, read on from where the last reading ended."""

    def __init__(self, control_plane: ControlPlane, client: HttpClient) -> None:
        super().__init__(control_plane.audit_log)
        self._client = client

    async def collect(
        self, is_enough: Callable[[Sequence[Record]], bool], seconds: float, what: str
    ) -> list[Record]:
        """Read until there is enough. `is_enough` is shown each record once, as they come."""
        found: list[Record] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            new = self.new()
            found += new
            if is_enough(new):
                return found
            await asyncio.sleep(_PAUSE)
        raise TookTooLong(f"{what}: not within {seconds:.0f} s")

    async def until_now(self) -> list[Record]:
        """All requests until now: a marker request of ours ends them."""
        mark = f"mark-{uuid.uuid4()}"
        with suppress(errors.NotFound):
            await self._client.get(NAMESPACES, mark)

        def is_marked(new: Sequence[Record]) -> bool:
            return any(each.name == mark for each in new)

        return await self.collect(is_marked, 30, "the audit log catches up")

    async def writes(self, user: str) -> list[Record]:
        """The writes of a user since the log was last read, without leases."""
        return audit.writes(await self.until_now(), user)


@asynccontextmanager
async def new_namespace(
    control_plane: ControlPlane,
    name: str,
    install: Callable[[HttpClient], Awaitable[None]] = install,
) -> AsyncIterator[Jobs]:
    """A namespace of a new control plane, which knows MPIJobs, and in which pods can be made."""
    async with HttpClient(config.load(kubeconfig=control_plane.kubeconfig())) as client:
        await install(client)
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        await until(lambda: _has_account(client, name))
        yield Jobs(client, name)


async def _has_account(client: HttpClient, namespace: str) -> bool:
    return bool((await client.list(SERVICE_ACCOUNTS, namespace)).items)


def service_account(namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:mpi-operator"
