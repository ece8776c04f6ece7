"""Submits a job to the embedded cluster, changes it, and waits for its states."""

from pathlib import Path
from typing import Any

from mpi_operator.embedded import MPI_JOBS
from mpi_operator.kube.client import Client, Selector
from mpi_operator.kube.resources import EVENTS, JOBS, PODS, Manifest
from tests.support.waiting import until

WAIT = "exec sleep 600"
# Pods have 30s to end after SIGTERM, and then are killed: what takes less was terminated.
STOP_SECONDS = 25
START_SECONDS = 60
UNTIL_DONE = "while ! test -e done; do sleep 0.02; done"


def manifest(
    launcher: str,
    workers: int = 2,
    worker: str = WAIT,
    *,
    namespace: str = "default",
    policy: Manifest | None = None,
    probe: Manifest | None = None,
    restart_policy: str = "Never",
    annotations: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A job whose pods run shell scripts. A failed launcher gets a new pod, unless its
    `restart_policy` restarts it in place."""
    roles = {
        "Launcher": {"restartPolicy": restart_policy, "template": _template(launcher)},
        "Worker": {"replicas": workers, "template": _template(worker, probe)},
    }
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": "pi", "namespace": namespace, "annotations": annotations or {}},
        "spec": {"runPolicy": policy or {}, "mpiReplicaSpecs": roles, **spec},
    }


def _template(script: str, probe: Manifest | None = None) -> Manifest:
    container: Manifest = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    if probe is not None:
        container["readinessProbe"] = probe
    return {"spec": {"containers": [container]}}


class JobDriver:
    """The job `pi` of a namespace. Its pods start in `directory`."""

    def __init__(self, cluster: Client, directory: Path, namespace: str = "default") -> None:
        self.cluster = cluster
        self.directory = directory
        self.namespace = namespace

    async def submit(self, launcher: str, workers: int = 2, **options: Any) -> None:
        job = manifest(launcher, workers, namespace=self.namespace, **options)
        await self.cluster.create(MPI_JOBS, job)

    async def change(self, **spec: Any) -> None:
        await self.cluster.patch(MPI_JOBS, "pi", {"spec": spec}, self.namespace)

    async def suspend(self, *, suspend: bool = True) -> None:
        await self.change(runPolicy={"suspend": suspend})

    async def scale(self, workers: int) -> None:
        change = {"spec": {"replicas": workers}}
        await self.cluster.patch(MPI_JOBS, "pi", change, self.namespace, subresource="scale")

    async def status(self) -> Manifest:
        found = await self.cluster.get(MPI_JOBS, "pi", self.namespace)
        status: Manifest = found.get("status") or {}
        return status

    async def condition(self, kind: str) -> Manifest:
        conditions = (await self.status()).get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    async def until_condition(self, kind: str, status: str = "True", seconds: float = 30) -> str:
        """Wait for a condition; its reason and message."""

        async def is_so() -> bool:
            return (await self.condition(kind)).get("status") == status

        await until(is_so, seconds)
        found = await self.condition(kind)
        return f"{found['reason']}: {found['message']}"

    async def until_runs(self) -> None:
        """Wait until the launcher and the workers run."""
        await self.until_condition("Running")

    async def end(self) -> str:
        """Wait until the job has ended; its last condition."""

        async def has_ended() -> bool:
            return bool(await self.condition("Succeeded") or await self.condition("Failed"))

        await until(has_ended, 60)
        kind = "Succeeded" if await self.condition("Succeeded") else "Failed"
        return f"{kind} {await self.until_condition(kind)}"

    async def workers(self) -> dict[str, str]:
        """The phases of the workers by name."""
        selector = "training.kubeflow.org/job-role=worker"
        listing = await self.cluster.list(PODS, self.namespace, Selector(labels=selector))
        return {
            pod["metadata"]["name"]: (pod.get("status") or {}).get("phase", "")
            for pod in listing.items
        }

    async def until_workers(self, expected: dict[str, str], seconds: float = START_SECONDS) -> None:
        async def are_there() -> bool:
            return await self.workers() == expected

        try:
            await until(are_there, seconds)
        except TimeoutError:
            assert await self.workers() == expected

    async def until_no_workers(self) -> None:
        await self.until_workers({}, STOP_SECONDS)

    async def until_no_pods(self) -> None:
        async def is_empty() -> bool:
            return (await self.cluster.list(PODS, self.namespace)).items == []

        await until(is_empty, STOP_SECONDS)

    async def launchers(self) -> list[Manifest]:
        return (await self.cluster.list(JOBS, self.namespace)).items

    async def exit_codes(self) -> list[int]:
        """The exit codes of the launcher pods."""
        selector = "training.kubeflow.org/job-role=launcher"
        listing = await self.cluster.list(PODS, self.namespace, Selector(labels=selector))
        states = [pod["status"]["containerStatuses"][0]["state"] for pod in listing.items]
        return [state["terminated"]["exitCode"] for state in states if "terminated" in state]

    async def events(self, reason: str) -> list[str]:
        listing = await self.cluster.list(EVENTS, self.namespace)
        found = [each for each in listing.items if each["reason"] == reason]
        return [each.get("message") or each.get("note") or "" for each in found]

    async def until_event(self, reason: str, seconds: float = 30) -> None:
        async def is_there() -> bool:
            return bool(await self.events(reason))

        await until(is_there, seconds)

    def lines(self, name: str) -> list[str]:
        """The words that pods have written to a file."""
        try:
            return (self.directory / name).read_text().split()
        except FileNotFoundError:
            return []

    async def until_lines(self, name: str, expected: list[str], seconds: float = 30) -> None:
        await until(lambda: self.lines(name) == expected, seconds)

    def finish(self) -> None:
        """Let a launcher that runs `UNTIL_DONE` end."""
        (self.directory / "done").touch()


def running(*indexes: int) -> dict[str, str]:
    """The phases of these workers when all are running."""
    return {f"pi-worker-{index}": "Running" for index in indexes}
