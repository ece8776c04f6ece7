"""MPIJobs as MLRun 1.12 writes and reads them, after its documented behaviour.

Its reader is part of MLRun's API server, which is not on PyPI; the package there has the client
only, with a hundred dependencies.
"""

from datetime import datetime

from mpi_operator.kube.resources import Manifest

CLASS = "mlrun/class"
UID = "mlrun/uid"


def job(name: str, command: list[str], image: str, workers: int = 2) -> Manifest:
    """The job of a function with `kind="mpijob"`."""
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {
            "slotsPerWorker": 1,
            "cleanPodPolicy": "All",
            "mpiReplicaSpecs": {
                "Launcher": {"template": _template(name, image, command)},
                "Worker": {"replicas": workers, "template": _template(name, image, [])},
            },
        },
    }


def pod_selector(name: str, *, launcher: bool = False) -> str:
    """How it finds the pods of a job."""
    return f"mpi-job-name={name}" + (",mpi-job-role=launcher" if launcher else "")


def log_selector(name: str) -> str:
    """How its log collector finds the pod of a run."""
    return f"{UID}={name},mpi-job-role=launcher"


def launcher_state(read: Manifest) -> str:
    """The state that it shows after a submission."""
    counts = read.get("status", {}).get("replicaStatuses", {}).get("Launcher") or {}
    return next((each for each in ("active", "failed", "succeeded") if counts.get(each) == 1), "")


def run_state(read: Manifest) -> tuple[str, datetime | None]:
    """The state of a run, and when it ended."""
    status = read.get("status", {})
    if status.get("completionTime") is None:
        return "running", None
    has_failed = status.get("replicaStatuses", {}).get("Launcher", {}).get("failed", 0) > 0
    ended = datetime.fromisoformat(status["completionTime"])
    return ("error" if has_failed else "completed"), ended


def _labels(name: str) -> dict[str, str]:
    return {CLASS: "mpijob", UID: name, "mlrun/project": "default", "mlrun/name": name}


def _template(name: str, image: str, command: list[str]) -> Manifest:
    container = {
        "name": "base",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": [{"name": "MLRUN_NAMESPACE", "value": "mlrun"}],
        "volumeMounts": [],
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "resources": {"limits": {}},
    }
    labels = {**_labels(name), "mlrun/job": name}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": []}}
