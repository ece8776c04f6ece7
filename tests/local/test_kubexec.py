"""The scripts of jobs whose workers have no sshd, with the shells of common images."""

import signal
import subprocess

import pytest

from mpi_operator.build import scripts
from tests.local.scripts import SHELLS, missing
from tests.support.waiting import block_until

# Prints its arguments, one a line.
ECHO = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


@pytest.fixture(params=SHELLS)
def shell(request):
    if missing(request.param):
        pytest.skip(f"needs {request.param}")
    return SHELLS[request.param]


@pytest.fixture
def kubexec(shell, tmp_path):
    """Runs the script with what the test has at the path of the client."""
    text = scripts.text(scripts.KUBEXEC).replace("/opt/kube", str(tmp_path))
    text = text.replace("/dev/termination-log", str(tmp_path / "termination-log"))
    script = tmp_path / scripts.KUBEXEC
    script.write_text(text.replace("@CONTAINER@", "mpi"))

    def run(*arguments, path="/usr/bin:/bin"):
        return subprocess.run(
            [*shell, str(script), *arguments], capture_output=True, text=True, env={"PATH": path}
        )

    return run


def program(path):
    path.write_text(ECHO)
    path.chmod(0o755)


def test_it_calls_the_client_with_the_container(kubexec, tmp_path):
    program(tmp_path / "kubectl")
    (tmp_path / "namespace").touch()
    run = kubexec("-x", "pi-worker-0", "echo 'a  b'; exit 3")
    assert run.stdout.splitlines() == [
        *("remote-shell", "--container", "mpi", "--", "-x", "pi-worker-0", "echo 'a  b'; exit 3")
    ]


def test_on_one_machine_it_calls_the_agent(kubexec, tmp_path):
    program(tmp_path / "mpi-operator-agent")
    program(tmp_path / "kubectl")
    run = kubexec("pi-worker-0", "true", path=f"{tmp_path}:/usr/bin:/bin")
    assert run.stdout.splitlines() == ["pi-worker-0", "true"]


def test_where_nothing_was_delivered_it_says_so(kubexec):
    run = kubexec("pi-worker-0", "true")
    assert run.returncode == 255
    assert "only the main container of a launcher" in run.stderr


def test_where_kubectl_itself_was_delivered_it_says_so_once(kubexec, tmp_path):
    program(tmp_path / "kubectl")
    runs = [kubexec("pi-worker-0", "true"), kubexec("pi-worker-1", "true")]
    for run in runs:
        assert (run.returncode, run.stdout) == (255, "")
        assert "is not the exec client of the MPI operator" in run.stderr
    assert (tmp_path / "termination-log").read_text() == runs[0].stderr


def test_a_container_that_cannot_write_its_message_says_it_in_its_log(kubexec, tmp_path):
    program(tmp_path / "kubectl")
    (tmp_path / "termination-log").mkdir()
    run = kubexec("pi-worker-0", "true")
    assert run.returncode == 255
    assert "is not the exec client" in run.stderr


@pytest.fixture
def idle(shell, tmp_path):
    script = tmp_path / scripts.IDLE
    script.write_text(scripts.text(scripts.IDLE))
    return [*shell, str(script)]


def test_a_worker_ends_at_once_on_a_signal(idle, tmp_path):
    mark = tmp_path / "pid"
    command = ["sh", "-c", f"echo $$ > {mark}; exec sleep 365d"]
    process = subprocess.Popen([*idle, *command])
    block_until(lambda: mark.exists() and mark.read_text().strip() != "")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.parametrize("code", [0, 7])
def test_a_worker_ends_as_its_command_does(idle, code):
    assert subprocess.run([*idle, "sh", "-c", f"exit {code}"]).returncode == code
