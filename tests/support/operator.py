"""The operator as a real process, with the permissions that we ship and no others."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from devcluster.ports import free_port
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import (
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Manifest,
    Resource,
)
from tests.support.waiting import until

RBAC = Path(__file__).parents[2] / "deploy" / "rbac"
HOME = "mpi-operator"  # the namespace that the shipped manifests name
CLUSTER_ROLES = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
_USUAL = ("namespaced.yaml", "exec-transport-namespaced.yaml")
_KINDS = {
    kind.kind: kind
    for kind in (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
}


class Operator:
    """A process of `mpi-operator`. Its log is a file that outlives it."""

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str) -> None:
        self.log = log
        self._kubeconfig = kubeconfig
        self._arguments = arguments
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; `leading` says when it works."""
        environment = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "mpi_operator.operator",
                f"--kubeconfig={self._kubeconfig}",
                f"--health-port={self._port}",
                "--webhooks=off",  # one port for many; a test may switch them on
                "--log-format=json",
                *self._arguments,
                stdout=log,
                stderr=log,
                env=environment,
            )

    async def leading(self, seconds: float = 30) -> None:
        """Wait until it leads; AssertionError with the end of its log if it ends instead."""
        await until(self._leads_or_ended, seconds)
        assert not self.has_ended, self.last_words

    async def get(self, path: str) -> tuple[int, str]:
        """What it answers at `/metrics`, `/healthz` or `/readyz`."""
        url = f"http://127.0.0.1:{self._port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()

    async def stop(self) -> int:
        """Send SIGTERM, as Kubernetes does; its exit code."""
        if not self.has_ended:
            self._running.send_signal(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        """Kill it, as a node that loses power does."""
        if not self.has_ended:
            self._running.kill()
        await self.ended()

    async def ended(self) -> int:
        """Its exit code, once it has ended."""
        async with asyncio.timeout(30):
            return await self._running.wait()

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    @property
    def last_words(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-20:])

    def records(self) -> list[dict[str, Any]]:
        """The records of its log."""
        return list(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        if not self.log.exists():
            return
        for line in self.log.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # a line that is being written, or a traceback
                continue

    async def _leads_or_ended(self) -> bool:
        if self.has_ended:
            return True
        try:
            _, metrics = await self.get("/metrics")
        except aiohttp.ClientError:
            return False
        return "mpi_operator_is_leader 1.0" in metrics

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "not started"
        return self._process


@asynccontextmanager
async def operator(
    client: HttpClient,
    admin: Path,
    namespace: str,
    directory: Path,
    *arguments: str,
    roles: Sequence[str] = _USUAL,
) -> AsyncIterator[Operator]:
    """Run an operator for one namespace, with its lease there, and wait until it leads."""
    kubeconfig = await account(client, admin, namespace, directory, *roles)
    arguments = (f"--namespace={namespace}", f"--lock-namespace={namespace}", *arguments)
    process = Operator(kubeconfig, directory / "operator.log", *arguments)
    async with started(process):
        await process.leading()
        yield process


@asynccontextmanager
async def started(process: Operator) -> AsyncIterator[Operator]:
    """Run a process until the block ends; an error in the block carries the end of its log."""
    await process.start()
    try:
        yield process
    except Exception as error:
        error.add_note(f"The end of the operator's log:\n{process.last_words}")
        raise
    finally:
        await process.kill()


async def account(client: HttpClient, admin: Path, home: str, directory: Path, *roles: str) -> Path:
    """A kubeconfig of the shipped service account, which has these of the shipped roles.

    `home` is where it lives, where the manifests say `mpi-operator`; what they leave open goes
    there too. `admin` is an administrator's kubeconfig.
    """
    await _ensure_namespace(client, home)
    for name in ("account.yaml", *roles):
        for manifest in yaml.safe_load_all((RBAC / name).read_text()):
            await _apply(client, _moved(manifest, home))
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": HOME, "namespace": home},
        "spec": {"expirationSeconds": 7200},
    }
    answer = await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    path = directory / f"{home}.kubeconfig"
    path.write_text(yaml.safe_dump(_kubeconfig(admin, answer["status"]["token"])))
    path.chmod(0o600)
    return path


async def allow(client: HttpClient, namespace: str, home: str, *roles: str) -> None:
    """Let the account in the namespace `home` manage the jobs of another namespace."""
    for name in roles or _USUAL:
        for manifest in yaml.safe_load_all((RBAC / name).read_text()):
            await _apply(client, _moved(manifest, home, namespace))


def _moved(manifest: Manifest, home: str, namespace: str = "") -> Manifest:
    """A shipped manifest for another home, and maybe another namespace, than those it names."""
    metadata = dict(manifest["metadata"])
    if _KINDS[manifest["kind"]].namespaced:
        metadata["namespace"] = namespace or home
    elif "subjects" in manifest:  # else the next home would take it from this one
        metadata["name"] += f"-{home}"
    moved = {**manifest, "metadata": metadata}
    if "subjects" in manifest:
        moved["subjects"] = [
            {**subject, "namespace": home} if subject.get("namespace") == HOME else subject
            for subject in manifest["subjects"]
        ]
    return moved


def _kubeconfig(admin: Path, token: str) -> Manifest:
    [cluster] = yaml.safe_load(admin.read_text())["clusters"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": cluster["cluster"]}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }


async def _apply(client: HttpClient, manifest: Manifest) -> None:
    await client.apply(_KINDS[manifest["kind"]], manifest, manager="tests", force=True)


async def _ensure_namespace(client: HttpClient, name: str) -> None:
    try:
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    except errors.AlreadyExists:
        return
