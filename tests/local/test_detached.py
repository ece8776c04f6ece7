"""Detached jobs, and the verbs that follow, enter and wait for them."""

import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from mpi_operator.local.sandbox import process_tree
from tests.local.environments import environment
from tests.local.shell import Shell, job
from tests.local.test_verbs import new_shell
from tests.support.waiting import block_until

SCRIPT = "echo one; until test -e go; do sleep 0.05; done; echo two; exit 3"
STARTED = re.compile(r"pi started in the background \(run (?P<run>(?P<pid>\d+)-\w+)\)\n")


@pytest.fixture
def shell(tmp_path):
    with new_shell(tmp_path / "state") as made:
        yield made


@pytest.fixture
def detached(shell, tmp_path):
    """The process of a detached job, which ends when the file `go` exists."""
    code, out, err = shell.run("run", job(tmp_path, ["sh", "-c", SCRIPT]), "--detach")
    assert code == 0, err
    found = STARTED.fullmatch(out)
    assert found, out
    yield int(found["pid"])
    (tmp_path / "go").touch()
    block_until(lambda: not Path(f"/proc/{found['pid']}").exists(), 60)


def read(terminal: int, text: str, seconds: float = 60) -> str:
    """What a terminal shows until it has shown a text."""
    deadline, shown = time.monotonic() + seconds, ""
    while text not in shown:
        assert time.monotonic() < deadline, shown
        shown += os.read(terminal, 4096).decode()
    return shown


def on_terminal(shell: Shell, *arguments: str) -> tuple[int, int]:
    """Run `mpijob` on a terminal of its own; its pid and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(shell.argv(*arguments)[0], shell.argv(*arguments), shell.environment)
    return pid, terminal


# --- detached


def test_a_detached_job_has_no_terminal_and_a_session_of_its_own(detached):
    fields = Path(f"/proc/{detached}/stat").read_text().rpartition(")")[2].split()
    session, terminal = int(fields[3]), int(fields[4])
    assert (session, terminal) == (detached, 0)


def test_a_detached_job_survives_its_terminal(shell, tmp_path):
    file = job(tmp_path, ["sh", "-c", SCRIPT])
    pid, terminal = on_terminal(shell, "run", file, "--detach")
    shown = read(terminal, "mpijob wait pi")
    os.close(terminal)  # as when its window is closed: SIGHUP for everything on it
    os.waitpid(pid, 0)
    found = re.search(r"run (\d+)-", shown)
    assert found
    os.kill(int(found[1]), signal.SIGHUP)
    assert json.loads(shell.run("get", "pi", "-o", "json")[1])["metadata"]["name"] == "pi"
    (tmp_path / "go").touch()
    assert shell.run("wait", "pi")[0] == 3


def test_a_detached_job_is_listed_followed_and_waited_for(shell, detached, tmp_path):
    assert re.search(r"^pi +\d+-\w+ +(Running|Created) ", shell.run("list")[1], re.M)
    following = shell.start("logs", "pi", "--follow")
    waiting = shell.start("wait", "pi")
    assert following.stdout.readline() == "one\n"
    (tmp_path / "go").touch()
    assert following.communicate(timeout=60) == ("two\n", "")
    out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, out.startswith("pi failed: ")) == (3, True)
    # It has a record when `wait` returns, which gives the same exit code as often as one asks.
    assert shell.run("logs", "pi") == (0, "one\ntwo\n", "")
    assert shell.run("wait", "pi")[0] == 3


def test_a_detached_job_that_cannot_start_is_an_error_of_the_command(tmp_path):
    shell = Shell(tmp_path / "state", environment("MPICH"))
    code, out, err = shell.run("run", job(tmp_path, ["true"]), "--detach")
    assert (code, out) == (2, "")
    assert err.startswith("mpijob: OpenMPI is not installed")


def test_a_detached_job_as_json(shell, tmp_path):
    code, out, err = shell.run("run", job(tmp_path, ["true"]), "--detach", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["type"] == "detached"
    assert shell.run("wait", "pi")[:2] == (0, "pi succeeded\n")


def test_a_deleted_detached_job_leaves_nothing(shell, detached):
    assert shell.run("delete", "pi")[0] == 0
    block_until(lambda: not Path(f"/proc/{detached}").exists(), 60)


# --- wait


def test_waiting_can_time_out(shell, detached):
    code, _, err = shell.run("wait", "pi", "--timeout", "300ms")
    assert code == 124
    assert re.fullmatch(r"mpijob: pi \(run .*\) did not end within 0.3s\n", err)


@pytest.mark.parametrize(
    ("ending", "code", "text"),
    [
        pytest.param(["delete", "pi"], 1, "pi was deleted\n", id="deleted"),
        pytest.param(signal.SIGTERM, 143, "pi was interrupted by SIGTERM\n", id="interrupted"),
        pytest.param(signal.SIGKILL, 1, "pi was lost: its `mpijob run` was killed\n", id="killed"),
    ],
)
def test_the_end_of_a_run_ends_the_wait(shell, detached, ending, code, text):
    waiting = shell.start("wait", "pi")
    block_until(lambda: has_connection(waiting))
    if isinstance(ending, list):
        assert shell.run(*ending)[0] == 0
    else:
        os.kill(detached, ending)
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (code, text), err


def has_connection(process: "subprocess.Popen[str]") -> bool:
    """Whether a process has connected to a run."""
    try:
        links = [os.readlink(each) for each in Path(f"/proc/{process.pid}/fd").iterdir()]
    except OSError:
        return False
    return sum(link.startswith("socket:") for link in links) > 2  # asyncio has a pair of its own


# --- exec


def test_a_command_runs_in_the_sandbox_and_its_exit_code_is_ours(shell, detached):
    code, out, err = shell.run("exec", "pi", "-w", "1", "--", "sh", "-c", "hostname; exit 5")
    assert (code, out, err) == (5, "pi-worker-1\n", "")
    code, out, _ = shell.run("exec", "pi", "--", "cat", "/etc/mpi/hostfile")
    assert (code, out.count("slots=1")) == (0, 2)


def test_words_of_a_command_stay_words(shell, detached):
    assert shell.run("exec", "pi", "--", "printf", "[%s]", "a b", "$HOME", "-n")[1] == (
        "[a b][$HOME][-n]"
    )


@pytest.mark.parametrize("worker", ["2", "-1"])
def test_an_unknown_worker_is_an_error(shell, detached, worker):
    code, out, err = shell.run("exec", "pi", "--worker", worker, "--", "true")
    assert code in (1, 2)
    assert out == ""
    assert worker in err


def test_a_command_gets_a_terminal_with_job_control(shell, detached):
    pid, terminal = on_terminal(shell, "exec", "pi", "-w", "0", "--", "sh")
    os.write(terminal, b"test -t 0 && test -t 1 && echo ter''minal\n")
    read(terminal, "terminal\r\n")
    os.write(terminal, b"sleep 600\n")
    block_until(lambda: "sleep 600" in commands(detached), 60)
    os.write(terminal, b"\x03")  # Ctrl-C ends the program, not the shell
    block_until(lambda: "sleep 600" not in commands(detached), 60)
    os.write(terminal, b"echo still''here; exit 7\n")
    read(terminal, "stillhere\r\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    os.close(terminal)


def commands(root: int) -> list[str]:
    """The command lines of all descendants of a process."""
    found = []
    for pid in process_tree.descendants(root):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found.append(b" ".join(words).decode(errors="replace").strip())
    return found


def test_a_killed_exec_ends_its_command(shell, detached):
    process = shell.start("exec", "pi", "--", "sh", "-c", "echo ready; exec sleep 612")
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=60)
    block_until(lambda: "sleep 612" not in commands(detached), 60)


# --- logs and lists


def test_logs_can_be_limited_and_have_times(shell, detached, tmp_path):
    (tmp_path / "go").touch()
    assert shell.run("wait", "pi")[0] == 3
    assert shell.run("logs", "pi", "--tail", "1") == (0, "two\n", "")
    assert shell.run("logs", "pi", "--since", "1h") == (0, "one\ntwo\n", "")
    _, out, _ = shell.run("logs", "pi", "--timestamps")
    times = re.findall(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (?:one|two)$", out, re.M)
    assert len(times) == 2
    assert times[0] <= times[1]


def test_logs_of_all_pods_have_names(shell, tmp_path):
    place = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command"
    worker = f'{place}=[sh, -c, "echo $HOSTNAME; exec sleep 600"]'
    script = "until test -e go; do sleep 0.05; done; echo end"
    code, _, err = shell.run("run", job(tmp_path, ["sh", "-c", script]), "-d", "--set", worker)
    assert code == 0, err
    following = shell.start("logs", "pi", "--all", "--follow")
    first = {following.stdout.readline() for _ in range(2)}
    assert first == {"worker-0 | pi-worker-0\n", "worker-1 | pi-worker-1\n"}
    (tmp_path / "go").touch()
    assert "launcher | end\n" in following.communicate(timeout=60)[0]
    shell.run("wait", "pi")
    assert shell.run("logs", "pi", "--all")[1] == (
        "launcher | end\nworker-0 | pi-worker-0\nworker-1 | pi-worker-1\n"
    )


def test_a_watched_list_shows_each_change(shell, detached, tmp_path):
    watching = shell.start("list", "--watch")
    assert watching.stdout.readline().split() == ["NAME", "RUN", "STATE", "WORKERS", "AGE"]
    assert watching.stdout.readline().startswith("pi ")
    (tmp_path / "go").touch()
    while " Failed " not in (line := watching.stdout.readline()):
        assert line.startswith("pi ")
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=60)
    assert watching.returncode == 130


# --- completion


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_shell_completes_the_names_of_jobs(shell, detached, kind):
    env = {
        "_MPIJOB_COMPLETE": f"{kind}_complete",
        "COMP_WORDS": "mpijob logs p",
        "COMP_CWORD": "p" if kind == "fish" else "2",  # what each shell says about the last word
    }
    out, err = shell.start(env=env).communicate(timeout=60)
    assert "pi" in re.split(r"[\s,]", out), err


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(shell, kind):
    process = shell.start(env={"_MPIJOB_COMPLETE": f"{kind}_source"})
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, "_MPIJOB_COMPLETE" in out) == (0, True)
