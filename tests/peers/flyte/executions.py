"""Executions of tasks: flytekit serialises a task, and Flyte's back end runs it on a cluster."""

import asyncio
import json
import subprocess
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mpi_operator.kube.resources import Manifest, Resource
from tests.cluster.operator.lab import Lab

V1 = Resource("kubeflow.org", "v1", "mpijobs", "MPIJob")
IMAGE = "mpioperator/flyte:test"
FINALIZER = "flyte.org/finalizer-k8s"
LABELS = {"execution-id": "f0", "project": "project", "domain": "development", "node-id": "n0"}
ANNOTATIONS = {"example.com/execution": "f0"}
QUEUED, RUNNING, SUCCESS = "PhaseQueued", "PhaseRunning", "PhaseSuccess"
RETRYABLE, PERMANENT = "PhaseRetryableFailure", "PhasePermanentFailure"
PATIENCE = 15  # seconds of Flyte; a minute, unless configured
_ENDS = (SUCCESS, RETRYABLE, PERMANENT)
_SERIALIZE = Path(__file__).parent / "image" / "serialize.py"


def templates(python: Path) -> Mapping[str, str]:
    """All tasks by name, as flytekit serialises them; `python` has it."""
    command = [str(python), str(_SERIALIZE), IMAGE]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return dict(json.loads(printed))


@dataclass(frozen=True)
class Flyte:
    """Its back end, and what it can run."""

    templates: Mapping[str, str]
    """The tasks that flytekit has serialised, in base64."""
    backend: Path
    kubeconfig: Path

    @asynccontextmanager
    async def executing(self, lab: Lab, task: str, **settings: Any) -> AsyncIterator["Execution"]:
        """A task, run by a back end of its own until the test is over."""
        name = f"f0-n0-{task.replace('_', '-')}"
        request = _request(lab.namespace, name, self.templates[task]) | settings
        process = await asyncio.create_subprocess_exec(
            self.backend,
            self.kubeconfig,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        execution = Execution(lab, name, process)
        try:
            await execution.tell(json.dumps(request))
            yield execution
        finally:
            process.kill()
            await process.wait()
            await execution.forget()


class Execution:
    """One task in Flyte's back end."""

    def __init__(self, lab: Lab, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._lab = lab
        self._process = process

    async def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def do(self, command: str) -> Any:
        """What the back end answers to a command."""
        assert self._process.stdout is not None
        await self.tell(command)
        answer = await asyncio.wait_for(self._process.stdout.readline(), 90)
        return json.loads(answer)

    async def reaches(self, phase: str, reason: str = "") -> list[str]:
        """The phases that Flyte sees until this one, each once."""
        answers = [await self.do("handle")]
        while not _matches(answers[-1], phase, reason):
            going = answers[-1].get("phase") not in (None, *_ENDS)
            assert going, f"{answers[-1]}\n{await self._lab.account(self.name)}"
            answers.append(await self.do("next"))
        return list(dict.fromkeys(each["phase"] for each in answers))

    async def job(self) -> Manifest:
        """The job as Flyte reads it."""
        return await self._lab.client.get(V1, self.name, self._lab.namespace)

    async def is_older(self, seconds: float) -> bool:
        """Whether the job was created that long ago."""
        created = (await self.job())["metadata"]["creationTimestamp"]
        age = datetime.now(UTC) - datetime.fromisoformat(created)
        return age > timedelta(seconds=seconds + 1)  # times are whole seconds

    async def forget(self) -> None:
        """Delete the job, if there is one, without waiting for Flyte."""
        if await self._lab.find(V1, self.name):
            without_finalizers: Manifest = {"metadata": {"finalizers": None}}
            client, namespace = self._lab.client, self._lab.namespace
            await client.patch(V1, self.name, without_finalizers, namespace)
            await client.delete(V1, self.name, namespace)


def _matches(answer: Manifest, phase: str, reason: str) -> bool:
    return answer.get("phase") == phase and reason in ("", answer.get("reason"))


def _request(namespace: str, name: str, template: str) -> dict[str, Any]:
    owner = {
        "apiVersion": "flyte.lyft.com/v1alpha1",
        "kind": "flyteworkflow",
        "name": LABELS["execution-id"],
        "uid": str(uuid.uuid4()),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "template": template,
        "name": name,
        "namespace": namespace,
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "owner": owner,
        "data": "file:///flyte",
    }
