"""Records how jobs fail with each MPI, for the tests of `api.failure_cause`.

    python -m tests.local.record_failures MPI [CASE…]

Run it for a new version of an MPI, and look at what changed. The first line of a recording is the
exit code of the command; the rest is what it printed, with neutral paths.
"""

import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.local.environments import environment
from tests.local.shell import ROOT, Shell, job

RECORDINGS = ROOT / "tests" / "unit" / "api" / "failures"
_OPTIONS = ("--sandbox", "namespaces", "--set", "backoffLimit=0")
_MARK = "@@@ "
_RANK = "from mpi4py import MPI; import os, signal, sys; rank = MPI.COMM_WORLD.rank\n"
_ONE = _RANK + "if rank == 1:\n    {}\n"

# What every rank runs, as Python.
PROGRAMS = {
    "exception on one rank": _ONE.format("raise ValueError('boom')"),
    "missing module": "import numppy\n",
    "assertion": _ONE.format("assert 1 > 2"),
    "chained exception": _ONE.format(
        "try:\n        {}['a']\n    except KeyError:\n        raise RuntimeError('no a\\nat all')"
    ),
    "own exception": _ONE.format("class diverged(Exception): pass\n    raise diverged('at 3')"),
    "exception group": _ONE.format("raise ExceptionGroup('two', [ValueError(1), OSError(2)])"),
    "syntax error": "def broken(:\n",
    "wrong rank": _ONE.format("MPI.COMM_WORLD.send(1, dest=99)"),
    "segmentation fault": _ONE.format("os.kill(os.getpid(), signal.SIGSEGV)"),
    "kill": _ONE.format("os.kill(os.getpid(), signal.SIGKILL)"),
    "os.abort": _ONE.format("os.abort()"),
    "termination": _ONE.format("os.kill(os.getpid(), signal.SIGTERM)"),
    "MPI_Abort": _ONE.format("MPI.COMM_WORLD.Abort(3)"),
    "exit code": "import sys; print('epoch 5', flush=True); sys.exit(3)\n",
    "exit message": _ONE.format("sys.exit('the learning rate is missing')"),
}
# What the launcher runs.
COMMANDS = {
    **{name: f"mpirun -n 2 python {name.replace(' ', '-')}.py" for name in PROGRAMS},
    "exception and MPI_Abort": "mpirun -n 2 python -m mpi4py exception-on-one-rank.py",
    "missing executable": "mpirun -n 2 ./nothing",
    "no permission": "mpirun -n 2 ./assertion.py",
    "missing script": "mpirun -n 2 python nothing.py",
    "missing main module": "mpirun -n 2 python -m nothing",
    "too many ranks": "mpirun -n 4 python exit-code.py",
    "unknown option": "mpirun --nothing 2 hostname",
    "unknown host": "mpirun -host nothing -n 1 hostname",
    "directory": "mpirun -n 2 /tmp",
    "no program": "mpirun",
    "missing hostfile": "mpirun --hostfile /nothing hostname",
    "no mpirun": "echo starting; mpirum -n 2 hostname",
    "launcher in Python": "python missing-module.py",
    "launcher that prints": "echo it broke; echo badly; exit 7",
}


def record(implementation: str, cases: Iterable[str], place: Path) -> None:
    mpi = environment(implementation)
    shell = Shell(place / "state", mpi)
    for name, text in PROGRAMS.items():
        (place / f"{name.replace(' ', '-')}.py").write_text(text)
    # A time limit, because an MPI may wait for ranks that are gone.
    attempts = (
        f"timeout 20 sh -c '{COMMANDS[case]}'; printf '\\n{_MARK}{case}/%s\\n' $?" for case in cases
    )
    command = ["sh", "-c", "exec 2>&1\n" + "\n".join(attempts)]
    file = job(place, command, mpiImplementation=implementation)
    log, _ = shell.start("run", file, *_OPTIONS).communicate()
    for path, name in ((place, "/work"), (mpi.directory, "/venv"), (ROOT, "/mpi-operator")):
        log = log.replace(str(path), name)
    log = re.sub(r"(?<=\bPID )\d+|(?<=pid: )\d+", "42", log)
    for printed, case, code in re.findall(rf"(.*?)\n{_MARK}(.*?)/(\d+)\n", log, re.DOTALL):
        target = RECORDINGS / f"{case.replace(' ', '-')}.{implementation}.txt"
        target.write_text(f"{code}\n{printed}")


def main() -> None:
    implementation, *cases = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        record(implementation, cases or COMMANDS, Path(place))


if __name__ == "__main__":
    main()
