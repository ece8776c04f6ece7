"""Jobs with real pods, and what their pods did and printed."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from mpi_operator.kube.client import DeleteOptions
from mpi_operator.kube.resources import NODES, PODS, Manifest
from tests.support.jobs import Jobs
from tests.support.waiting import until

_RANK = re.compile(r"rank (\d+) of (\d+) on (\S+)")
_ENDS = ("Succeeded", "Failed")


class Lab(Jobs):
    """The jobs of a namespace of a real cluster, where real kubelets run the pods."""

    async def succeeds(self, name: str, seconds: float = 90) -> None:
        """Wait until a job has succeeded; AssertionError with its account if it does not."""
        assert await self.ends(name, seconds) == "Succeeded", await self.account(name)

    async def succeed_all(self, names: Iterable[str], seconds: float = 180) -> None:
        """Wait for jobs that run side by side."""
        await asyncio.gather(*(self.succeeds(name, seconds) for name in names))

    async def fails(self, name: str, seconds: float = 90) -> Manifest:
        """Wait until a job has failed; its Failed condition."""
        assert await self.ends(name, seconds) == "Failed", await self.account(name)
        failed = await self.condition(name, "Failed")
        assert failed is not None
        return failed

    async def has_usual_history(self, name: str) -> None:
        """Check the conditions and events of a job that succeeded without incident."""
        conditions = (await self.status(name))["conditions"]
        assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
            ("Created", "True", "MPIJobCreated"),
            ("Running", "False", "MPIJobRunning"),
            ("Succeeded", "True", "MPIJobSucceeded"),
        ]
        await self.event_messages(name, "MPIJobSucceeded")
        assert [reason for reason, _ in await self.events(name)] == [
            "MPIJobCreated",
            "MPIJobRunning",
            "MPIJobSucceeded",
        ]

    async def ends(self, name: str, seconds: float = 90) -> str:
        """How a job ended."""
        await self.comes_true(name, lambda job: bool(_ending(job)), seconds)
        return _ending(await self.job(name))

    async def runs(self, name: str, seconds: float = 60) -> None:
        await self.comes_true(name, lambda job: "Running" in _true_conditions(job), seconds)

    async def comes_true(self, name: str, fact: Callable[[Manifest], bool], seconds: float) -> None:
        """Wait for a fact about a job; AssertionError with its account if it does not come true."""

        async def is_true() -> bool:
            return fact(await self.job(name))

        await self.eventually(name, is_true, seconds)

    async def eventually(
        self, name: str, fact: Callable[[], Awaitable[bool]], seconds: float = 60
    ) -> None:
        """Wait for a fact; AssertionError with the account of a job if it does not come true."""
        try:
            await until(fact, seconds)
        except TimeoutError:
            raise AssertionError(await self.account(name)) from None

    async def ranks(self, name: str) -> dict[int, str]:
        """On which pod each rank ran, as the ranks themselves say."""
        said = [_RANK.search(line) for line in (await self.log(name)).splitlines()]
        return {int(found[1]): found[3] for found in said if found}

    async def log(self, name: str) -> str:
        """What the launcher printed, in its newest try."""
        pods = sorted(await self.launchers(name), key=_age)
        return await self.pod_log(pods[-1]["metadata"]["name"]) if pods else ""

    async def pod_log(self, pod: str) -> str:
        lines = [line async for line in self.client.log(pod, self.namespace)]
        return b"\n".join(lines).decode(errors="replace")

    async def prints(self, name: str, words: str, seconds: float = 60) -> None:
        """Wait until the launcher has printed something."""

        async def has_printed() -> bool:
            launchers = await self.launchers(name)
            running = [pod for pod in launchers if pod["status"].get("phase") != "Pending"]
            return bool(running) and words in await self.log(name)

        await self.eventually(name, has_printed, seconds)

    async def kill(self, pod: str) -> None:
        """Delete a pod without asking its node."""
        await self.client.delete(PODS, pod, self.namespace, DeleteOptions(grace_period_seconds=0))

    async def launchers(self, name: str) -> list[Manifest]:
        return await self.pods(name, "launcher")

    async def restarts(self, name: str) -> int:
        """How often the launcher was started after the first time."""
        launchers = await self.launchers(name)
        statuses = [s for pod in launchers for s in pod["status"].get("containerStatuses", ())]
        return len(launchers) - 1 + sum(int(status["restartCount"]) for status in statuses)

    async def is_launched_last(self, name: str) -> bool:
        """Whether the launcher was made when every worker was ready."""
        [launcher] = await self.launchers(name)
        ready = max(map(_ready_since, await self.pods(name, "worker")))
        return bool(launcher["metadata"]["creationTimestamp"] >= ready)

    async def time_to_ready(self, name: str) -> timedelta:
        """How long it took until each worker that ran was ready."""
        return max(map(_time_to_ready, await self.pods(name, "worker")))

    async def nodes(self, name: str, role: str = "worker") -> set[str]:
        """The nodes on which pods of a job are."""
        return {pod["spec"].get("nodeName", "") for pod in await self.pods(name, role)}

    async def account(self, name: str) -> str:
        """What helps to understand a failure: conditions, nodes, pods, events and the log."""
        job = await self.job(name)
        conditions = "\n".join(str(each) for each in job.get("status", {}).get("conditions", ()))
        # All pods, the operator's too: where it runs can be the reason.
        pods = "\n".join(map(_summary, (await self.client.list(PODS)).items))
        nodes = "\n".join(map(_readiness, (await self.client.list(NODES)).items))
        events = "\n".join(f"{reason}: {message}" for reason, message in await self.events(name))
        return f"{name}\n{conditions}\n{nodes}\n{pods}\n{events}\n{await self._any_log(name)}"

    async def _any_log(self, name: str) -> str:
        try:
            return await self.log(name)
        except Exception as error:  # it is a help, and must not hide what it should explain
            return f"no log: {error}"


def _ending(job: Manifest) -> str:
    return next((each for each in _true_conditions(job) if each in _ENDS), "")


def _true_conditions(job: Manifest) -> list[str]:
    conditions = job.get("status", {}).get("conditions", [])
    return [each["type"] for each in conditions if each["status"] == "True"]


def _summary(pod: Manifest) -> str:
    states: Any = [each.get("state") for each in pod["status"].get("containerStatuses", ())]
    node = pod["spec"].get("nodeName", "no node")
    ending = pod["metadata"].get("deletionTimestamp", "")
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    phase = pod["status"].get("phase")
    return f"{name} on {node}: {phase} {_ready(pod)} {states} {ending}"


def _readiness(node: Manifest) -> str:
    return f"{node['metadata']['name']}: {_ready(node)}"


def _ready_since(pod: Manifest) -> str:
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    return str(conditions["Ready"]["lastTransitionTime"])


def _time_to_ready(pod: Manifest) -> timedelta:
    [status] = pod["status"]["containerStatuses"]
    began = datetime.fromisoformat(status["state"]["running"]["startedAt"])
    return datetime.fromisoformat(_ready_since(pod)) - began


def _ready(thing: Manifest) -> str:
    """Whether a pod or a node is ready, and since when."""
    conditions = thing.get("status", {}).get("conditions", ())
    found = [each for each in conditions if each["type"] == "Ready"]
    return " ".join(f"ready {each['status']} since {each['lastTransitionTime']}" for each in found)


def _age(pod: Manifest) -> str:
    return str(pod["metadata"]["creationTimestamp"])
