"""The testbed: one control plane for all operators, cleaned up in between."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from benchmarks.operators import comparability, usage
from benchmarks.operators.comparability import Environment
from benchmarks.operators.jobs import MPIJOBS, job
from benchmarks.operators.requests import Missing
from benchmarks.operators.running import Running, running
from benchmarks.operators.subjects import ALL, Subject
from devcluster.audit import Record
from devcluster.control_plane import APISERVER, ControlPlane
from mpi_operator.api.crd import v2beta1_only
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    JOBS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from tests.support.audited import AuditLog
from tests.support.waiting import until

_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
_COUNTED = (MPIJOBS, PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS)
_CLEARING_SECONDS = 600.0
_MANAGER = "benchmarks"


class NotCleared(Exception):
    """The objects of one subject are not deleted in time."""


class Testbed:
    """The control plane, a client with all permissions, and the audit log."""

    def __init__(self, control_plane: ControlPlane, client: HttpClient) -> None:
        self.control_plane = control_plane
        self.client = client
        self.log = AuditLog(control_plane, client)
        self._namespaces = 0
        self._operators = 0

    async def prepare(self, users: Sequence[str] = ()) -> None:
        """Install the CRD, and create namespaces and permissions for all subjects."""
        crd = v2beta1_only()
        await self.client.apply(CUSTOM_RESOURCE_DEFINITIONS, crd, manager=_MANAGER)
        for subject in ALL:
            await self.client.create(NAMESPACES, {"metadata": {"name": subject.lock_namespace}})
        for user in (*(each.user for each in ALL), *users):
            await self.client.create(_BINDINGS, _all_rights(user))
        await until(self._serves_jobs)

    @asynccontextmanager
    async def namespace(self) -> AsyncIterator[str]:
        """A new namespace, deleted afterwards with everything in it."""
        self._namespaces += 1
        name = f"bench-{self._namespaces}"
        await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        await until(lambda: self._has_account(name))
        try:
            yield name
        finally:
            await self.clear(name)

    @asynccontextmanager
    async def operator(self, subject: Subject) -> AsyncIterator[Running]:
        """An operator that leads and has warmed up with one job."""
        async with self.cold_operator(subject) as operator:
            async with self.namespace() as namespace:
                await self.made(operator, job("first", namespace, 2, runs=False))
            yield operator

    @asynccontextmanager
    async def cold_operator(self, subject: Subject) -> AsyncIterator[Running]:
        """An operator that leads and has not done anything yet."""
        self._operators += 1
        try:
            async with running(subject, self.control_plane, self.client) as operator:
                yield operator
        finally:
            self._operators -= 1

    @asynccontextmanager
    async def client_of(self, user: str) -> AsyncIterator[HttpClient]:
        """A client with its own user, by which the audit log identifies its requests."""
        settings = config.load(kubeconfig=self.control_plane.kubeconfig(user))
        async with HttpClient(settings, user_agent=user) as client:
            yield client

    async def made(
        self, operator: Running, manifest: dict[str, Any], seconds: float = 300
    ) -> list[Record]:
        """Submit a job and wait until its workers and launcher exist; returns all requests."""
        namespace = manifest["metadata"]["namespace"]
        workers = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
        missing = Missing(operator.subject.user, namespace, {"pods": workers, "jobs": 1})
        what = f"{operator.subject.title} creates {workers} workers and a launcher"
        self.log.skip()
        await self.client.create(MPIJOBS, manifest)
        requests = await self.log.collect(missing.is_nothing_after, seconds, what)
        return [each for each in requests if each.namespace == namespace]

    async def environment(self) -> Environment:
        """The environment of the next measurement."""
        processes = (
            self.control_plane.process(component) for component in self.control_plane.components
        )
        servers = (part for each in processes for part in (each.born, *each.argv))
        name = v2beta1_only()["metadata"]["name"]
        crd = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        return Environment(
            servers=comparability.digest(*servers),
            crd=comparability.digest(json.dumps(crd["spec"], sort_keys=True)),
            objects={str(each): await self.count(each) for each in _COUNTED},
            operators=self._operators,
        )

    def apiserver_cpu_seconds(self) -> float:
        """The CPU used by the API server so far."""
        return usage.of(self.control_plane.process(APISERVER).pid).cpu_seconds

    async def count(self, resource: Resource, namespace: str = "") -> int:
        """How many objects there are, without measurement them."""
        answer = await self.client.raw(f"{resource.collection_path(namespace)}?limit=1")
        found = msgspec.json.decode(answer)
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))

    async def clear(self, namespace: str) -> None:
        """Delete a namespace, jobs first: otherwise an operator would recreate deleted objects."""
        while await self.count(MPIJOBS, namespace):
            await self._delete_many(MPIJOBS, namespace)
            await asyncio.sleep(0.2)  # until the operator has seen it
        await self._delete_many(PODS, namespace)
        await self.client.delete(NAMESPACES, namespace)
        try:
            await until(lambda: self._is_gone(namespace), _CLEARING_SECONDS)
        except TimeoutError:
            left = {str(each): await self.count(each, namespace) for each in _COUNTED}
            raise NotCleared(
                f"{namespace} still exists {_CLEARING_SECONDS:.0f} s after its deletion,"
                f" with {left}. The next measurement would not be comparable."
            ) from None

    async def _delete_many(self, resource: Resource, namespace: str) -> None:
        """Delete all objects, or as many of thousands as one request can before its deadline."""
        with suppress(errors.DeadlineExceeded):
            await self.client.delete_collection(resource, namespace)

    async def _is_gone(self, namespace: str) -> bool:
        try:
            await self.client.get(NAMESPACES, namespace)
        except errors.NotFound:
            return True
        return False

    async def _has_account(self, namespace: str) -> bool:
        with suppress(errors.NotFound):
            await self.client.get(SERVICE_ACCOUNTS, "default", namespace)
            return True
        return False

    async def _serves_jobs(self) -> bool:
        with suppress(errors.NotFound):
            await self.count(MPIJOBS)
            return True
        return False


@asynccontextmanager
async def new_testbed(
    control_plane: ControlPlane, users: Sequence[str] = ()
) -> AsyncIterator[Testbed]:
    """A new testbed; `users` are further users with all permissions, such as a fake kubelet."""
    await asyncio.to_thread(control_plane.start)
    try:
        settings = config.load(kubeconfig=control_plane.kubeconfig())
        async with HttpClient(settings, user_agent="benchmarks") as client:
            made = Testbed(control_plane, client)
            await made.prepare(users)
            yield made
    finally:
        await asyncio.to_thread(control_plane.stop)


def _all_rights(user: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": f"benchmarks:{user}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
