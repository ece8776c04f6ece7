"""A job that runs while the operator is upgraded, rolled back, uninstalled and installed again.

Once with each way to install it, on a cluster of its own. The job and its pods must not notice.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from devcluster import image_builds
from devcluster.cluster import Cluster
from scripts.release import chart_package
from tests.cluster.conftest import started_cluster
from tests.cluster.operator.pi import OPEN_MPI
from tests.support.helm import CHART, helm
from tests.support.mpijobs import mpijob
from tests.support.waiting import block_until

pytestmark = pytest.mark.timeout(600)

DEPLOY = Path(__file__).parents[2] / "deploy"
FLAG = "--threadiness=5"
WAITING = "until [ -e /tmp/end ]; do sleep 0.2; done; echo done on $(hostname)"
PATCH = f"""
namespace: mpi-operator
resources: [deploy/overlays/standalone]
patches:
  - target: {{ kind: Deployment }}
    patch: |
      - {{ op: add, path: /spec/template/spec/containers/0/args/-, value: "{FLAG}" }}
"""


class Installer(Protocol):
    """One way to install the operator. Each step ends when the step is complete."""

    def install(self) -> None: ...

    def upgrade(self) -> None:
        """To an operator with another flag, which replaces its pods."""

    def roll_back(self) -> None: ...

    def uninstall(self) -> None:
        """All but jobs and what they need."""


class WithKubectl:
    """By the files in `deploy/`."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self._kubectl = cluster.kubectl
        self._home = home

    def install(self) -> None:
        self._kubectl("apply", "-f", str(DEPLOY / "v2beta1/mpi-operator.yaml"))
        self._wait()

    roll_back = install

    def upgrade(self) -> None:
        (self._home / "deploy").symlink_to(DEPLOY)
        (self._home / "kustomization.yaml").write_text(PATCH)
        self._kubectl("apply", "-k", str(self._home))
        self._wait()

    def uninstall(self) -> None:
        self._kubectl("apply", "-f", str(DEPLOY / "v2beta1-only"))
        self._kubectl("delete", "-f", str(DEPLOY), "--timeout=120s")

    def _wait(self) -> None:
        where = ("deployment/mpi-operator", "-n", "mpi-operator")
        self._kubectl("rollout", "status", *where, "--timeout=120s")


class WithHelm:
    """By the chart, as the package that is released."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self._kubeconfig = cluster.kubeconfig()
        self._home = home
        self._chart = str(chart_package.build(CHART, home, 0))

    def install(self) -> None:
        self._helm("install", self._chart, "--wait")

    def upgrade(self) -> None:
        self._helm("upgrade", self._chart, f"--set=extraArgs={{{FLAG}}}", "--wait")

    def roll_back(self) -> None:
        self._helm("rollback", "1", "--wait")

    def uninstall(self) -> None:
        self._helm("upgrade", self._chart, "--set=webhooks.enabled=false", "--wait")
        self._helm("uninstall", "--wait")

    def _helm(self, verb: str, *arguments: str) -> None:
        result = helm(self._home, verb, "mpi-operator", *arguments, kubeconfig=self._kubeconfig)
        assert result.code == 0, result.errors


class WithMpijob:
    """By our own command."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(cluster.kubeconfig()),
        }

    def install(self) -> None:
        self._mpijob("install")

    def upgrade(self) -> None:
        self._mpijob("upgrade", f"--flag={FLAG}")

    def roll_back(self) -> None:
        self._mpijob("upgrade")

    def uninstall(self) -> None:
        self._mpijob("uninstall")

    def _mpijob(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "mpi_operator", *arguments]
        subprocess.run(command, env=self._environment, check=True, timeout=200)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started_cluster(nodes=2) as own:
        own.load(*image_builds.provide(["mpi-operator", "pi-openmpi"]).values())
        yield own


@pytest.mark.parametrize("way", [WithKubectl, WithHelm, WithMpijob])
def test_a_running_job_does_not_notice_changes_of_the_operator(
    cluster: Cluster, way: type[Any], tmp_path: Path
) -> None:
    installer: Installer = way(cluster, tmp_path)
    name = f"job-{way.__name__.lower()}"
    installer.install()
    start(cluster, name)
    block_until(lambda: len(pods(cluster, name)) == 3, 60)
    before = pods(cluster, name)

    cluster.kubectl("scale", "mpijob.v2beta1.kubeflow.org", name, "--replicas=3")
    installer.upgrade()
    assert FLAG in flags(cluster)
    block_until(lambda: len(pods(cluster, name)) == 4, 60)
    installer.roll_back()
    assert FLAG not in flags(cluster)

    installer.uninstall()
    assert not cluster.kubectl("get", "deployments", "-n", "mpi-operator", "-o", "name")
    during = pods(cluster, name)
    assert before.items() <= during.items()

    installer.install()
    end(cluster, name)
    assert during.items() <= all_pods(cluster, name).items()
    assert pod_problems(cluster, name) == []
    cluster.kubectl("delete", "mpijob.v2beta1.kubeflow.org", name)
    installer.uninstall()
    # Helm takes over no CRD of another installer.
    cluster.kubectl("delete", "crd", "mpijobs.kubeflow.org")


def start(cluster: Cluster, name: str) -> None:
    """Run a job whose ranks wait."""
    job = mpijob(name)
    roles = job["spec"]["mpiReplicaSpecs"]
    for role in roles.values():
        role["template"]["spec"]["containers"][0]["image"] = OPEN_MPI.image
    command = ["mpirun", "--allow-run-as-root", "-n", "2", "sh", "-c", WAITING]
    roles["Launcher"]["template"]["spec"]["containers"][0]["command"] = command
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    wait(cluster, name, "Running")


def end(cluster: Cluster, name: str) -> None:
    """Let the ranks end, and wait for the job."""
    for index in range(3):
        cluster.kubectl("exec", f"{name}-worker-{index}", "--", "touch", "/tmp/end")
    wait(cluster, name, "Succeeded")


def wait(cluster: Cluster, name: str, condition: str) -> None:
    job = f"mpijob.v2beta1.kubeflow.org/{name}"
    cluster.kubectl("wait", job, f"--for=condition={condition}", "--timeout=120s")


def pods(cluster: Cluster, name: str) -> dict[str, str]:
    """The pods of a job that run and are ready, and their uids."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in _pods(cluster, name)
        if ("Ready", "True") in {(each["type"], each["status"]) for each in _conditions(pod)}
    }


def all_pods(cluster: Cluster, name: str) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in _pods(cluster, name)}


def pod_problems(cluster: Cluster, name: str) -> list[str]:
    """Pods that failed or were restarted."""
    return [
        pod["metadata"]["name"]
        for pod in _pods(cluster, name)
        if pod["status"]["phase"] == "Failed"
        or any(each["restartCount"] for each in pod["status"]["containerStatuses"])
    ]


def flags(cluster: Cluster) -> list[str]:
    text = cluster.kubectl("get", "deployment/mpi-operator", "-n", "mpi-operator", "-o", "json")
    [container] = json.loads(text)["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def _pods(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    selector = f"training.kubeflow.org/job-name={name}"
    return list(json.loads(cluster.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"])


def _conditions(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return list(pod["status"].get("conditions") or ())
