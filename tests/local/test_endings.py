"""`mpijob` that is interrupted, or whose output goes nowhere, ends in order and leaves nothing."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.local.environments import environment
from tests.local.run_processes import marked
from tests.local.shell import ROOT, Shell, job
from tests.support.waiting import block_until

# Sends a signal to itself at a moment, which is an audit event whose arguments contain a text.
AT_MOMENT = """
import os, sys
def hook(event, arguments):
    if event == {event!r} and {text!r} in repr(arguments) and not sent:
        sent.append(True)
        os.kill(os.getpid(), {number})
sent = []
sys.addaudithook(hook)
"""
WAITS = ["sh", "-c", "echo ready; sleep 600"]
PRINTS = ["sh", "-c", "while :; do echo line; done"]
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def shell(tmp_path):
    """A shell with Open MPI; after a test no process or directory of a job is left."""
    made = Shell(tmp_path / "state", environment("OpenMPI"))
    yield made
    block_until(lambda: marked(made.runs) == [])
    assert not made.runs.exists() or [entry.name for entry in made.runs.iterdir()] == [".lock"]


def ended(process, seconds: float = 30) -> tuple[int, str]:
    """Exit code and stderr."""
    _, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err
    assert "Exception" not in err
    return process.returncode, err


@pytest.mark.parametrize("number", NUMBERS, ids=lambda each: each.name)
def test_an_interrupted_job_leaves_nothing(shell, tmp_path, number):
    process = shell.start("run", job(tmp_path, WAITS))
    assert "ready" in process.stdout.readline()
    assert marked(shell.runs)
    process.send_signal(number)
    code, err = ended(process)
    assert code == 128 + number
    assert "pi was interrupted" in err
    assert marked(shell.runs) == []


@pytest.mark.parametrize(
    ("event", "text"),
    [
        pytest.param("import", "'click'", id="before anything is loaded"),
        pytest.param("open", "/cli/verbs/__pycache__/run.", id="while a verb is loaded"),
        pytest.param("open", "job.yaml", id="while the file is read"),
        pytest.param("import", "'mpi_operator.embedded'", id="while the cluster is loaded"),
        pytest.param("os.mkdir", "/local/", id="while the run directory is created"),
        pytest.param("subprocess.Popen", "fork_server", id="while the fork server starts"),
        pytest.param("import", "'mpi_operator.controller.controller'", id="while the node starts"),
        pytest.param("os.mkdir", "launcher", id="while the launcher starts"),
        pytest.param("shutil.rmtree", "/local/", id="while the run directory is removed"),
    ],
)
def test_a_signal_at_any_moment_gives_its_exit_code_and_no_traceback(shell, tmp_path, event, text):
    before = AT_MOMENT.format(event=event, text=text, number=int(signal.SIGINT))
    process = shell.start("run", job(tmp_path, ["true"]), before=before)
    assert ended(process)[0] == 128 + signal.SIGINT


@pytest.mark.parametrize("number", NUMBERS, ids=lambda each: each.name)
def test_every_signal_has_its_exit_code_while_a_verb_is_loaded(shell, number):
    text = "/cli/verbs/__pycache__/get."
    before = AT_MOMENT.format(event="open", text=text, number=int(number))
    assert ended(shell.start("list", before=before))[0] == 128 + number


def test_nohup_keeps_a_job_running_after_its_terminal(shell, tmp_path):
    process = shell.start(
        "run",
        job(tmp_path, ["sh", "-c", "echo ready; until test -e go; do sleep 0.1; done; echo done"]),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert "ready" in process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, "done" in out) == (0, True)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_reader_that_goes_away_ends_the_job(shell, tmp_path, output):
    process = shell.start("run", job(tmp_path, PRINTS), "-o", output)
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert ended(process)[0] == 128 + signal.SIGPIPE


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_full_disk_ends_the_job_with_an_error(shell, tmp_path, output):
    with Path("/dev/full").open("w") as full:
        process = shell.start("run", job(tmp_path, WAITS), "-o", output, stdout=full)
    code, err = ended(process)
    assert code == 1
    assert "pi was stopped: cannot write its output: No space left on device" in err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_job_runs_with_closed_streams(shell, tmp_path, closed):
    file = job(tmp_path, ["sh", "-c", "mpirun -n 2 echo hi > out"])
    program = "from mpi_operator.cli import main; main()"
    script = f'exec "$0" -c "$1" run "$2" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, program, file],
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert (tmp_path / "out").read_text().replace("\0", "") == "hi\nhi\n"


def test_a_terminal_that_is_closed_ends_the_job(shell, tmp_path):
    ours, theirs = pty.openpty()
    process = shell.start(
        "run",
        job(tmp_path, WAITS),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(theirs), os.O_RDWR)),  # controls it
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError):
        while b"ready" not in seen:
            seen += os.read(ours, 4096)
    os.close(ours)
    assert process.wait(30) == 128 + signal.SIGHUP, seen


def test_other_verbs_report_a_full_disk(shell):
    with Path("/dev/full").open("w") as full:
        process = shell.start("list", "-o", "json", stdout=full)
    code, err = ended(process)
    assert (code, err) == (1, "mpijob: No space left on device\n")


def test_a_home_that_cannot_be_written_is_replaced_by_a_temporary_directory(shell, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    env = {"XDG_STATE_HOME": str(tmp_path / "file" / "state"), "TMPDIR": str(tmp_path / "tmp")}
    process = shell.start("run", job(tmp_path, ["echo", "hi"]), env=env)
    out, err = process.communicate(timeout=60)
    place = tmp_path / "tmp" / f"mpi-operator-{os.getuid()}"
    assert (process.returncode, "hi" in out) == (0, True), err
    assert f"The state of this run is in {place}" in err
    assert "Not a directory" in err
    listed = shell.start("list", env=env).communicate(timeout=30)[0]
    assert "pi " in listed


def test_the_module_is_the_command(shell):
    done = subprocess.run(
        [sys.executable, "-m", "mpi_operator", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "mpijob 0.1.0.dev0\n"
