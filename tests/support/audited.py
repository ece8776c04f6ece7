"""What an operator wrote, as the API server's audit log has it."""

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from devcluster.audit import Record
from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from tests.support.hands import Hands
from tests.support.mpijobs import install
from tests.support.waiting import until

_WRITES = ("create", "update", "patch", "delete", "deletecollection")


class AuditLog:
    """The log of one control plane, read from where the last reading ended."""

    def __init__(self, control_plane: ControlPlane, client: HttpClient) -> None:
        self._control_plane = control_plane
        self._client = client
        self._read = 0

    async def writes(self, user: str) -> list[Record]:
        """What a user has asked to be written since this was last called, leases aside."""
        await self._caught_up()
        records = list(self._control_plane.audit_records())
        new, self._read = records[self._read :], len(records)
        return [
            record
            for record in new
            if record.user == user and record.verb in _WRITES and record.resource != "leases"
        ]

    async def _caught_up(self) -> None:
        """Wait until the log has all that happened so far: a mark of ours comes after it."""
        mark = f"mark-{uuid.uuid4()}"
        try:
            await self._client.get(NAMESPACES, mark)
        except errors.NotFound:
            await until(lambda: self._has(mark))

    def _has(self, mark: str) -> bool:
        return any(record.name == mark for record in self._control_plane.audit_records())


@asynccontextmanager
async def new_namespace(
    control_plane: ControlPlane,
    name: str,
    install: Callable[[HttpClient], Awaitable[None]] = install,
) -> AsyncIterator[Hands]:
    """A namespace of a new control plane, which knows MPIJobs, and in which pods can be made."""
    async with HttpClient(config.load(kubeconfig=control_plane.kubeconfig())) as client:
        await install(client)
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        await until(lambda: _has_account(client, name))
        yield Hands(client, name)


async def _has_account(client: HttpClient, namespace: str) -> bool:
    return bool((await client.list(SERVICE_ACCOUNTS, namespace)).items)


def service_account(namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:mpi-operator"


def summary(writes: Iterable[Record]) -> dict[str, int]:
    """How often which verb was used on which kind; what the server did not do is marked."""
    counted = Counter[str]()
    for each in writes:
        kind = f"{each.resource}/{each.subresource}" if each.subresource else each.resource
        counted[f"{each.verb} {kind}" + ("" if each.code < 300 else f" ({each.code})")] += 1
    return dict(sorted(counted.items()))
