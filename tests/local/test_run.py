"""`mpijob run` in a process of its own: whole jobs on this machine."""

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.local.environments import Environment, environment
from tests.local.run_processes import marked
from tests.local.shell import EXAMPLE, Shell, User, job
from tests.support.waiting import block_until

# Not imported by `mpijob run`. It imports the controller while the first processes start.
HEAVY = ("aiohttp", "cryptography", "prometheus_client", "rich", "mpi_operator.controller")
# Where the next attempt of a failed launcher runs.
NEW_POD = ("--set", "spec.mpiReplicaSpecs.Launcher.restartPolicy=Never")
SAME_POD = ("--set", "spec.mpiReplicaSpecs.Launcher.restartPolicy=OnFailure")


@pytest.fixture
def shell(tmp_path):
    """A shell with Open MPI; after a test no process of a job is left."""
    made = Shell(tmp_path / "state", environment("OpenMPI"))
    yield made
    block_until(lambda: marked(made.runs) == [])


def annotate(file, name, value):
    manifest = yaml.safe_load(Path(file).read_text())
    manifest["metadata"]["annotations"] = {f"mpi-operator.kubeflow.org/{name}": value}
    Path(file).write_text(yaml.safe_dump(manifest))


def test_the_example_runs_with_its_ranks_in_its_workers(tmp_path):
    shell = Shell(tmp_path / "state", environment("MPICH"))
    code, out, err = shell.run("run", str(EXAMPLE), "--set", "implementation=MPICH")
    assert code == 0, out + err
    assert "rank 0 of 2 on pi-worker-0" in out
    assert "rank 1 of 2 on pi-worker-1" in out
    assert "pi is about 3.1" in out
    assert err.splitlines()[-1].startswith("pi succeeded (")


def test_a_job_that_starts_ranks_by_exec_runs_without_a_client(shell, tmp_path):
    script = "cat /etc/mpi/hostfile; mpirun -n 2 hostname; /etc/mpi/kubexec.sh pi-worker-1 hostname"
    file = job(tmp_path, ["sh", "-c", script])
    annotate(file, "transport", "exec")
    code, out, err = shell.run("run", file)
    assert code == 0, out + err
    lines = out.splitlines()
    assert lines[:2] == ["pi-worker-0 slots=1", "pi-worker-1 slots=1"]
    assert sorted(lines[2:4]) == ["pi-worker-0", "pi-worker-1"]
    assert lines[4] == "pi-worker-1"


@pytest.mark.parametrize("policy", [NEW_POD, SAME_POD], ids=["new pod", "same pod"])
def test_a_job_that_fails_gives_its_exit_code_and_says_why(shell, tmp_path, policy):
    script = "echo ----; echo it broke; echo badly; exit 7"
    code, out, err = shell.run("run", job(tmp_path, ["sh", "-c", script]), *policy)
    assert code == 7
    assert out == "----\nit broke\nbadly\n"
    why = re.escape("exit code 7, after the line: badly")
    assert re.fullmatch(rf"pi failed: {why} \(\d+\.\ds\)", err.splitlines()[-1])
    # The last line has the cause; `describe` has the whole message.
    assert "\nit broke\nbadly\n" in shell.run("describe", "pi")[1]


def test_only_a_v1_job_may_run_more_ranks_than_it_has_slots(shell, tmp_path):
    rank = "echo rank $OMPI_COMM_WORLD_RANK"
    command = ["mpirun", "-n", "4", "sh", "-c", rank]
    file = job(tmp_path, command, runPolicy={"backoffLimit": 0})

    refused, out, err = shell.run("run", file)
    assert refused != 0
    assert "not enough slots" in out + err

    annotate(file, "written-in", "v1")
    code, out, err = shell.run("run", file)
    assert code == 0, out + err
    assert sorted(re.findall(r"rank (\d)", out)) == ["0", "1", "2", "3"]


def test_a_program_that_is_only_in_the_image_is_reported(shell, tmp_path):
    code, _, err = shell.run("run", job(tmp_path, ["/opt/only/in/the/image"]))
    assert code != 0
    assert "/opt/only/in/the/image" in err
    assert "this machine" in err


def test_variables_and_settings_reach_the_job(shell, tmp_path):
    file = job(tmp_path, ["sh", "-c", 'echo "$GREETING"; cat /etc/mpi/hostfile'])
    code, out, _ = shell.run("run", file, "--env", "GREETING=hello there", "--set", "workers=3")
    assert code == 0
    assert out.splitlines() == [
        "hello there",
        *(f"pi-worker-{index}.pi.default.svc slots=1" for index in range(3)),
    ]


def test_json_output_is_one_object_per_line(shell, tmp_path):
    code, out, err = shell.run("run", job(tmp_path, ["echo", "hi"]), "-o", "json")
    printed = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert err == ""
    assert {"type": "log", "role": "launcher", "line": "hi"}.items() <= next(
        each for each in printed if each["type"] == "log"
    ).items()
    assert printed[-1]["type"] == "verdict"
    assert printed[-1]["exitCode"] == 0


def test_quiet_prints_only_the_output_of_the_job(shell, tmp_path):
    assert shell.run("run", job(tmp_path, ["echo", "hi"]), "-q") == (0, "hi\n", "")


def test_a_job_times_out(shell, tmp_path):
    code, _, err = shell.run("run", job(tmp_path, ["sleep", "600"]), "--timeout", "1.5")
    assert code == 124
    assert "pi timed out after 1.5s" in err


@pytest.mark.parametrize("policy", [NEW_POD, SAME_POD], ids=["new pod", "same pod"])
def test_every_attempt_of_a_launcher_is_printed(shell, tmp_path, policy):
    script = "echo try >> tries; echo try $(wc -l < tries); test $(wc -l < tries) = 2"
    file = job(tmp_path, ["sh", "-c", script], runPolicy={"backoffLimit": 5})
    code, out, err = shell.run("run", file, *policy)
    assert (code, out.splitlines()) == (0, ["try 1", "try 2"]), err


def test_a_terminal_shows_pods_until_the_launcher_prints(shell, tmp_path):
    ours, theirs = pty.openpty()
    process = shell.start("run", job(tmp_path, ["echo", "hi"]), stderr=theirs)
    os.close(theirs)
    out, _ = process.communicate(timeout=60)
    drawn = everything(ours)
    assert (process.returncode, out) == (0, "hi\n"), drawn
    assert re.search(r"launcher  starting.*worker-0  running", drawn, re.DOTALL)
    last = drawn.rpartition("\x1b[J")[2]  # what stays on the screen
    assert re.search(r"pi succeeded \(", last)
    assert "worker-0" not in last


def everything(terminal: int) -> str:
    """The output on a terminal that the process has closed."""
    parts = []
    with suppress(OSError):
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


def test_the_files_of_a_job_are_kept_on_demand(shell, tmp_path):
    command = ["sh", "-c", "echo hi > $TMPDIR/file"]
    code, out, err = shell.run("run", job(tmp_path, command), "--keep", "-o", "json")
    assert code == 0, out + err
    kept = Path(json.loads(out.splitlines()[-1])["kept"])
    assert [file.read_text() for file in kept.glob("pods/*/pod/tmp/file")] == ["hi\n"]
    assert len(list(kept.glob("pods/*-worker-*"))) == 2
    assert str(kept) in shell.run("describe", "pi")[1]
    assert shell.run("delete", "pi")[0] == 0
    assert not kept.exists()


@pytest.mark.parametrize(("kind", "place"), [("namespaces", "/.pod/tmp"), ("plain", "/state/")])
def test_the_kind_of_sandbox_can_be_chosen(shell, tmp_path, kind, place):
    file = job(tmp_path, ["sh", "-c", "echo $TMPDIR"])
    code, out, err = shell.run("run", file, "--sandbox", kind)
    assert (code, place in out) == (0, True), out + err


@pytest.fixture
def confined(tmp_path):
    """A shell without the right to create namespaces."""
    # The last namespace that is allowed is the one of this shell.
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    become = ("unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh")
    return Shell(tmp_path / "state", environment("OpenMPI"), User(become=become))


def test_a_job_runs_without_namespaces_and_says_so_once(confined, tmp_path):
    code, out, err = confined.run("run", job(tmp_path, ["echo", "hi"]))
    assert (code, out) == (0, "hi\n"), err
    [notice] = [line for line in err.splitlines() if "namespaces" in line]
    assert notice.startswith("Pods run as plain processes, because ")


def test_json_output_says_too_that_there_are_no_namespaces(confined, tmp_path):
    _, out, _ = confined.run("run", job(tmp_path, ["true"]), "-o", "json")
    notices = [
        each["message"] for each in map(json.loads, out.splitlines()) if each["type"] == "notice"
    ]
    assert sum("namespaces" in message for message in notices) == 1


def test_an_unavailable_sandbox_is_an_error_with_the_alternative(confined, tmp_path):
    code, _, err = confined.run("run", job(tmp_path, ["true"]), "--sandbox", "namespaces")
    assert code == 2
    *_, why, alternative = err.splitlines()
    assert why.startswith("mpijob: namespaces ")
    assert alternative.startswith("mpijob run --sandbox plain ")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param({"slotsPerWorker": -1}, "spec.slotsPerWorker: Invalid value", id="slots"),
        pytest.param(
            {"mpiImplementation": "LAM"}, "spec.mpiImplementation: Unsupported value", id="MPI"
        ),
    ],
)
def test_an_invalid_job_is_reported_with_its_field(shell, tmp_path, change, error):
    code, out, err = shell.run("run", job(tmp_path, ["true"], **change))
    assert (code, out) == (2, "")
    assert error in err


def test_a_missing_mpi_is_reported_with_the_command_that_installs_it(tmp_path):
    shell = Shell(tmp_path / "state", Environment(tmp_path))
    shell.environment["PATH"] = "/nowhere"
    code, _, err = shell.run("run", str(EXAMPLE), "--set", "implementation=Intel")
    assert code == 2
    assert "pip install 'mpi-operator[intel]'" in err


def test_no_heavy_module_is_imported():
    program = (
        "import sys; import mpi_operator.cli.main, mpi_operator.cli.verbs.run, "
        "mpi_operator.cli.running.runner; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
