"""Horovod and TensorFlow for real: elastic and static training, and the first benchmark.

The programs are those of the examples, on images that have everything that people's images have.
"""

import json
import re
import shlex
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest
import yaml

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.containers import kill_container
from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each, spread
from tests.support import gpus
from tests.support.mpijobs import mpijob
from tests.support.waiting import block_until

EXAMPLES = Path(__file__).parents[3] / "examples"
ELASTIC = EXAMPLES / "horovod" / "tensorflow-mnist-elastic.yaml"
STATIC = EXAMPLES / "horovod" / "tensorflow-mnist.yaml"
BENCHMARK = EXAMPLES / "v1alpha2" / "tensorflow-benchmarks.yaml"
IMAGE = "mpioperator/horovod-examples:0.28.1"
# TensorFlow takes its time to start, and a kubelet up to 90 seconds to update the list of hosts.
PATIENCE = 240

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("horovod_images")]


@pytest.fixture(scope="session")
def horovod_images(cluster: Cluster) -> None:
    try:
        archives = image_builds.provide(["horovod-examples", "tensorflow-benchmarks"])
    except CannotBuild as error:
        pytest.skip(str(error))
    cluster.load(*archives.values())


# --- elastic


class Step(NamedTuple):
    """One line of progress."""

    number: int
    loss: float
    ranks: int


async def steps(lab: Lab, name: str) -> list[Step]:
    """What rank 0 committed, in the order in which it did."""
    lines = re.findall(r"progress: step=(\d+) .*loss=(\S+) .*ranks=(\d+)", await lab.log(name))
    return [Step(int(number), float(loss), int(ranks)) for number, loss, ranks in lines]


async def trains_with(lab: Lab, name: str, ranks: int) -> None:
    """Wait until the last ten steps were done by this many ranks."""

    async def is_true() -> bool:
        launchers = await lab.launchers(name)
        if not any(pod["status"].get("phase") == "Running" for pod in launchers):
            return False
        last = (await steps(lab, name))[-10:]
        return len(last) == 10 and {step.ranks for step in last} == {ranks}

    await lab.eventually(name, is_true, PATIENCE)


async def test_elastic_training_goes_on_while_workers_come_and_go(
    lab: Lab, cluster: Cluster
) -> None:
    """The whole job, with nothing but its requests lowered: 2, 3, one killed, and 1 worker."""
    name = "tensorflow-mnist-elastic"
    cluster.kubectl("create", "-n", lab.namespace, "-f", "-", stdin=_with_small_requests(ELASTIC))
    await trains_with(lab, name, 2)
    _patch_workers(cluster, lab, name, 3)
    await trains_with(lab, name, 3)
    kill_container(cluster, (await lab.pods(name, "worker"))[2])
    await trains_with(lab, name, 2)
    _patch_workers(cluster, lab, name, 1)
    await trains_with(lab, name, 1)

    done = await steps(lab, name)
    assert done[0].number == 1
    assert all(_follows(before, after) for before, after in pairwise(done)), done
    phases = [list(each) for _, each in groupby(done, key=lambda step: step.ranks)]
    assert [phase[0].ranks for phase in phases] == [2, 3, 2, 1]
    losses = [mean(step.loss for step in phase) for phase in phases]
    assert losses == sorted(losses, reverse=True), losses
    assert await lab.restarts(name) == 0


def _follows(before: Step, after: Step) -> bool:
    """Whether no step was lost. The last one is repeated if only the rank that died had it."""
    has_changed = after.ranks != before.ranks
    return after.number == before.number + 1 or (has_changed and after.number == before.number)


def _with_small_requests(path: Path) -> str:
    """The job of a file, for nodes with fewer CPUs than its limits."""
    job = yaml.safe_load(path.read_text())
    for role in job["spec"]["mpiReplicaSpecs"].values():
        for container in role["template"]["spec"]["containers"]:
            container["resources"]["requests"] = {"cpu": "50m", "memory": "64Mi"}
    return json.dumps(job)


def _patch_workers(cluster: Cluster, lab: Lab, name: str, workers: int) -> None:
    change = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}})
    cluster.kubectl("patch", "mpijob", name, "-n", lab.namespace, "--type=merge", "-p", change)


# --- static

MNIST = "python /examples/tensorflow_mnist.py"
KUBEFLOW = (
    "mpiexec -n 2 --hostfile /kubeflow/openmpi/assets/hostfile --allow-run-as-root --display-map"
    " --tag-output --timestamp-output sh -c"
)
STUBS = "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/cuda-9.0/targets/x86_64-linux/lib/stubs"
# The command lines of Kubeflow's package `openmpi`, and of Flyte's plugin for MPI and Horovod.
COMMANDS = {
    "mpiexec": f"{KUBEFLOW} '{MNIST}'",
    "mpiexec-stubs": f"{KUBEFLOW} '{STUBS} {MNIST}'",
    "flyte-mpi": "mpirun --allow-run-as-root -bind-to none -map-by slot -x LD_LIBRARY_PATH -x PATH"
    f" -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib -np 2 {MNIST}",
    "flyte-horovod": "horovodrun -np 2 --log-level INFO --network-interface eth0 --min-np 2"
    " --max-np 2 --slots-per-host 1 --host-discovery-script /etc/mpi/discover_hosts.sh"
    " --elastic-timeout 1200 python /examples/elastic/tensorflow2_mnist_elastic.py --steps=20",
}


async def test_static_training_runs_by_every_known_command_line(lab: Lab, cluster: Cluster) -> None:
    for name, command in COMMANDS.items():
        await lab.submit(_job(name, shlex.split(command)))
    cluster.kubectl("create", "-n", lab.namespace, "-f", str(STATIC))

    await lab.succeed_all([*COMMANDS, "tensorflow-mnist"], PATIENCE)

    for name in (*COMMANDS, "tensorflow-mnist"):
        log = await lab.log(name)
        # Elastic Horovod numbers hosts as it likes.
        assert sorted((await lab.ranks(name)).values()) == sorted(one_rank_each(name).values()), log
        end = "trained for 20 steps" if name == "flyte-horovod" else "have the same weights"
        assert end in log, log


def _job(name: str, command: list[str]) -> Manifest:
    container = {"name": "mpi", "image": IMAGE}
    launcher = {"containers": [container | {"command": command}]}
    worker = {"containers": [container], **spread(name)}
    return mpijob(
        name, launcher={"template": {"spec": launcher}}, worker={"template": {"spec": worker}}
    )


# --- the benchmark

HEADER = """\
TensorFlow:  2.13
Model:       {model}
Dataset:     imagenet (synthetic)
Mode:        training
SingleSess:  False
Batch size:  128 global
             64 per device
Num batches: 100
Num epochs:  0.01
Devices:     ['horovod/cpu:0', 'horovod/cpu:1']
NUMA bind:   False
Data format: NHWC
Optimizer:   sgd
Variables:   horovod
"""
LINE = r"^(\d+)\timages/sec: ([\d.]+) \+/- [\d.]+ \(jitter = [\d.]+\)\t([\d.]+)$"
TOTAL = r"^-{64}\ntotal images/sec: ([\d.]+)$"


@pytest.fixture
def claimed_gpus(cluster: Cluster, installation: Installation) -> None:
    gpus.claim(cluster)


@pytest.fixture
def present_images(cluster: Cluster, lab: Lab) -> Iterator[None]:
    """Nodes use the images that they have: for `:latest` they would ask a registry each time."""
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": _pull_policy(lab)})
    cluster.kubectl("create", "-f", "-", stdin=manifests)
    probe = ("run", "probe", "-n", lab.namespace, "--image=x:latest", "--dry-run=server")
    block_until(lambda: "IfNotPresent" in cluster.kubectl(*probe, "-o", "yaml"), 30)
    yield
    cluster.kubectl("delete", "-f", "-", stdin=manifests)


def _pull_policy(lab: Lab) -> list[Manifest]:
    """What an administrator of a cluster without a registry would create."""
    name, api = f"present-images-{lab.namespace}", "admissionregistration.k8s.io/v1"
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE"],
    }
    patch = (
        "[JSONPatch{op: 'add', path: '/spec/containers/0/imagePullPolicy', value: 'IfNotPresent'}]"
    )
    policy = {
        "matchConstraints": {"resourceRules": [pods]},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": lab.namespace}}
    binding = {"policyName": name, "matchResources": {"namespaceSelector": here}}
    return [
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": policy,
        },
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": binding,
        },
    ]


@pytest.mark.usefixtures("claimed_gpus", "present_images")
async def test_the_first_benchmark_runs_as_it_was_published(lab: Lab, cluster: Cluster) -> None:
    """The file as it is starts; with a small model it also ends within a test."""
    cluster.kubectl("create", "-n", lab.namespace, "-f", str(BENCHMARK))
    await lab.prints("tensorflow-benchmarks", HEADER.format(model="resnet101"), PATIENCE)
    [worker] = await lab.pods("tensorflow-benchmarks", "worker")
    assert worker["spec"]["containers"][0]["resources"]["limits"] == {gpus.GPU: "2"}
    cluster.kubectl("delete", "mpijob", "tensorflow-benchmarks", "-n", lab.namespace)

    text = BENCHMARK.read_text()
    small = text.replace("resnet101", "trivial").replace("name: tensorflow-b", "name: small-b", 1)
    cluster.kubectl("create", "-n", lab.namespace, "-f", "-", stdin=small)
    await lab.succeeds("small-benchmarks", PATIENCE)
    _check_report(await lab.log("small-benchmarks"))


def _check_report(log: str) -> None:
    assert HEADER.format(model="trivial") in log
    lines = re.findall(LINE, log, re.M)
    assert sorted(int(step) for step, _, _ in lines) == sorted(2 * [1, *range(10, 101, 10)]), log
    assert float(lines[-1][2]) < float(lines[0][2])
    total = re.findall(TOTAL, log, re.M)
    assert len(total) == 1, log
    # Each rank has rounded its own speed.
    assert float(total[0]) == pytest.approx(
        sum(float(speed) for _, speed, _ in lines[-2:]), rel=0.01
    )
