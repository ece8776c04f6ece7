"""Horovod and TensorFlow for real: elastic and static training, and the first benchmark.

The programs are those of the examples, on images that have everything that people's images have.
"""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from functools import partial
from itertools import combinations, groupby, pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple, TypeAlias

import pytest
import yaml

from devcluster.cluster import Cluster
from mpi_operator.kube.resources import Manifest
from tests.cluster.images.test_contract import check
from tests.cluster.operator.containers import kill_container
from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import one_rank_each, spread
from tests.cluster.operator.test_faults import IMPATIENT, LOST, SAFE
from tests.support import gpus
from tests.support.mpijobs import mpijob
from tests.support.waiting import block_until

EXAMPLES = Path(__file__).parents[3] / "examples"
ELASTIC = EXAMPLES / "horovod" / "tensorflow-mnist-elastic.yaml"
STATIC = EXAMPLES / "horovod" / "tensorflow-mnist.yaml"
SIMPLE = EXAMPLES / "v1alpha1" / "mpi-job-simple.yaml"
BENCHMARK = EXAMPLES / "v1alpha2" / "tensorflow-benchmarks.yaml"
IMAGE = "mpioperator/horovod-examples:0.28.1"
BENCHMARK_IMAGE = "mpioperator/tensorflow-benchmarks:latest"
# TensorFlow takes its time to start on two cores. How soon a job follows a change of its size is
# measured by `make bench-elastic`.
PATIENCE = 240
LONG = 30  # steps

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize("image", ["horovod-examples", "tensorflow-benchmarks"])
def test_the_images_have_everything_that_a_job_may_need(image: str) -> None:
    check(image, "Open MPI 4.1")


# --- elastic


class Step(NamedTuple):
    """One line of progress."""

    number: int
    loss: float
    ranks: int


Change: TypeAlias = tuple[int, int]
"""The numbers of ranks before and after."""


async def steps(lab: Lab, name: str) -> list[Step]:
    """What rank 0 committed, in the order in which it did."""
    lines = re.findall(r"progress: step=(\d+) .*loss=(\S+) .*ranks=(\d+)", await lab.log(name))
    return [Step(int(number), float(loss), int(ranks)) for number, loss, ranks in lines]


async def trains_with(
    lab: Lab, name: str, ranks: int, seconds: float = PATIENCE, *, count: int = 10
) -> None:
    """Wait until the last ten steps, or so many, were done by this many ranks."""

    async def is_true() -> bool:
        launchers = await lab.launchers(name)
        if not any(pod["status"].get("phase") == "Running" for pod in launchers):
            return False
        last = (await steps(lab, name))[-count:]
        return len(last) == count and {step.ranks for step in last} == {ranks}

    await lab.eventually(name, is_true, seconds)


async def test_elastic_training_goes_on_while_workers_come_and_go(
    lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole job, with nothing but its requests lowered: 2, 3, one killed, 1 and 2 workers."""
    name = "tensorflow-mnist-elastic"
    _create(cluster, lab, _with_small_requests(ELASTIC))
    await trains_with(lab, name, 2, count=LONG)
    monkeypatch.setenv("KUBE_EDITOR", "sed -i 's/replicas: 2/replicas: 3/'")
    cluster.kubectl("edit", f"mpijobs.v1.kubeflow.org/{name}", "-n", lab.namespace)
    await trains_with(lab, name, 3)
    kill_container(cluster, (await lab.pods(name, "worker"))[2])
    await trains_with(lab, name, 2)
    await _is_reported_as_blacklisted(lab, name, f"{name}-worker-2")
    _patch_workers(cluster, lab, name, 1)
    await trains_with(lab, name, 1)
    # Unlike one that failed, a worker that left is used again.
    _patch_workers(cluster, lab, name, 2)
    await trains_with(lab, name, 2)

    assert await _trained_on(lab, name, losses={(3, 2)}) == [2, 3, 2, 1, 2]


async def test_elastic_training_survives_the_loss_of_a_pod_and_of_a_node(
    lab: Lab, cluster: Cluster
) -> None:
    """With the option by which Horovod uses workers again that came back."""
    job = _with_small_requests(ELASTIC)
    name = job["metadata"]["name"] = "survivor"
    _prepare_for_losses(job)
    _create(cluster, lab, job)
    await trains_with(lab, name, 3, count=LONG)

    cluster.kubectl("delete", "pod", f"{name}-worker-2", "-n", lab.namespace)
    await trains_with(lab, name, 2)
    await trains_with(lab, name, 3)

    nodes = [pod["spec"]["nodeName"] for pod in await lab.pods(name, "worker")]
    left = nodes.count(f"node-{SAFE}")
    assert left < 3
    await asyncio.to_thread(cluster.cut_node, LOST)
    # Horovod first tries to tell its rank 0 about the loss, which may be on that very node.
    await trains_with(lab, name, left, 2 * PATIENCE)
    await asyncio.to_thread(cluster.join_node, LOST)
    await trains_with(lab, name, 3)

    # It only shrinks by losses, and grows without any.
    sizes = await _trained_on(lab, name, losses={*combinations((3, 2, 1), 2)})
    assert sizes[:4] == [3, 2, 3, left], sizes
    assert sizes[-1] == 3, sizes
    assert not await lab.has_event(name, "HostBlacklisted")


def _prepare_for_losses(job: Manifest) -> None:
    """Three workers on both nodes; the launcher stays, and a lost node is given up after 1s."""
    roles = job["spec"]["mpiReplicaSpecs"]
    launcher, worker = (roles[role]["template"]["spec"] for role in ("Launcher", "Worker"))
    launcher["nodeName"] = f"node-{SAFE}"
    worker |= IMPATIENT | spread(job["metadata"]["name"], otherwise="ScheduleAnyway")
    roles["Worker"]["replicas"] = 3
    arguments = launcher["containers"][0]["args"]
    arguments[arguments.index("-np") + 1] = "3"
    arguments[:0] = ["--blacklist-cooldown-range", "10", "60"]
    arguments.append("--steps=100000")


async def _is_reported_as_blacklisted(lab: Lab, name: str, worker: str) -> None:
    """Wait until the worker is back, and an event says why Horovod does not use it."""
    await lab.eventually(name, partial(lab.has_event, name, "HostBlacklisted"), PATIENCE)
    [message] = await lab.event_messages(name, "HostBlacklisted")
    assert worker in message
    assert "--blacklist-cooldown-range" in message
    running = await lab.condition(name, "Running")
    assert running is not None
    assert message in running["message"]


async def _trained_on(lab: Lab, name: str, losses: set[Change]) -> list[int]:
    """The numbers of ranks, one after the other. No step is lost, and the loss falls.

    Only in the changes in `losses` was a rank killed.
    """
    done = await steps(lab, name)
    assert done[0].number == 1
    assert all(_follows(before, after, losses) for before, after in pairwise(done)), done
    phases = [list(each) for _, each in groupby(done, key=lambda step: step.ranks)]
    means = list(map(_mean_loss, phases))
    assert all(after < before for before, after in pairwise(means)), means
    assert _is_long(phases[0])
    for phase in filter(_is_long, phases):
        third = len(phase) // 3
        assert _mean_loss(phase[-third:]) < _mean_loss(phase[:third]), phase
    assert await lab.restarts(name) == 0
    return [phase[0].ranks for phase in phases]


def _follows(before: Step, after: Step, losses: set[Change]) -> bool:
    """Whether a step is the next one, or the same again: only the rank that died may have had it.

    Ranks that leave in time, and those that join, repeat nothing.
    """
    has_lost = (before.ranks, after.ranks) in losses
    return after.number == before.number + 1 or (has_lost and after.number == before.number)


def _is_long(phase: list[Step]) -> bool:
    """Whether the loss certainly falls by more than its noise, which takes longer and longer."""
    return len(phase) >= LONG and phase[-1].number >= 1.5 * phase[0].number


def _mean_loss(part: list[Step]) -> float:
    return mean(step.loss for step in part)


def _with_small_requests(path: Path) -> Manifest:
    """The job of a file, for nodes with fewer CPUs than its limits."""
    job: Manifest = yaml.safe_load(path.read_text())
    for role in job["spec"]["mpiReplicaSpecs"].values():
        for container in role["template"]["spec"]["containers"]:
            container["resources"]["requests"] = {"cpu": "50m", "memory": "64Mi"}
    return job


def _create(cluster: Cluster, lab: Lab, job: Manifest) -> None:
    cluster.kubectl("create", "-n", lab.namespace, "-f", "-", stdin=json.dumps(job))


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

    # Ten ranks at once, and each imports TensorFlow.
    await lab.succeed_all([*COMMANDS, "tensorflow-mnist"], 2 * PATIENCE)

    for name in (*COMMANDS, "tensorflow-mnist"):
        log = await lab.log(name)
        # Elastic Horovod numbers hosts as it likes.
        assert sorted((await lab.ranks(name)).values()) == sorted(one_rank_each(name).values()), log
        end = "trained for 20 steps" if name == "flyte-horovod" else "have the same weights"
        assert end in log, log


def _job(name: str, command: list[str], image: str = IMAGE) -> Manifest:
    container = {"name": "mpi", "image": image}
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
TAG = r"^\[\d+,(\d+)\]<std\w+>:"


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
    """The file as it is starts; with a small batch or model it also ends within a test."""
    cluster.kubectl("create", "-n", lab.namespace, "-f", str(BENCHMARK))
    await lab.prints("tensorflow-benchmarks", HEADER.format(model="resnet101"), PATIENCE)
    # Then both ranks have the model. Their first step alone would take minutes.
    await lab.prints("tensorflow-benchmarks", "\nRunning warm up", PATIENCE)
    [worker] = await lab.pods("tensorflow-benchmarks", "worker")
    assert worker["spec"]["containers"][0]["resources"]["limits"] == {gpus.GPU: "2"}
    cluster.kubectl("delete", "mpijob", "tensorflow-benchmarks", "-n", lab.namespace)

    few = ("--batch_size=2", "--num_batches=2", "--num_warmup_batches=0", "--display_every=1")
    _create(cluster, lab, _benchmark("few", *few))
    await lab.succeeds("few", 2 * PATIENCE)
    log = await lab.log("few")
    assert "Model:       resnet101" in log.splitlines(), log
    lines = re.findall(LINE, log, re.M)
    assert sorted(int(step) for step, _, _ in lines) == [1, 1, 2, 2], log
    _check_total(log, [float(speed) for step, speed, _ in lines if step == "2"])
    # Of both ranks together: that is what they minimize.
    first, last = (sum(float(loss) for step, _, loss in lines if step == n) for n in "12")
    assert last < first, log

    small = _benchmark("small", "--model=trivial")
    # The report does not say whose line is whose.
    _launcher_command(small).insert(1, "--tag-output")
    _create(cluster, lab, small)
    await lab.succeeds("small", PATIENCE)
    _check_report(await lab.log("small"))


def _benchmark(name: str, *flags: str) -> Manifest:
    """The job of the file with other flags: the last one counts."""
    job: Manifest = yaml.safe_load(BENCHMARK.read_text())
    job["metadata"]["name"] = name
    _launcher_command(job).extend(flags)
    return job


def _launcher_command(job: Manifest) -> list[str]:
    template = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    command: list[str] = template["spec"]["containers"][0]["command"]
    return command


@pytest.mark.usefixtures("claimed_gpus", "present_images")
async def test_the_image_runs_the_benchmark_if_a_job_gives_no_command(
    lab: Lab, cluster: Cluster
) -> None:
    """As in `ks generate mpi-job-simple NAME --gpus N`, which asks for GPUs and nothing else."""
    job: Manifest = yaml.safe_load(SIMPLE.read_text())
    [container] = job["spec"]["template"]["spec"]["containers"]
    container["image"] = "mpioperator/tensorflow-benchmarks:latest"
    del container["command"]
    _create(cluster, lab, job)
    await lab.prints("mpi-job-simple", HEADER.format(model="resnet101"), PATIENCE)
    assert len(await lab.pods("mpi-job-simple", "worker")) == 2


PROGRAM = "python scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
SHORT = f"{PROGRAM} --batch_size=2 --num_batches=4 --num_warmup_batches=1 --display_every=2"
# Each model that the program knows, as it would create it.
SIZES = """\
PYTHONPATH=scripts/tf_cnn_benchmarks python - <<'END'
from tf_cnn_benchmarks import CLASSES, MODELS
for name, (create, width) in MODELS.items():
    shape = (width, width, 3)
    model = create(input_shape=shape, weights=None, classes=CLASSES, classifier_activation=None)
    print(name, "has", model.count_params(), "parameters and", model.output_shape[1], "classes")
END
"""
# As Keras documents them.
PARAMETERS = {
    "trivial": 294_888,
    "resnet50": 25_636_712,
    "resnet101": 44_707_176,
    "resnet152": 60_419_944,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "inception3": 23_851_784,
    "mobilenet": 4_253_864,
}
FLAGS = f"""\
{SIZES}{SHORT} --model=trivial --device=cpu --data_format=NHWC --optimizer=momentum
{PROGRAM} --model=resnet50 --batch_size=1 --num_batches=1 --num_warmup_batches=0
{PROGRAM} --batchsize=2 || echo "ends with $?"
{PROGRAM} --data_format=NCHW --device=cpu || echo "ends with $?"
"""


@pytest.mark.usefixtures("present_images")
async def test_the_benchmark_takes_its_flags_and_names_those_that_it_does_not_know(
    lab: Lab,
) -> None:
    await lab.submit(_job("flags", ["sh", "-ec", FLAGS], BENCHMARK_IMAGE))
    await lab.succeeds("flags", PATIENCE)

    log = await lab.log("flags")
    sizes = re.findall(r"^(\w+) has (\d+) parameters and 1000 classes$", log, re.M)
    assert {name: int(size) for name, size in sizes} == PARAMETERS, log
    first, second = log.split("TensorFlow:  ")[1:]
    for line in ("Num batches: 4", "Data format: NHWC", "Optimizer:   momentum"):
        assert line in first.splitlines(), log
    assert [int(step) for step, _, _ in re.findall(LINE, first, re.M)] == [1, 2, 4], log
    assert "Model:       resnet50" in second.splitlines(), log
    assert [int(step) for step, _, _ in re.findall(LINE, second, re.M)] == [1], log
    assert "error: unrecognized arguments: --batchsize=2" in log
    assert "error: --data_format=NCHW: TensorFlow has this on GPUs only" in log
    assert log.count("ends with 2") == 2, log


def _check_report(tagged: str) -> None:
    """Check what two ranks printed, whose lines begin with the number of the rank."""
    log = re.sub(TAG, "", tagged, flags=re.M)
    assert HEADER.format(model="trivial") in log
    speeds = []
    for rank in "01":
        own = [line for line in tagged.splitlines() if re.findall(TAG, line) == [rank]]
        lines = re.findall(LINE, re.sub(TAG, "", "\n".join(own), flags=re.M), re.M)
        assert [int(step) for step, _, _ in lines] == [1, *range(10, 101, 10)], tagged
        assert float(lines[-1][2]) < float(lines[0][2]), tagged
        speeds.append(float(lines[-1][1]))
    _check_total(log, speeds)


def _check_total(log: str, speeds: list[float]) -> None:
    total = re.findall(TOTAL, log, re.M)
    assert len(total) == 1, log
    # Each rank has rounded its own speed, of a few images per second with a large model.
    assert float(total[0]) == pytest.approx(sum(speeds), rel=0.01, abs=0.11)
