"""How a Job controller counts against `backoffLimit`: Kubernetes' own, and that of this machine.

A test plays the kubelet: it writes the status of the Job's pods, and looks at what the Job makes
of it. A subclass has the fixtures `client` and `namespace`.
"""

from typing import Any

import pytest

from mpi_operator.kube.client import Client, Selector
from mpi_operator.kube.resources import JOBS, PODS, Manifest
from tests.support.waiting import until

_OVER = ("FailureTarget", "Failed")
# Restarts of a container that a Job of this limit still bears, if they happen in one pod.
IN_PLACE = [(0, 0), (1, 0), (2, 1), (3, 2)]
# Failed pods that it bears. More would take long: Kubernetes waits 10s and 20s before the next.
IN_NEW_PODS = [(0, 0), (1, 1)]


class JobBackoffContract:
    @pytest.mark.parametrize(("limit", "borne"), IN_PLACE)
    async def test_restarts_in_a_pod(self, client: Client, namespace: str, limit: int, borne: int):
        job = Playing(client, namespace, "OnFailure", limit)
        await job.start()
        pod = await job.next_pod()
        await job.write(pod, restarts=borne)
        await job.until_ready()  # so the controller has seen the restarts
        assert not await job.is_over()
        await job.write(pod, restarts=borne + 1)
        await until(job.is_over)
        assert await job.reason() == "BackoffLimitExceeded"

    @pytest.mark.parametrize(("limit", "borne"), IN_NEW_PODS)
    async def test_failed_pods(self, client: Client, namespace: str, limit: int, borne: int):
        job = Playing(client, namespace, "Never", limit)
        await job.start()
        for _ in range(borne):
            await job.write(await job.next_pod(), phase="Failed")
        last = await job.next_pod()  # there is another attempt
        assert not await job.is_over()
        await job.write(last, phase="Failed")
        await until(job.is_over)
        assert await job.reason() == "BackoffLimitExceeded"


class Playing:
    """A Job, and the kubelet of its pods."""

    def __init__(self, client: Client, namespace: str, policy: str, limit: int) -> None:
        self._client = client
        self._namespace = namespace
        self._policy = policy
        self._limit = limit
        self._known: set[str] = set()

    async def start(self) -> None:
        container = {"name": "main", "image": "example.com/none:1"}
        template = {"spec": {"restartPolicy": self._policy, "containers": [container]}}
        metadata = {"name": "j", "namespace": self._namespace}
        spec = {"backoffLimit": self._limit, "template": template}
        await self._client.create(JOBS, {"metadata": metadata, "spec": spec})

    async def next_pod(self) -> str:
        """The name of a pod that was not there before."""
        found: list[str] = []

        async def is_there() -> bool:
            listing = await self._client.list(
                PODS, self._namespace, Selector(labels="batch.kubernetes.io/job-name=j")
            )
            names = {each["metadata"]["name"] for each in listing.items}
            found[:] = names - self._known
            return bool(found)

        await until(is_there)
        self._known.update(found)
        return found[0]

    async def write(self, pod: str, *, phase: str = "Running", restarts: int = 0) -> None:
        is_ready = phase == "Running"
        state: Manifest = {"running": {}} if is_ready else {"terminated": {"exitCode": 1}}
        main: dict[str, Any] = {
            "name": "main",
            "image": "example.com/none:1",
            "imageID": "",
            "ready": is_ready,
            "restartCount": restarts,
            "state": state,
        }
        ready = {"type": "Ready", "status": str(is_ready)}
        status = {"phase": phase, "containerStatuses": [main], "conditions": [ready]}
        await self._client.patch(
            PODS, pod, {"status": status}, self._namespace, subresource="status"
        )

    async def until_ready(self) -> None:
        async def is_ready() -> bool:
            return bool((await self._status()).get("ready") == 1)

        await until(is_ready)

    async def is_over(self) -> bool:
        return bool(await self._ends())

    async def reason(self) -> str:
        return str((await self._ends())[0]["reason"])

    async def _ends(self) -> list[Manifest]:
        conditions = (await self._status()).get("conditions") or ()
        return [each for each in conditions if each["type"] in _OVER and each["status"] == "True"]

    async def _status(self) -> Manifest:
        found: Manifest = (await self._client.get(JOBS, "j", self._namespace)).get("status") or {}
        return found
