"""The overhead of the operator for a training job: none, because it does nothing while ranks run.

One MPIJob with real pods on two nodes; its launcher only sleeps. In the same pods a program trains
in turns: as the operator sets it up (hostfile, remote shell, variables), and with bare `mpirun`,
which gets the hosts on its command line and uses plain ssh.

    python -m benchmarks.training                 # needs root: it starts a cluster with nodes
    python -m benchmarks.training --rounds 3      # a quick run
    python -m benchmarks.training --program tensorflow-benchmarks    # with TensorFlow and Horovod

Exits with 1 if a goal is missed.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.goal import Goal, at_least
from benchmarks.progress import say
from devcluster import image_builds
from devcluster.cluster import Cluster

_ROOT = Path(__file__).parents[1]
_EXAMPLE = _ROOT / "examples/allreduce-benchmark/train.yaml"
_SPEED = re.compile(r"total images/sec: ([\d.]+)")
_GOAL = at_least(0.98)


@dataclass(frozen=True)
class _Program:
    """What is trained, for some seconds: shorter runs differ more than what is looked for."""

    image: str
    command: tuple[str, ...]
    keep_names: tuple[str, ...]  # as bare mpirun needs it to find hosts by their full names
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


_PROGRAMS = {
    "allreduce-benchmark": _Program(
        "mpioperator/allreduce-benchmark:openmpi",
        ("python3", "train.py", "--batch-size=64", "--num-batches=5000", "--display-every=1000"),
        ("--prtemca", "prte_keep_fqdn_hostnames", "true"),
    ),
    "tensorflow-benchmarks": _Program(
        "mpioperator/tensorflow-benchmarks:latest",
        (
            *("python", "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py", "--model=trivial"),
            *("--batch_size=64", "--num_batches=200", "--variable_update=horovod"),
        ),
        ("-mca", "orte_keep_fqdn_hostnames", "true"),
        f"/opt/venv/bin:{_Program.path}",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code says whether the goal is met."""
    options = _parser().parse_args(arguments)
    program = _PROGRAMS[options.program]
    archives = image_builds.provide(["mpi-operator", options.program])
    with Cluster(nodes=2) as cluster:
        say("training: a cluster with two nodes, and the operator in it")
        cluster.load(*archives.values())
        _start_job(cluster, program)
        pairs = [_pair(cluster, program, number) for number in range(options.rounds)]
    return _report(pairs)


def _start_job(cluster: Cluster, program: _Program) -> None:
    job = yaml.safe_load(_EXAMPLE.read_text())
    roles = job["spec"]["mpiReplicaSpecs"]
    for role in roles.values():
        image = {"image": program.image, "imagePullPolicy": "Never"}
        role["template"]["spec"]["containers"][0] |= image
    roles["Launcher"]["template"]["spec"]["containers"][0]["command"] = ["sleep", "infinity"]
    cluster.kubectl("apply", "-f", str(_ROOT / "deploy/v2beta1/mpi-operator.yaml"))
    cluster.kubectl("rollout", "status", "-n", "mpi-operator", "deployment/mpi-operator")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    cluster.kubectl("wait", "mpijob/train", "--for=condition=Running", "--timeout=120s")


def _pair(cluster: Cluster, program: _Program, number: int) -> tuple[float, float]:
    """Images per second with the operator and bare; the order changes from round to round."""
    usual = ["mpirun", "--bind-to", "none", *program.command]
    ways = {"operator": usual, "bare": _bare_command(program)}
    order = sorted(ways, reverse=number % 2 == 0)
    speeds = {way: _speed(cluster, ways[way]) for way in order}
    say(f"  round {number + 1}: " + ", ".join(f"{way} {speeds[way]:.0f}" for way in order))
    return speeds["operator"], speeds["bare"]


def _bare_command(program: _Program) -> list[str]:
    hosts = ",".join(f"train-worker-{index}.train.default.svc:1" for index in range(2))
    allowed = [f"OMPI_ALLOW_RUN_AS_ROOT{end}=1" for end in ("", "_CONFIRM")]
    return [
        *("env", "-i", f"PATH={program.path}", "HOME=/root", *allowed),
        *("mpirun", *program.keep_names, "-x", "PATH", "--host", hosts, "--bind-to", "none"),
        *program.command,
    ]


def _speed(cluster: Cluster, command: Sequence[str]) -> float:
    printed = cluster.kubectl("exec", "job/train-launcher", "--", *command)
    found = _SPEED.search(printed)
    if found is None:
        raise RuntimeError(f"{' '.join(command)} printed no speed:\n{printed}")
    return float(found[1])


def _report(pairs: Sequence[tuple[float, float]]) -> int:
    ours, bare = zip(*pairs, strict=True)
    print(f"with the operator: {_spread(ours)} images/sec, bare mpirun: {_spread(bare)}")
    # Both halves measure the same, so this is what chance alone makes of it.
    noise = statistics.median(bare[::2]) / statistics.median(bare[1::2])
    print(f"bare mpirun in odd rounds against even rounds: {noise:.2f}")
    ratio = statistics.median(ours) / statistics.median(bare)
    goal = Goal("images/sec against bare mpirun", ratio, _GOAL)
    print(goal)
    return 0 if goal.is_met else 1


def _spread(speeds: Sequence[float]) -> str:
    return f"{statistics.median(speeds):.0f} ({min(speeds):.0f} to {max(speeds):.0f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--program",
        choices=_PROGRAMS,
        default="allreduce-benchmark",
        help="What to train (default: allreduce-benchmark)",
    )
    parser.add_argument(
        "--rounds", type=int, default=21, help="Number of pairs, at least 2 (default: 21)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
