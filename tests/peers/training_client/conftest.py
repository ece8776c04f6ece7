"""Kubeflow's `TrainingClient` from PyPI, unchanged, in an environment of its own."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import Cluster
from tests.cluster.operator.lab import Lab
from tests.support import virtual_environments

PACKAGES = ("kubeflow-training==1.9.4", "kubernetes==35.0.0")
_SERVED = Path(__file__).with_name("served.py")


class ClientError(Exception):
    """What the client raised."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RemoteClient:
    """A `TrainingClient` in another process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def call(self, method: str, **arguments: Any) -> Any:
        """What a method returns, as JSON; ClientError if it raises."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([method, arguments]).encode() + b"\n")
        answer = json.loads(await stdout.readline())
        if "error" in answer:
            raise ClientError(answer["error"], answer["message"])
        return answer["returned"]


@pytest.fixture(scope="session")
def client_python() -> str:
    return str(virtual_environments.provide(*PACKAGES) / "bin" / "python")


@pytest.fixture
async def training(lab: Lab, cluster: Cluster, client_python: str) -> AsyncIterator[RemoteClient]:
    """The client of the namespace of a test."""
    process = await asyncio.create_subprocess_exec(
        client_python,
        str(_SERVED),
        str(cluster.kubeconfig()),
        lab.namespace,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    yield RemoteClient(process)
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()
