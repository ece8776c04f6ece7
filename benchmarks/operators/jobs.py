"""The jobs for the operators, with pods of a realistic size."""

from typing import Any

from mpi_operator.kube.resources import Manifest, Resource

MPIJOBS = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")

WORKER_SELECTOR = "training.kubeflow.org/job-role=worker"

# No node has this label, so a pod with it is created and never scheduled.
NOWHERE = {"benchmarks.example.com/no-such-node": "true"}


def job(name: str, namespace: str, workers: int, *, runs: bool = True) -> Manifest:
    """A job for fake nodes, or one whose pods cannot run."""
    return {
        "apiVersion": MPIJOBS.api_version,
        "kind": MPIJOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "slotsPerWorker": 1,
            "runPolicy": {"cleanPodPolicy": "Running"},  # as in most examples
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": _template("launcher", _MPIRUN, runs)},
                "Worker": {"replicas": workers, "template": _template("worker", {}, runs)},
            },
        },
    }


_MPIRUN = {"command": ["mpirun", "python", "/work/train.py", "--batch-size=64"]}


def _template(container: str, extra: dict[str, Any], runs: bool) -> Manifest:
    return {
        "metadata": {"labels": {"team": "research", "project": "vision"}},
        "spec": {
            "containers": [
                {
                    "name": container,
                    "image": "example.com/train:1",
                    "env": [
                        {"name": f"SETTING_{number}", "value": f"value {number}"}
                        for number in range(10)
                    ],
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                        "limits": {"memory": "128Mi"},
                    },
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    **extra,
                }
            ],
            "volumes": [{"name": "data", "emptyDir": {}}],
            # Nothing really runs, so there is nothing to wait for when a pod is deleted.
            "terminationGracePeriodSeconds": 0,
            **({} if runs else {"nodeSelector": NOWHERE}),
        },
    }
