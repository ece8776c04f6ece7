"""Jobs that live through a change of operators, and the steps of that change as the docs tell them.

Everything is done with kubectl, as administrators do it.
"""

import json
import subprocess
import sys
from typing import Any

from devcluster import kubeflow
from devcluster.cluster import Cluster, CommandFailed
from devcluster.kubeflow import Peer
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.installation import DEPLOY, DEPLOYMENT, NAMESPACE, Installation
from tests.support.waiting import block_until

_CONFIGURATIONS = "mutatingwebhookconfiguration,validatingwebhookconfiguration"


class Switch:
    """The operators of a cluster: which of them works on MPIJobs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.ours = Installation(cluster)
        self.kubectl = cluster.kubectl

    def clear(self) -> None:
        """No operator and no definition, so no jobs either."""
        if self._is_defined():
            self.kubectl("delete", "mpijobs", "-A", "--all", "--wait=false")
        self.remove_ours()
        for peer in (kubeflow.TRAINING_OPERATOR, kubeflow.MPI_OPERATOR):
            kubeflow.remove(self.cluster, peer)
        self.kubectl("delete", "crd", kubeflow.CRD, "--ignore-not-found", "--timeout=60s")

    def install(self, peer: Peer) -> None:
        kubeflow.load(self.cluster, peer)
        kubeflow.install(self.cluster, peer)

    def apply_ours(self) -> None:
        """Install ours, and do not wait for it."""
        self.kubectl("apply", "-f", str(DEPLOY / "v2beta1/mpi-operator.yaml"))

    def scale_ours(self, replicas: int) -> None:
        self.kubectl("scale", DEPLOYMENT, "-n", NAMESPACE, f"--replicas={replicas}")
        if not replicas:
            block_until(lambda: not self.pods(NAMESPACE), 60)

    def remove_ours(self) -> None:
        """Delete what works and what is called; permissions and the namespace stay."""
        self.kubectl("delete", DEPLOYMENT, "-n", NAMESPACE, "--ignore-not-found")
        self.kubectl("delete", _CONFIGURATIONS, "mpi-operator", "--ignore-not-found")
        block_until(lambda: not self.pods(NAMESPACE), 60)

    def our_log(self) -> str:
        try:
            return self.kubectl("logs", DEPLOYMENT, "-n", NAMESPACE, "--tail=-1")
        except CommandFailed:  # there is no container yet
            return ""

    def migrate(self, *arguments: str) -> str:
        """Run `mpi-operator migrate-storage` as an administrator."""
        kubeconfig = f"--kubeconfig={self.cluster.kubeconfig()}"
        command = ["-m", "mpi_operator.operator", "migrate-storage", kubeconfig, *arguments]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stored_versions(self) -> list[str]:
        versions: list[str] = self.get("crd", kubeflow.CRD)["status"]["storedVersions"]
        return versions

    def replace_definition(self, peer: Peer) -> None:
        """Put the definition of another operator in the place of ours."""
        self.kubectl("replace", "-f", "-", stdin=json.dumps(kubeflow.definition(peer)))

    def pods(self, namespace: str) -> list[Manifest]:
        items: list[Manifest] = self.get("pods", namespace=namespace)["items"]
        return items

    def get(self, kind: str, name: str = "", namespace: str = "") -> Any:
        where = ["-n", namespace] if namespace else []
        return json.loads(self.kubectl("get", kind, *filter(None, [name]), *where, "-o", "json"))

    def _is_defined(self) -> bool:
        return bool(self.kubectl("get", "crd", kubeflow.CRD, "--ignore-not-found"))


class Jobs:
    """The jobs of one namespace, in one API version."""

    def __init__(self, switch: Switch, namespace: str, version: str) -> None:
        self.namespace = namespace
        self._switch = switch
        self._kind = f"mpijobs.{version}.kubeflow.org"

    def submit(self, job: Manifest) -> None:
        self._switch.kubectl("create", "-n", self.namespace, "-f", "-", stdin=json.dumps(job))

    def resume(self, name: str) -> None:
        self._change(name, {"runPolicy": {"suspend": False}})

    def scale(self, name: str, workers: int) -> None:
        self._change(name, {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}})

    def launcher_may(self, job: str, verb: str, what: str, subresource: str = "") -> bool:
        """Whether the account of a launcher has a permission."""
        account = f"--as=system:serviceaccount:{self.namespace}:{job}-launcher"
        asked = ["auth", "can-i", verb, what, f"--subresource={subresource}", account]
        try:
            return self._switch.kubectl(*asked, "-n", self.namespace).strip() == "yes"
        except CommandFailed:  # it says no with an exit code
            return False

    def job(self, name: str) -> Manifest:
        found: Manifest = self._switch.get(self._kind, name, self.namespace)
        return found

    def pods(self, name: str = "") -> dict[str, Manifest]:
        """The pods by name; of one job or of all."""
        found = self._switch.pods(self.namespace)
        label = "training.kubeflow.org/job-name"
        return {
            pod["metadata"]["name"]: pod
            for pod in found
            if name in ("", pod["metadata"]["labels"].get(label))
        }

    def identities(self) -> dict[str, tuple[str, int]]:
        """Each pod with its uid and how often its containers were restarted."""
        return {name: (pod["metadata"]["uid"], _restarts(pod)) for name, pod in self.pods().items()}

    def launcher_jobs(self) -> list[str]:
        found = self._switch.get("jobs", namespace=self.namespace)["items"]
        return sorted(each["metadata"]["name"] for each in found)

    def runs(self, *names: str) -> None:
        """Wait until the containers of these pods run."""
        block_until(lambda: all(self._phase(name) == "Running" for name in names), 120)

    def starts(self, job: str, pods: int) -> None:
        """Wait until so many pods of a job run."""

        def are_running() -> bool:
            phases = [pod["status"]["phase"] for pod in self.pods(job).values()]
            return phases == ["Running"] * pods

        block_until(are_running, 120)

    def launcher(self, job: str) -> str:
        """The newest pod of a launcher, bare or of a Job."""
        pods = [pod for name, pod in self.pods(job).items() if "-launcher" in name]
        newest = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return str(newest["metadata"]["name"])

    def release(self, job: str) -> None:
        """Let the launcher of a job begin its work."""
        touch = ["--", "touch", "/tmp/go"]
        self._switch.kubectl("exec", self.launcher(job), "-n", self.namespace, *touch)

    def delete_pod(self, name: str) -> None:
        self._switch.kubectl("delete", "pod", name, "-n", self.namespace, "--grace-period=0")
        block_until(lambda: name not in self.pods(), 60)

    def log(self, job: str) -> str:
        return self._switch.kubectl("logs", self.launcher(job), "-n", self.namespace)

    def condition(self, job: str, kind: str) -> Manifest:
        """A condition of a job, if it is true."""
        found: list[Manifest] = (self.job(job).get("status") or {}).get("conditions") or []
        true = (each for each in found if each["status"] == "True" and each["type"] == kind)
        return next(true, {})

    def ends(self, job: str, kind: str) -> Manifest:
        """Wait until a job has succeeded or failed, as expected; the condition."""
        ends = ("Succeeded", "Failed")
        block_until(lambda: any(self.condition(job, each) for each in ends), 120)
        found = self.condition(job, kind)
        assert found, self.job(job)["status"]
        return found

    def _change(self, name: str, spec: Manifest) -> None:
        change = ["--type=merge", "-p", json.dumps({"spec": spec})]
        self._switch.kubectl("patch", self._kind, name, "-n", self.namespace, *change)

    def _phase(self, pod: str) -> str:
        return str(self.pods().get(pod, {}).get("status", {}).get("phase", ""))


def waiting_job(
    name: str, version: str, *, workers: int = 1, then: str = "", **policy: Any
) -> Manifest:
    """A job whose launcher waits until it is released, and then starts ranks on its workers."""
    image = {"image": "mpioperator/mpi-pi:openmpi-4", "imagePullPolicy": "Never"}
    work = then or f"mpirun --allow-run-as-root -n {workers} /home/mpiuser/pi"
    script = f"until [ -e /tmp/go ]; do sleep 0.2; done; {work}"
    # Pods that are deleted in a test should not take half a minute for it.
    quick = {"terminationGracePeriodSeconds": 1}
    launcher = {"name": "mpi", **image, "command": ["sh", "-c", script]}
    roles = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher], **quick}}},
        "Worker": {
            "replicas": workers,
            "template": {"spec": {"containers": [{"name": "mpi", **image}], **quick}},
        },
    }
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {"slotsPerWorker": 1, "runPolicy": policy, "mpiReplicaSpecs": roles},
    }


def _restarts(pod: Manifest) -> int:
    statuses = pod["status"].get("containerStatuses") or []
    return sum(int(each["restartCount"]) for each in statuses)
