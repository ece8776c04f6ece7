"""Worker pods of a typical size: about 5 KB as stored."""

from typing import Any, TypeAlias

from benchmarks.measure import Task

Pod: TypeAlias = dict[str, Any]


def worker_pods(task: Task, job: str) -> tuple[list[Pod], list[Pod]]:
    """Pods for the warm-up and for the measurement, built before it starts."""
    everything = [
        worker_pod(task.namespace, job, index) for index in range(task.concurrency + task.count)
    ]
    return everything[: task.concurrency], everything[task.concurrency :]


def worker_pod(namespace: str, job: str, index: int) -> Pod:
    """A worker with a typical environment, volumes and labels."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-worker-{index}",
            "namespace": namespace,
            "labels": {
                "training.kubeflow.org/job-name": job,
                "training.kubeflow.org/job-role": "worker",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": str(index),
                "training.kubeflow.org/operator-name": "mpi-operator",
            },
            "ownerReferences": [
                {
                    "apiVersion": "kubeflow.org/v2beta1",
                    "kind": "MPIJob",
                    "name": job,
                    "uid": "4dd2ac55-3b10-4c4f-9d6a-0d7f0dd5a001",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "hostname": f"{job}-worker-{index}",
            "subdomain": job,
            "restartPolicy": "Never",
            "containers": [_container()],
            "volumes": [
                {"name": "ssh-auth", "secret": {"secretName": f"{job}-ssh", "defaultMode": 256}},
                {"name": "mpi-job-config", "configMap": {"name": f"{job}-config"}},
            ],
        },
    }


def running_status(index: int) -> dict[str, Any]:
    """The status of a running pod, as a kubelet reports it."""
    since = "2026-01-01T00:00:00Z"
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.{index // 65536 % 256}.{index // 256 % 256}.{index % 256}"
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": "192.168.0.1",
        "startTime": since,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds
        ],
        "containerStatuses": [
            {
                "name": "worker",
                "image": "example.com/train:1",
                "imageID": f"example.com/train@sha256:{'0' * 64}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": since}},
                "lastState": {},
            }
        ],
    }


def _container() -> dict[str, Any]:
    return {
        "name": "worker",
        "image": "example.com/train:1",
        "command": ["/usr/sbin/sshd", "-De"],
        "env": [{"name": f"SETTING_{number}", "value": f"value {number}"} for number in range(25)],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [
            {"name": "ssh-auth", "mountPath": "/root/.ssh"},
            {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
        ],
    }
