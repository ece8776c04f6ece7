"""The operator as people install it: with kubectl, from the files in `deploy/`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from tests.support.waiting import block_until

DEPLOY = Path(__file__).parents[3] / "deploy"
NAMESPACE = "mpi-operator"
DEPLOYMENT = "deployment/mpi-operator"


class Installation:
    """The operator's Deployment."""

    def __init__(self, cluster: Cluster) -> None:
        self._kubectl = cluster.kubectl

    def apply(self) -> None:
        """Install all in one file, and wait until it works."""
        self._kubectl("apply", "-f", str(DEPLOY / "mpi-operator.yaml"))
        self.wait()

    def wait(self) -> None:
        """Both replicas are of the newest kind and ready, and one of them leads.

        A rollout counts as done while the last one of before still ends, and may still lead.
        """
        self._kubectl("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=120s")
        block_until(lambda: self.leader() in self._lasting_pods(), 60)

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
        """The pod that leads; none before the first one, and between two."""
        leases = self._object("get", "leases", "-n", NAMESPACE)["items"]
        [holder] = [each["spec"].get("holderIdentity") or "" for each in leases] or [""]
        return str(holder.rpartition("_")[0])

    def _lasting_pods(self) -> list[str]:
        pods = self._object("get", "pods", "-n", NAMESPACE)["items"]
        metadata = [pod["metadata"] for pod in pods]
        return [each["name"] for each in metadata if "deletionTimestamp" not in each]

    def _arguments(self) -> list[str]:
        deployment = self._object("get", DEPLOYMENT, "-n", NAMESPACE)
        return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])

    def _set_arguments(self, arguments: Sequence[str]) -> None:
        path = "/spec/template/spec/containers/0/args"
        patch = [{"op": "replace", "path": path, "value": list(arguments)}]
        self._kubectl("patch", DEPLOYMENT, "-n", NAMESPACE, "--type=json", "-p", json.dumps(patch))
        self.wait()

    def _object(self, *arguments: str) -> Any:
        return json.loads(self._kubectl(*arguments, "-o", "json"))
