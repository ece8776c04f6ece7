"""The overhead of the operator for a training job: none, because it does nothing while ranks run.

One MPIJob with real pods on two nodes; its launcher only sleeps. In the same pods a program trains
twice at once: as the operator sets it up (hostfile, remote shell, variables), and with bare
`mpirun`, which gets the hosts on its command line and uses plain ssh. The two take turns of 0.1s:
one runs while the other is stopped. Runs one after the other differ by 15 %, because the machine
does other things as well; a turn is too short for that to matter.

Bare `mpirun` against itself shows what is left of chance.

    python -m benchmarks.training                 # needs root: it starts a cluster with nodes
    python -m benchmarks.training --rounds 2      # a quick run
    python -m benchmarks.training --program tensorflow-benchmarks    # with TensorFlow and Horovod

Exits with 1 if a goal is missed.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from benchmarks.goal import Goal, at_least
from benchmarks.progress import say
from devcluster import image_builds
from devcluster.cluster import Cluster

_ROOT = Path(__file__).parents[1]
_EXAMPLE = _ROOT / "examples/allreduce-benchmark/train.yaml"
_SPEED = re.compile(r"total images/sec: ([\d.]+)")
_GOAL = at_least(0.98)
# Runs a program in every second turn. All pods share the clock of this machine.
_TURNS = """\
import signal, subprocess, sys, time
own, command, seconds = int(sys.argv[1]), sys.argv[2:], 0.1
program = subprocess.Popen(command)
while program.poll() is None:
    turn = int(time.time() / seconds)
    program.send_signal(signal.SIGCONT if turn % 2 == own else signal.SIGSTOP)
    try:
        program.wait((turn + 1) * seconds - time.time())
    except subprocess.TimeoutExpired:
        pass
sys.exit(program.returncode)
"""

_Pair: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class _Program:
    """What is trained, for some seconds: many turns, so that one more or less does not matter."""

    image: str
    command: tuple[str, ...]
    keep_names: tuple[str, ...]  # as bare mpirun needs it to find hosts by their full names
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


_PROGRAMS = {
    "allreduce-benchmark": _Program(
        "mpioperator/allreduce-benchmark:openmpi",
        ("python3", "train.py", "--batch-size=64", "--num-batches=10000", "--display-every=1000"),
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
        chance = [_chance(cluster, program) for _ in range(options.rounds)]
    return _report(pairs, chance)


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


def _pair(cluster: Cluster, program: _Program, number: int) -> _Pair:
    """Images per second with the operator and bare; who has the first turn changes."""
    ways = [_usual_command(program, number % 2), _bare_command(program, 1 - number % 2)]
    operator, bare = _speeds(cluster, ways)
    say(f"  round {number + 1}: operator {operator:.0f}, bare {bare:.0f}")
    return operator, bare


def _chance(cluster: Cluster, program: _Program) -> _Pair:
    """Images per second of bare `mpirun` and bare `mpirun`."""
    first, second = _speeds(cluster, [_bare_command(program, turn) for turn in range(2)])
    say(f"  bare {first:.0f}, bare {second:.0f}")
    return first, second


def _usual_command(program: _Program, turn: int) -> list[str]:
    return ["mpirun", "--bind-to", "none", *_in_turns(program, turn)]


def _in_turns(program: _Program, turn: int) -> list[str]:
    return ["python3", "-c", _TURNS, str(turn), *program.command]


def _bare_command(program: _Program, turn: int) -> list[str]:
    hosts = ",".join(f"train-worker-{index}.train.default.svc:1" for index in range(2))
    allowed = [f"OMPI_ALLOW_RUN_AS_ROOT{end}=1" for end in ("", "_CONFIRM")]
    return [
        *("env", "-i", f"PATH={program.path}", "HOME=/root", *allowed),
        *("mpirun", *program.keep_names, "-x", "PATH", "--host", hosts, "--bind-to", "none"),
        *_in_turns(program, turn),
    ]


def _speeds(cluster: Cluster, commands: Sequence[Sequence[str]]) -> _Pair:
    """Images per second of two programs that run at once."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda command: _speed(cluster, command), commands)
    return first, second


def _speed(cluster: Cluster, command: Sequence[str]) -> float:
    printed = cluster.kubectl("exec", "job/train-launcher", "--", *command)
    found = _SPEED.search(printed)
    if found is None:
        raise RuntimeError(f"{' '.join(command)} printed no speed:\n{printed}")
    return float(found[1])


def _report(pairs: Sequence[_Pair], chance: Sequence[_Pair]) -> int:
    ours, bare = zip(*pairs, strict=True)
    print(f"with the operator: {_spread(ours)} images/sec, bare mpirun: {_spread(bare)}")
    print(f"bare mpirun against itself: {_ratio(chance):.3f}")
    goal = Goal("images/sec against bare mpirun", _ratio(pairs), _GOAL)
    print(goal)
    return 0 if goal.is_met else 1


def _ratio(pairs: Sequence[_Pair]) -> float:
    return statistics.median(first / second for first, second in pairs)


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
        "--rounds", type=int, default=7, help="Number of pairs of each kind (default: 7)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
