"""Puts the parts of `local` together, and the controller on them: MPIJobs on this machine.

    async with machine(run.directory, working_directory=Path(".")) as cluster:
        await cluster.create(MPI_JOBS, job)

The controller is the same as on Kubernetes, so a job has the same lifecycle: retries, suspension,
scaling, replaced workers, clean-up. Each part gets what it needs in its constructor:

    NodePods ──logs──► LocalCluster ──Client──► JobController, Controller
        └───────────────► Node ◄──────Client───────┘
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .api import labels
from .api.decode import decode_job
from .api.field_errors import InvalidJob
from .build.ownership import MPI_JOBS
from .kube import errors
from .kube.resources import Manifest
from .local import mpi_installation
from .local.apiserver.cluster import LocalCluster
from .local.apiserver.served_kinds import Kind, Scale
from .local.jobs.job_controller import JobController
from .local.jobs.job_decisions import PodFailureBackoff
from .local.kubelet.allocator import Group
from .local.kubelet.context import Stdio
from .local.kubelet.node import Node
from .local.kubelet.node_pods import NodePods
from .local.runs.resource_ledger import ResourceLedger
from .local.sandbox.protocol import Kind as SandboxKind
from .local.socket.socket_server import serving

__all__ = ["MPI_JOBS", "MPI_JOB_KIND", "machine"]

# A person waits: a failed launcher is retried after 1s, not after 10s.
_BACKOFF = PodFailureBackoff(initial=timedelta(seconds=1), maximum=timedelta(minutes=1))
_REPLICAS = ".spec.mpiReplicaSpecs.Worker.replicas"
_SCALE = Scale(_REPLICAS, ".status.replicaStatuses.Worker.active", ".status.selector")


@asynccontextmanager
async def machine(
    directory: Path,
    *,
    working_directory: Path,
    implementation: mpi_installation.Installation | None = None,
    oversubscribe: bool = False,
    requests: Mapping[str, Mapping[str, Fraction]] = MappingProxyType({}),
    kind: SandboxKind | None = None,
    has_controller: bool = True,
    on_plain: Callable[[str], None] = lambda why: None,
    pods: NodePods | None = None,
    stdio: Stdio | None = None,
) -> AsyncIterator[LocalCluster]:
    """A cluster on this machine. No process of it is left when the block ends.

    Other shells of this user reach it through the directory (`local.socket`). `kind` defaults to
    the best kind of sandbox that works here; `on_plain` gets the reason if that is not namespaces.
    `requests` has what all pods of a job together request, by the name of the job. Without a
    controller, pods and Jobs run and MPIJobs are only stored. With `pods` the caller sees
    what they print as it is printed.
    """
    pods = pods or NodePods()
    cluster = LocalCluster([MPI_JOB_KIND], logs=pods.log)
    node = Node(
        cluster,
        pods=pods,
        directory=directory,
        working_directory=working_directory,
        tools=implementation.tools if implementation else None,
        oversubscribe=oversubscribe,
        ledger=ResourceLedger(directory),
        group_of=partial(_job_of, requests),
        kind=kind,
        on_plain=on_plain,
        stdio=stdio,
    )
    parts = [node.run(), JobController(cluster, backoff=_BACKOFF).run()]
    controllers = [_control(cluster)] if has_controller else []
    # The socket ends last, so that another shell that follows a log gets its last lines.
    async with serving(cluster, directory), _running(parts), _running(controllers):
        yield cluster


def _job_of(requests: Mapping[str, Mapping[str, Fraction]], pod: Manifest) -> Group | None:
    """The job of a pod, whose pods start together."""
    name = (pod["metadata"].get("labels") or {}).get(labels.JOB_NAME) or ""
    return Group(name, requests[name]) if name in requests else None


async def _control(cluster: LocalCluster) -> None:
    # Loaded while the helper process of the node starts: a person waits for both.
    from .build.settings import Settings  # noqa: PLC0415
    from .build.ssh_secret import KeyPair  # noqa: PLC0415
    from .controller.controller import Controller  # noqa: PLC0415

    # The agent replaces ssh and exec, so no keys are needed.
    settings = Settings(is_local=True)
    controller = Controller(cluster, cluster, settings, make_keys=lambda: KeyPair("", ""))
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.follow())
        await controller.synced()
        await controller.lead()


@asynccontextmanager
async def _running(parts: list[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run parts beside the block; they end with it, and one that fails ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part) for part in parts]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def _admitted(manifest: Manifest) -> Manifest:
    """A job as an API server would store it: with the default that scaling needs, or Invalid."""
    try:
        job = decode_job(manifest)
    except InvalidJob as invalid:
        causes = tuple(
            errors.Cause(message=each.message, field=each.path.text) for each in invalid.errors
        )
        details = errors.Details(name=manifest["metadata"].get("name", ""), causes=causes)
        raise errors.Invalid(errors.Status(str(invalid), "Invalid", 422, details)) from invalid
    if job.spec.worker is None:
        return manifest
    roles = manifest["spec"]["mpiReplicaSpecs"]
    worker = {**roles["Worker"], "replicas": job.spec.worker.replicas}
    spec = {**manifest["spec"], "mpiReplicaSpecs": {**roles, "Worker": worker}}
    return {**manifest, "spec": spec}


MPI_JOB_KIND = Kind(MPI_JOBS, has_status=True, scale=_SCALE, admit=_admitted)
