"""What the Go operator leaves behind: children with its few labels, and statuses as it writes them.

After its release 0.8 (spec sections 2.0 to 2.7 and 3).
"""

from typing import Any

from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS

_PREFIX = "training.kubeflow.org/"
_TIME = "2026-01-31T12:00:00Z"


def _labels(job: str, role: str) -> dict[str, str]:
    return {
        f"{_PREFIX}operator-name": "mpi-operator",
        f"{_PREFIX}job-name": job,
        f"{_PREFIX}job-role": role,
    }


class GoOperator:
    """Creates what the Go operator creates for a job, and then stops."""

    def __init__(self, jobs: Jobs, job: Manifest) -> None:
        self._jobs = jobs
        self._name: str = job["metadata"]["name"]
        self._job = job

    async def make_children(self, workers: int, **launcher: Any) -> None:
        """Everything that a job has once it was synced."""
        await self._make_what_pods_need(workers)
        for index in range(workers):
            await self._make_worker(index)
        await self._make_launcher(**launcher)

    async def write_status(self, *conditions: tuple[str, str, str], **status: Any) -> None:
        """Store a status with these conditions: type, status and reason."""
        stored = await self._jobs.job(self._name)
        stored["status"] = {
            "conditions": [
                {
                    "type": kind,
                    "status": value,
                    "reason": reason,
                    "message": f"MPIJob {self._jobs.namespace}/{self._name}: {reason}",
                    "lastUpdateTime": _TIME,
                    "lastTransitionTime": _TIME,
                }
                for kind, value, reason in conditions
            ],
            "startTime": _TIME,
            **status,
        }
        await self._jobs.client.replace(MPIJOBS, stored, subresource="status")

    async def list_hosts(self, *workers: int) -> None:
        """List the running workers for the launcher."""
        change = {"data": {"discover_hosts.sh": self._script(workers)}}
        await self._jobs.client.patch(
            CONFIG_MAPS, f"{self._name}-config", change, self._jobs.namespace
        )

    async def _make_what_pods_need(self, workers: int) -> None:
        selector = {
            key: value for key, value in _labels(self._name, "").items() if "role" not in key
        }
        service = {"clusterIP": "None", "selector": selector}
        hosts = "".join(f"{self._host(index)} slots=1\n" for index in range(workers))
        data = {"hostfile": hosts, "discover_hosts.sh": self._script(())}
        keys = {"ssh-privatekey": "bm90IGEga2V5", "ssh-publickey": "bm90IGEga2V5"}
        await self._create(SERVICES, self._name, spec=service)
        await self._create(CONFIG_MAPS, f"{self._name}-config", data=data)
        await self._create(SECRETS, f"{self._name}-ssh", type="kubernetes.io/ssh-auth", data=keys)

    async def _make_worker(self, index: int) -> None:
        name = f"{self._name}-worker-{index}"
        labels = _labels(self._name, "worker") | {f"{_PREFIX}replica-index": str(index)}
        container = {"name": "mpi", "image": "example.com/mpi:1", "command": ["/usr/sbin/sshd"]}
        spec = {
            "containers": [container],
            "hostname": name,
            "subdomain": self._name,
            "restartPolicy": "Never",
        }
        await self._create(PODS, name, labels, spec=spec)

    async def _make_launcher(self, **launcher: Any) -> None:
        container = {"name": "mpi", "image": "example.com/mpi:1"}
        pod = {
            "metadata": {"labels": _labels(self._name, "launcher")},
            "spec": {
                "containers": [container],
                "hostname": f"{self._name}-launcher",
                "restartPolicy": "OnFailure",
            },
        }
        spec = {"podReplacementPolicy": "Failed", "template": pod, **launcher}
        await self._create(JOBS, f"{self._name}-launcher", spec=spec)

    async def _create(
        self, resource: Any, name: str, labels: dict[str, str] | None = None, **content: Any
    ) -> None:
        owner = {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "name": self._name,
            "uid": self._job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "name": name,
            "namespace": self._jobs.namespace,
            "labels": labels or {"app": self._name},
            "ownerReferences": [owner],
        }
        await self._jobs.client.create(resource, {"metadata": metadata, **content})

    def _script(self, workers: tuple[int, ...]) -> str:
        return "#!/bin/sh\n" + "".join(f"echo {self._host(index)}\n" for index in workers)

    def _host(self, index: int) -> str:
        return f"{self._name}-worker-{index}.{self._name}.{self._jobs.namespace}.svc"
