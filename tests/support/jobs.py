"""The jobs of a namespace of a real API server, where the test takes the place of the kubelet."""

from typing import Any

from mpi_operator.kube import errors
from mpi_operator.kube.client import DeleteOptions, Selector
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, EVENTS, JOBS, PODS, Manifest, Resource
from tests.support.mpijobs import MPIJOBS
from tests.support.waiting import until


class Jobs:
    """Submits jobs, moves their pods from phase to phase, and reads what the operator wrote."""

    def __init__(self, client: HttpClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def submit(self, job: Manifest) -> Manifest:
        job = {**job, "metadata": {**job["metadata"], "namespace": self.namespace}}
        return await self.client.create(MPIJOBS, job)

    async def job(self, name: str) -> Manifest:
        return await self.client.get(MPIJOBS, name, self.namespace)

    async def status(self, name: str) -> Manifest:
        status: Manifest = (await self.job(name)).get("status", {})
        return status

    async def change(self, name: str, **spec: Any) -> Manifest:
        """Merge something into the spec of a job, as people and Kueue do."""
        return await self.client.patch(MPIJOBS, name, {"spec": spec}, self.namespace)

    async def suspend(self, name: str, suspend: bool = True) -> Manifest:
        return await self.change(name, runPolicy={"suspend": suspend})

    async def scale(self, name: str, workers: int) -> None:
        """What `kubectl scale` does."""
        wanted = {"spec": {"replicas": workers}}
        await self.client.patch(MPIJOBS, name, wanted, self.namespace, subresource="scale")

    async def observes(self, name: str, generation: int) -> None:
        """Wait until the operator has reconciled this generation of a job."""

        async def has_seen() -> bool:
            return bool((await self.status(name)).get("observedGeneration", 0) >= generation)

        await until(has_seen)

    async def condition(self, name: str, kind: str) -> Manifest | None:
        conditions = (await self.job(name)).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), None)

    async def has_condition(
        self, name: str, kind: str, status: str = "True", reason: str = ""
    ) -> bool:
        found = await self.condition(name, kind)
        return (
            found is not None
            and found["status"] == status
            and reason in ("", found.get("reason", ""))
        )

    async def becomes(self, name: str, kind: str, status: str = "True", reason: str = "") -> None:
        """Wait for a condition of a job."""
        await until(lambda: self.has_condition(name, kind, status, reason))

    async def pods(self, job: str, role: str = "") -> list[Manifest]:
        """The pods of a job by name, without those that are terminating."""
        pods = await self.all_pods(job, role)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    async def all_pods(self, job: str, role: str = "") -> list[Manifest]:
        selector = f"training.kubeflow.org/job-name={job}"
        if role:
            names = "launcher,master" if role == "launcher" else role  # that of v1 is another one
            selector += f",training.kubeflow.org/job-role in ({names})"
        listing = await self.client.list(PODS, self.namespace, Selector(labels=selector))
        return sorted(listing.items, key=lambda each: str(each["metadata"]["name"]))

    async def pod_names(self, job: str, role: str = "") -> list[str]:
        return [pod["metadata"]["name"] for pod in await self.pods(job, role)]

    async def has_workers(self, job: str, count: int) -> bool:
        return len(await self.pods(job, "worker")) == count

    async def launcher_job(self, job: str) -> Manifest:
        return await self.client.get(JOBS, f"{job}-launcher", self.namespace)

    async def hosts(self, job: str) -> list[str]:
        """What `discover_hosts.sh` would print."""
        data = (await self.client.get(CONFIG_MAPS, f"{job}-config", self.namespace))["data"]
        lines: list[str] = data["discover_hosts.sh"].splitlines()
        return [line.removeprefix("echo ") for line in lines if line.startswith("echo ")]

    async def events(self, job: str) -> list[tuple[str, str]]:
        """Reasons and messages of the events about a job."""
        listing = await self.client.list(EVENTS, self.namespace)
        return [
            (event["reason"], event["message"])
            for event in listing.items
            if event["involvedObject"].get("kind") == "MPIJob"
            and event["involvedObject"]["name"] == job
        ]

    async def has_event(self, job: str, reason: str) -> bool:
        return reason in [found for found, _ in await self.events(job)]

    async def event_messages(self, job: str, reason: str, seconds: float = 30) -> list[str]:
        """Wait for events with a reason; their messages."""
        await until(lambda: self.has_event(job, reason), seconds)
        return [message for found, message in await self.events(job) if found == reason]

    async def find(self, resource: Resource, name: str) -> Manifest | None:
        try:
            return await self.client.get(resource, name, self.namespace)
        except errors.NotFound:
            return None

    async def gone(self, resource: Resource, name: str) -> None:
        """Wait until there is no such object."""

        async def is_gone() -> bool:
            return await self.find(resource, name) is None

        await until(is_gone)

    async def set_status(self, pod: str, **status: Any) -> None:
        change = {"status": status}
        await self.client.patch(PODS, pod, change, self.namespace, subresource="status")

    async def run(self, *pods: str, ready: bool = True) -> None:
        """Set pods to Running."""
        why_not = {} if ready else {"reason": "ContainersNotReady"}
        conditions = [{"type": "Ready", "status": "True" if ready else "False", **why_not}]
        for pod in pods:
            await self.set_status(pod, phase="Running", conditions=conditions)

    async def succeed(self, *pods: str) -> None:
        for pod in pods:
            await self.set_status(pod, phase="Succeeded", conditions=[])

    async def fail(
        self,
        *pods: str,
        exit_code: int = 1,
        message: str = "",
        container: str = "mpi",
        **status: Any,
    ) -> None:
        ended = {"exitCode": exit_code, "reason": "Error", "message": message}
        state = {
            "name": container,
            "image": "example.com/mpi:1",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        for pod in pods:
            await self.set_status(
                pod, phase="Failed", conditions=[], containerStatuses=[state], **status
            )

    async def evict(self, *pods: str) -> None:
        for pod in pods:
            message = "The node was low on resource: memory."
            await self.set_status(pod, phase="Failed", reason="Evicted", message=message)

    async def delete_now(self, *pods: str) -> None:
        """Delete pods without a grace period."""
        for pod in pods:
            await self.client.delete(
                PODS, pod, self.namespace, DeleteOptions(grace_period_seconds=0)
            )

    async def lose_first_worker(self, job: Manifest) -> str:
        """Start a job and delete a worker whose node does not confirm the deletion; its uid."""
        name = job["metadata"]["name"]
        worker = f"{name}-worker-0"
        await self.submit(job)
        await until(lambda: self.has_workers(name, 2))
        target = {"apiVersion": "v1", "kind": "Node", "name": "far-away"}
        binding = {"metadata": {"name": worker, "namespace": self.namespace}, "target": target}
        await self.client.create(PODS, binding, subresource="binding")
        await self.start(name, workers=2)
        await self.client.delete(
            PODS, worker, self.namespace, DeleteOptions(grace_period_seconds=1)
        )
        found = await self.client.get(PODS, worker, self.namespace)
        return str(found["metadata"]["uid"])

    async def start(self, job: str, workers: int) -> str:
        """Let all pods run; the name of the launcher's pod."""
        await self.start_workers(job, workers)
        launcher = await self.launcher_pod(job)
        await self.run(launcher)
        await self.becomes(job, "Running")
        return launcher

    async def start_workers(self, job: str, workers: int, ready: bool = True) -> None:
        """Wait for this many workers, and let them run."""
        names = [f"{job}-worker-{index}" for index in range(workers)]

        async def are_there() -> bool:
            return sorted(await self.pod_names(job, "worker")) == sorted(names)

        await until(are_there)  # a count could be right while one still has to go
        await self.run(*names, ready=ready)

    async def launcher_pod(self, job: str) -> str:
        """Wait for the launcher's pod; its name."""
        await until(lambda: self._has_launcher(job))
        [launcher] = await self.pod_names(job, "launcher")
        return launcher

    async def finish(self, job: str, workers: int) -> None:
        """Let all pods run, and the launcher succeed."""
        await self.succeed(await self.start(job, workers))
        await self.becomes(job, "Succeeded")

    async def _has_launcher(self, job: str) -> bool:
        return len(await self.pods(job, "launcher")) == 1
