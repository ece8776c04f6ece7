"""`mpijob run`, as people type it: a whole job on this machine, in a process of its own."""

import json
import signal
import subprocess
import sys

import pytest

from tests.local.conftest import marked
from tests.local.environments import Environment, environment
from tests.local.shell import EXAMPLE, Shell, job
from tests.support.waiting import block_until

IMPLEMENTATIONS = ["OpenMPI", "MPICH", "Intel"]
LIGHT = ("aiohttp", "cryptography", "prometheus_client")


@pytest.fixture
def shell(tmp_path):
    """A shell of somebody who has Open MPI; nothing of a job is left when a test is over."""
    made = Shell(tmp_path / "state", environment("OpenMPI"))
    yield made
    block_until(lambda: marked(made.runs) == [], 5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_example_runs_with_its_ranks_in_its_workers(tmp_path, implementation):
    shell = Shell(tmp_path / "state", environment(implementation))
    code, out, err = shell.run("run", str(EXAMPLE), "--set", f"implementation={implementation}")
    assert code == 0, out + err
    assert "rank 0 of 2 on pi-worker-0" in out
    assert "rank 1 of 2 on pi-worker-1" in out
    assert "launcher | pi is about 3.1" in out
    assert err.splitlines()[-1].startswith("pi succeeded (")


def test_a_job_that_fails_gives_its_exit_code_and_says_why(shell, tmp_path):
    file = job(tmp_path, ["sh", "-c", "echo it broke; exit 7"])
    code, out, err = shell.run(
        "run", file, "--set", "spec.mpiReplicaSpecs.Launcher.restartPolicy=Never"
    )
    assert code == 7
    assert out == "launcher | it broke\n"
    assert err.splitlines()[-1].startswith("pi failed: Job has reached the specified backoff limit")


def test_a_program_that_is_only_in_the_image_is_told_so(shell, tmp_path):
    code, _, err = shell.run("run", job(tmp_path, ["/opt/only/in/the/image"]))
    assert code != 0
    assert "/opt/only/in/the/image" in err
    assert "this machine" in err


def test_variables_and_settings_reach_the_job(shell, tmp_path):
    file = job(tmp_path, ["sh", "-c", 'echo "$GREETING"; cat /etc/mpi/hostfile'])
    code, out, _ = shell.run("run", file, "--env", "GREETING=hello there", "--set", "workers=3")
    assert code == 0
    assert out.splitlines() == [
        "launcher | hello there",
        *(f"launcher | pi-worker-{index}.pi.default.svc slots=1" for index in range(3)),
    ]


def test_programs_get_one_object_a_line(shell, tmp_path):
    code, out, err = shell.run("run", job(tmp_path, ["echo", "hi"]), "-o", "json")
    told = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert err == ""
    assert {"type": "log", "role": "launcher", "line": "hi"}.items() <= next(
        each for each in told if each["type"] == "log"
    ).items()
    assert told[-1]["type"] == "verdict"
    assert told[-1]["exitCode"] == 0


def test_quiet_is_what_the_job_prints_and_nothing_else(shell, tmp_path):
    assert shell.run("run", job(tmp_path, ["echo", "hi"]), "-q") == (0, "launcher | hi\n", "")


def test_a_job_that_takes_too_long_is_given_up(shell, tmp_path):
    code, _, err = shell.run("run", job(tmp_path, ["sleep", "600"]), "--timeout", "1.5")
    assert code == 124
    assert "pi did not end within 1.5 s" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_job_leaves_nothing(shell, tmp_path, number):
    process = shell.start("run", job(tmp_path, ["sh", "-c", "echo ready; sleep 600"]))
    assert process.stdout.readline() == "launcher | ready\n"
    assert marked(shell.runs)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "pi was interrupted" in err
    assert marked(shell.runs) == []
    assert [entry.name for entry in shell.runs.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param({"slotsPerWorker": -1}, "spec.slotsPerWorker: must be at least 0", id="slots"),
        pytest.param(
            {"mpiImplementation": "LAM"}, "spec.mpiImplementation: must be one of", id="MPI"
        ),
    ],
)
def test_a_job_that_cannot_run_is_told_with_its_field(shell, tmp_path, change, complaint):
    code, out, err = shell.run("run", job(tmp_path, ["true"], **change))
    assert (code, out) == (2, "")
    assert complaint in err


def test_an_mpi_that_is_missing_is_named_with_what_installs_it(tmp_path):
    shell = Shell(tmp_path / "state", Environment(tmp_path))
    shell._environment["PATH"] = "/nowhere"
    code, _, err = shell.run("run", str(EXAMPLE), "--set", "implementation=Intel")
    assert code == 2
    assert "pip install 'mpi-operator[intel]'" in err


def test_nothing_heavy_is_loaded():
    program = (
        "import sys; import mpi_operator.cli.main, mpi_operator.cli.run, mpi_operator.cli.voice; "
        f"print([name for name in {LIGHT!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
