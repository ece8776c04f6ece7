"""The operator as people install it: with kubectl, from the files in `deploy/`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.containers import kill_container
from tests.support.waiting import block_until

DEPLOY = Path(__file__).parents[3] / "deploy"
NAMESPACE = "mpi-operator"
DEPLOYMENT = "deployment/mpi-operator"
_REPLICAS = 2
_WEBHOOK = "mpi-operator-webhook"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"


class Installation:
    """The operator's Deployment."""

    def __init__(self, cluster: Cluster) -> None:
        self._kubectl = cluster.kubectl
        self._cluster = cluster

    def apply(self) -> None:
        """Install all in one file, and wait until it works."""
        self._kubectl("apply", "-f", str(DEPLOY / "v2beta1/mpi-operator.yaml"))
        self.wait()

    def wait(self) -> None:
        """Both replicas are of the newest kind and ready, and one of them leads.

        A rollout counts as done while the last one of before still ends, and may still lead.
        """
        self._kubectl("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=120s")
        block_until(self.leads, 60)

    @contextmanager
    def flags(self, *flags: str) -> Iterator[None]:
        """With more flags, given as people do: by a patch of the first container's `args`."""
        before = self._arguments()
        self._set_arguments([*before, *flags])
        try:
            yield
        finally:
            self._set_arguments(before)

    def serves(self) -> bool:
        """Whether the webhook's Service leads to replicas that answer, and to nothing else.

        A pod whose process was killed counts as ready until its node notices.
        """
        slices = self._get(f"{_SLICES}?labelSelector=kubernetes.io/service-name={_WEBHOOK}")
        addresses = {
            address
            for each in slices["items"]
            for endpoint in each["endpoints"] or ()
            for address in endpoint["addresses"]
        }
        pods = self._get(_PODS)["items"]
        return (
            addresses == {pod["status"].get("podIP") for pod in pods}
            and len(addresses) == _REPLICAS
            and all(self._answers(pod["metadata"]["name"]) for pod in pods)
        )

    def leads(self) -> bool:
        """Whether one of the replicas leads. The Lease may name one of before."""
        return self.leader() in self._names()

    def leader(self) -> str:
        """The pod that leads; none before the first one, and between two."""
        leases = self._object("get", "leases", "-n", NAMESPACE)["items"]
        [holder] = [each["spec"].get("holderIdentity") or "" for each in leases] or [""]
        return str(holder.rpartition("_")[0])

    def standby(self) -> str:
        """The pod that leads when the one that does now is no more."""
        [other] = set(self._names()) - {self.leader()}
        return other

    def pods(self) -> list[Manifest]:
        """The replicas, without those that end."""
        pods = self._object("get", "pods", "-n", NAMESPACE)["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def kill(self, pod: str) -> None:
        """End the process of a pod, which has no time to release its lease."""
        [found] = [each for each in self.pods() if each["metadata"]["name"] == pod]
        kill_container(self._cluster, found)

    def run(self, pod: str, *command: str) -> str:
        """What a command prints in a pod."""
        return self._kubectl("exec", pod, "-n", NAMESPACE, "--", *command)

    def ask(self, pod: str, path: str) -> str:
        """What a pod answers at its first port, by way of the API server."""
        return self._kubectl(
            "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/proxy{path}"
        )

    def _answers(self, pod: str) -> bool:
        path = f"{_PODS}/https:{pod}:9443/proxy/healthz"
        try:
            return self._cluster.endpoint().request("GET", path).status == 200
        except TimeoutError:  # of a node that has only just come back
            return False

    def _get(self, path: str) -> Any:
        return self._cluster.endpoint().request("GET", path).json()

    def _names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods()]

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
