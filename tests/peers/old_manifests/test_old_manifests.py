"""Manifests of every old version, used with kubectl as their documentation said."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import PODS, Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each
from tests.support.gpus import GPU

EXAMPLES = Path(__file__).parents[3] / "examples"
VERSIONS = ("v1", "v1alpha2", "v1alpha1")
TRAINING = "v1alpha2/allreduce-benchmark.yaml"
ELASTIC = "v1/elastic-v1.yaml"
KSONNET = [f"v1alpha1/mpi-job-{kind}.yaml" for kind in ("simple", "custom")]
BENCHMARK = "v1alpha2/tensorflow-benchmarks.yaml"  # tests/peers/horovod runs it
FIRST_JOBS = [f"{version}/pi-{version}.yaml" for version in VERSIONS]
PATIENCE = 90
# A kubelet may take more than a minute to update the script that lists the hosts.
LONG_PATIENCE = 180
ROUNDS = 'name: ROUNDS, value: "1000"'

pytestmark = pytest.mark.usefixtures("gpus", "example_images")


class Kubectl:
    """kubectl in the namespace of a test."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def __call__(self, *arguments: str) -> str:
        return self._cluster.kubectl("--namespace", self._namespace, *arguments)

    def create(self, example: str) -> Manifest:
        """Create the job of a file; the job as it is written there."""
        path = EXAMPLES / example
        self("create", "-f", str(path))
        written: Manifest = yaml.safe_load(path.read_text())
        return written

    def create_all(self, examples: list[str]) -> dict[str, Manifest]:
        """The same for several, by name."""
        return {(job := self.create(each))["metadata"]["name"]: job for each in examples}

    def get(self, written: Manifest) -> Manifest:
        """The job in the version that it is written in."""
        version = written["apiVersion"].partition("/")[2]
        kind, name = f"mpijobs.{version}.kubeflow.org", written["metadata"]["name"]
        read: Manifest = yaml.safe_load(self("get", "-o", "yaml", kind, name))
        return read


@pytest.fixture
def kubectl(cluster: Cluster, lab: Lab) -> Kubectl:
    return Kubectl(cluster, lab.namespace)


async def test_a_training_in_v1alpha2_is_created_read_and_its_log_found_by_labels(
    lab: Lab, kubectl: Kubectl
) -> None:
    written = kubectl.create(TRAINING)
    await lab.succeeds("allreduce-benchmark", 120)

    read = kubectl.get(written)
    assert read["apiVersion"] == "kubeflow.org/v1alpha2"
    assert read["spec"] == written["spec"]
    status = read["status"]
    assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [
        ("Created", "True", "MPIJobCreated"),
        ("Running", "False", "MPIJobRunning"),
        ("Succeeded", "True", "MPIJobSucceeded"),
    ]
    assert status["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
    assert status["startTime"] < status["completionTime"]
    labels = "mpi_job_name=allreduce-benchmark,mpi_role_type=launcher"
    [launcher] = kubectl("get", "pods", "-l", labels, "-o", "name").split()
    log = kubectl("logs", "-f", launcher)
    worker = "allreduce-benchmark-worker-0"  # both ranks share it, one for each GPU
    assert f"['{worker}', '{worker}']" in log
    assert "total images/sec:" in log
    assert "all 2 ranks have the same weights" in log


@pytest.mark.timeout(400)
async def test_an_elastic_job_in_v1_grows_when_kubectl_patches_its_replicas(
    lab: Lab, kubectl: Kubectl, tmp_path: Path
) -> None:
    # With more rounds than there is time for: it must still run when the list has changed.
    text = (EXAMPLES / ELASTIC).read_text()
    (tmp_path / "long.yaml").write_text(text.replace('name: ROUNDS, value: "12"', ROUNDS))
    kubectl("create", "-f", str(tmp_path / "long.yaml"))
    await lab.prints("elastic-v1", "done by elastic-v1-worker-0", PATIENCE)
    three = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}}

    kubectl("patch", "mpijob", "elastic-v1", "--type", "merge", "-p", json.dumps(three))

    workers = ", ".join(f"elastic-v1-worker-{index}" for index in range(3))
    await lab.prints("elastic-v1", f"done by {workers}", LONG_PATIENCE)


async def test_jobs_of_ksonnet_packages_in_v1alpha1_run_on_workers_with_gpus(
    lab: Lab, kubectl: Kubectl
) -> None:
    jobs = kubectl.create_all(KSONNET)

    async def runs_on_gpus(name: str) -> None:
        await lab.runs(name)
        for index in (0, 1):
            pod = await lab.client.get(PODS, f"{name}-worker-{index}", lab.namespace)
            assert pod["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}

    await asyncio.gather(*map(runs_on_gpus, jobs))  # each runs for some seconds only
    await lab.succeed_all(jobs)

    for name, written in jobs.items():
        assert await lab.ranks(name) == one_rank_each(name)
        assert "pi is about 3.1" in await lab.log(name)
        read = kubectl.get(written)
        assert read["spec"] == written["spec"]
        assert read["status"]["launcherStatus"] == "Succeeded"


async def test_the_first_job_runs_in_every_old_version(lab: Lab, kubectl: Kubectl) -> None:
    jobs = kubectl.create_all(FIRST_JOBS)

    await lab.succeed_all(jobs)

    for name, written in jobs.items():
        assert await lab.ranks(name) == one_rank_each(name)
        assert kubectl.get(written)["spec"] == written["spec"]


def test_no_old_manifest_is_left_out() -> None:
    files = {f"{path.parent.name}/{path.name}" for path in EXAMPLES.glob("v1*/*.yaml")}
    assert files == {TRAINING, ELASTIC, BENCHMARK, *KSONNET, *FIRST_JOBS}
