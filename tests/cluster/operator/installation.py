"""The operator as people install it: with kubectl, from the files in `deploy/`."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster import binaries
from devcluster.cluster import Cluster

DEPLOY = Path(__file__).parents[3] / "deploy"
NAMESPACE = "mpi-operator"
DEPLOYMENT = "deployment/mpi-operator"


class Kubectl:
    """kubectl, as the admin of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._program = binaries.provide(["kubectl"])["kubectl"]
        self._kubeconfig = cluster.kubeconfig()

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """What it prints; AssertionError with its words if it fails."""
        command = [str(self._program), f"--kubeconfig={self._kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


class Installation:
    """The operator's Deployment."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def apply(self) -> None:
        """Install all in one file, and wait until it works."""
        self._kubectl("apply", "-f", str(DEPLOY / "mpi-operator.yaml"))
        self.wait()

    def wait(self) -> None:
        """Both replicas are of the newest kind, and ready."""
        self._kubectl("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=120s")

    @contextmanager
    def flags(self, *flags: str) -> Iterator[None]:
        """With more flags, given as people do: by a patch of the first container's `args`."""
        before = self._arguments()
        self._set_arguments([*before, *flags])
        try:
            yield
        finally:
            self._set_arguments(before)

    def leader(self) -> str:
        """The pod that leads."""
        lease = self._kubectl.json("get", "lease", "mpi-operator", "-n", NAMESPACE)
        return str(lease["spec"]["holderIdentity"].rpartition("_")[0])

    def pods(self) -> list[Any]:
        found = self._kubectl.json("get", "pods", "-n", NAMESPACE, "-l", "app=mpi-operator")
        return list(found["items"])

    def _arguments(self) -> list[str]:
        deployment = self._kubectl.json("get", DEPLOYMENT, "-n", NAMESPACE)
        return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])

    def _set_arguments(self, arguments: Sequence[str]) -> None:
        path = "/spec/template/spec/containers/0/args"
        patch = [{"op": "replace", "path": path, "value": list(arguments)}]
        self._kubectl("patch", DEPLOYMENT, "-n", NAMESPACE, "--type=json", "-p", json.dumps(patch))
        self.wait()
