"""The exec client of launchers, with a server that runs commands on this machine."""

import os
import re
import signal
import subprocess
from typing import Any

import pytest

from devcluster import binaries
from devcluster.binaries import CannotBuild
from mpi_operator.build.scripts import EVENT, Event
from tests.local.scripts import SHELLS, missing
from tests.support.exec_server import ExecServer, Refusal
from tests.support.waiting import block_until

HOST = "pi-worker-1"
GONE = Refusal(404, 'pods "pi-worker-1" not found', "NotFound")
NO_CONTAINER = Refusal(500, 'container not found ("mpi")', "InternalError", in_session=True)


@pytest.fixture(scope="session")
def paths(tmp_path_factory):
    return tmp_path_factory.mktemp("exec-client")


@pytest.fixture(scope="session")
def program(paths):
    """The client, with paths of the test instead of those of a container."""
    tool = binaries.TOOLS["kubectl-delivery"]
    try:
        binaries.provide([tool.name])
    except CannotBuild as error:
        pytest.skip(str(error))
    names = {"terminationLog": "termination-log", "containerLog": "log", "hostsFile": "hosts"}
    flags = " ".join(f"-X main.{name}={paths / file}" for name, file in names.items())
    build = ["go", "build", "-buildvcs=false", "-ldflags", flags, "-o", str(paths / "kubectl"), "."]
    subprocess.run(
        build, cwd=tool.module_directory, check=True, env=os.environ | {"CGO_ENABLED": "0"}
    )
    return paths / "kubectl"


@pytest.fixture
def last_words(paths):
    """The termination message of the container."""
    path = paths / "termination-log"
    path.write_text("")
    (paths / "log").write_text("")
    (paths / "hosts").write_text("")
    return path


@pytest.fixture(params=["v5.channel.k8s.io"])
def server(request, tmp_path):
    made = ExecServer(tmp_path, request.param)
    yield made
    made.stop()


@pytest.fixture
def start(program, server, last_words):
    """Starts the client; whatever is left of it ends with the test."""
    started = []

    def start(*arguments, env=None):
        variables = os.environ | server.environment | (env or {})
        streams: Any = {"stdin": subprocess.PIPE, "stdout": -1, "stderr": -1, "text": True}
        process = subprocess.Popen([str(program), *arguments], env=variables, **streams)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def remote(start):
    """Starts a remote shell."""

    def remote(*words, env=None):
        return start("remote-shell", "--container", "mpi", "--", *words, env=env)

    return remote


def ended(process, given=""):
    out, err = process.communicate(given, timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("words", "host", "printed"),
    [
        pytest.param((HOST, "echo one two"), HOST, "one two\n", id="Open MPI"),
        pytest.param(("-x", HOST, "echo one"), HOST, "one\n", id="MPICH"),
        pytest.param(("-q", "-x", HOST, "echo", "one"), HOST, "one\n", id="Intel MPI"),
        pytest.param((HOST, "-p", "22", "echo one"), HOST, "one\n", id="horovodrun"),
        pytest.param(
            ("-o", "ConnectionAttempts=10", HOST, "echo one"), HOST, "one\n", id="options of ssh"
        ),
        pytest.param((f"me@{HOST}.pi.lab.svc", "echo one"), HOST, "one\n", id="a whole name"),
        pytest.param((HOST, "echo 'a  b'; echo \"$0\""), HOST, "a  b\n/bin/sh\n", id="quotes"),
    ],
)
def test_a_command_runs_in_the_worker(remote, server, words, host, printed):
    assert ended(remote(*words)) == (0, printed, "")
    [request] = server.requests
    assert (request.pod, request.container) == (host, "mpi")
    assert request.authorization == "Bearer a-token"


def test_short_commands_end_at_once(remote):
    """The heartbeat of a command may end before it has begun, and must not hold the session."""
    # A heartbeat naps for a twelfth of this: 200s, longer than `ended` waits.
    env = {"MPI_OPERATOR_NODE_TIMEOUT_SECONDS": "2400"}
    processes = [remote(HOST, "true", env=env) for _ in range(40)]
    assert [ended(process)[0] for process in processes] == [0] * 40


@pytest.mark.parametrize("shell", SHELLS)
def test_any_shell_will_do(remote, server, shell):
    if missing(shell):
        pytest.skip(f"needs {shell}")
    server.shell = SHELLS[shell]
    process = remote(
        HOST,
        "read -r line; sleep 1.5; echo got $line; echo oops >&2; exit 7",
        env={"MPI_OPERATOR_NODE_TIMEOUT_SECONDS": "12"},
    )
    assert ended(process, "hello\n") == (7, "got hello\n", "oops\n")


@pytest.mark.parametrize("server", ["v5.channel.k8s.io", "v4.channel.k8s.io"], indirect=True)
def test_input_outputs_and_the_exit_code_pass_through(remote):
    process = remote(HOST, "read -r line; echo got $line; echo oops >&2; exit 7")
    assert ended(process, "hello\n") == (7, "got hello\n", "oops\n")


def test_the_end_of_the_input_reaches_the_command(remote):
    assert ended(remote(HOST, "cat"), "one\ntwo\n") == (0, "one\ntwo\n", "")


def test_large_inputs_and_outputs_pass_unchanged(remote):
    text = "".join(f"{number} \001mpi-operator\001\n" for number in range(20_000))
    assert ended(remote(HOST, "tee /dev/stderr"), text) == (0, text, text)


def test_heartbeats_are_not_shown(remote):
    code, out, err = ended(
        remote(HOST, "sleep 2.5; echo done >&2", env={"MPI_OPERATOR_NODE_TIMEOUT_SECONDS": "12"})
    )
    assert (code, out, err) == (0, "", "done\n")


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(GONE, id="no pod yet"),
        pytest.param(Refusal(400, "pod pi-worker-1 does not have a host assigned"), id="no node"),
        pytest.param(Refusal(403, "forbidden", "Forbidden"), id="not permitted yet"),
        pytest.param(Refusal(500, "error dialing backend", "InternalError"), id="no kubelet"),
        pytest.param(NO_CONTAINER, id="no container yet"),
    ],
)
def test_it_waits_for_a_worker(remote, server, refusal):
    server.refuse = lambda request: refusal if len(server.requests) < 4 else None
    assert ended(remote(HOST, "echo here")) == (0, "here\n", "")


def test_it_says_whom_it_waits_for(remote, server):
    server.refuse = lambda request: GONE
    process = remote(HOST, "true")
    line = process.stderr.readline()
    # At its first try after 5s; a try may take long itself.
    waiting = re.escape(f"{EVENT}{Event.WAITING} worker={HOST}")
    said = re.match(rf"{waiting} seconds=(\d+) cause=pods ", line)
    assert said, line
    assert int(said[1]) >= 5


def test_intel_mpi_shows_nothing_so_it_says_it_in_the_log_too(remote, server, paths):
    server.refuse = lambda request: GONE
    process = remote(HOST, "hydra_bstrap_proxy --upstream-host here --port 1")
    assert process.stderr.readline() == (paths / "log").read_text()


def test_it_fails_when_the_time_is_over(remote, server, last_words):
    server.refuse = lambda request: GONE
    code, _, err = ended(remote(HOST, "true", env={"MPI_OPERATOR_INIT_TIMEOUT": "1"}))
    assert code == 79
    assert err == last_words.read_text()
    assert err.startswith(f"{EVENT}{Event.GAVE_UP} worker={HOST} seconds=")
    assert "not found" in err


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        pytest.param(Refusal(400, "container mpi is not valid"), "is not valid", id="no such"),
        pytest.param(
            Refusal(500, "/bin/sh: no such file or directory", in_session=True),
            "needs /bin/sh",
            id="no shell",
        ),
    ],
)
def test_it_does_not_wait_for_what_never_comes(remote, server, refusal, words):
    server.refuse = lambda request: refusal
    code, _, err = ended(remote(HOST, "true"))
    assert code == 255
    assert words in err
    assert len(server.requests) == 1


def test_a_link_that_is_cut_is_reported_and_the_command_not_tried_again(remote, server, last_words):
    process = remote(HOST, "echo begun; sleep 60")
    assert process.stdout.readline() == "begun\n"
    server.cut()
    code, _, err = ended(process)
    assert code == 255
    assert "the connection was closed" in err
    assert last_words.read_text().startswith(f"{EVENT}{Event.LOST} worker={HOST} seconds=")
    assert len(server.requests) == 1


def test_a_link_that_is_silent_is_lost(remote, server, last_words):
    process = remote(HOST, "echo begun; sleep 60", env={"MPI_OPERATOR_NODE_TIMEOUT_SECONDS": "10"})
    assert process.stdout.readline() == "begun\n"
    server.silent.set()
    assert ended(process)[0] == 255
    assert "cause=Timeout, worker pi-worker-1 not responding" in last_words.read_text()


def test_a_worker_that_is_killed_is_lost(remote, last_words):
    assert ended(remote(HOST, "exit 137"))[0] == 137
    assert f"{EVENT}{Event.LOST} worker={HOST} " in last_words.read_text()


def test_a_launcher_that_continues_reports_it(remote, last_words):
    lost = f"{EVENT}{Event.LOST} worker=pi-worker-0 seconds=1 cause=x\n"
    last_words.write_text(lost)
    assert ended(remote(HOST, "true"))[0] == 0
    assert last_words.read_text() == f"{lost}{EVENT}{Event.CONTINUED} worker={HOST}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it(remote, last_words, number):
    process = remote(HOST, "echo begun; sleep 60")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    assert ended(process)[0] == 128 + signal.SIGTERM
    assert last_words.read_text() == ""


def test_a_signal_ends_the_waiting(remote, server):
    server.refuse = lambda request: GONE
    process = remote(HOST, "true")
    block_until(lambda: len(server.requests) > 2)
    process.terminate()
    assert ended(process)[0] == 128 + signal.SIGTERM


def test_when_mpirun_kills_it_it_stops_trying(remote, server):
    server.refuse = lambda request: GONE
    process = remote(HOST, "true")
    block_until(lambda: len(server.requests) > 2)
    process.kill()
    # It notices at its next try, and the output closes when no process has it any more.
    assert ended(process)[0] == -signal.SIGKILL


def test_this_very_host_needs_no_server(remote, server):
    assert ended(remote(os.uname().nodename, "echo here")) == (0, "here\n", "")
    assert server.requests == []


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("proxy --control-port {here}:99 -x", "proxy --control-port 10.9.8.7:99 -x"),
        ("proxy --upstream-host {here} -x", "proxy --upstream-host 10.9.8.7 -x"),
        ("proxy --other {here}", "proxy --other {here}"),
    ],
)
def test_hydra_is_called_back_by_address(remote, server, paths, given, sent):
    here = os.uname().nodename
    (paths / "hosts").write_text(f"127.0.0.1 {here}\nfe80::1 {here}\n10.9.8.7 {here} # me\n")
    ended(remote(HOST, f"echo {given.format(here=here)}"))
    assert server.requests[0].command[-1] == f"echo {sent.format(here=here)}"


def test_exec_is_as_kubectl_has_it(start, server):
    process = start("exec", "pod/pi-worker-0", "-c", "mpi", "-i", "--", "cat", "-")
    assert ended(process, "hello") == (0, "hello", "")
    [request] = server.requests
    assert (request.pod, request.container, request.command) == ("pi-worker-0", "mpi", ("cat", "-"))
    process = start("exec", "pi-worker-0", "--", "sh", "-c", "exit 3")
    assert ended(process) == (3, "", "command terminated with exit code 3\n")


def test_exec_says_what_the_server_says(start, server):
    server.refuse = lambda request: Refusal(403, "you may not", "Forbidden")
    assert ended(start("exec", "other", "--", "id")) == (1, "", "error: you may not\n")


def test_without_a_token_it_says_so(remote):
    code, _, err = ended(remote(HOST, "true", env={"MPI_OPERATOR_SERVICE_ACCOUNT": "/nowhere"}))
    assert code == 255
    assert "no token of its service account" in err


def test_as_an_init_container_it_copies_itself(start, tmp_path, server):
    target = tmp_path / "kube"
    target.mkdir()
    process = start(env={"TARGET_DIR": str(target), "NAMESPACE": "lab"})
    assert ended(process) == (0, f"kubectl is at {target}/kubectl\n", "")
    assert sorted(each.name for each in target.iterdir()) == ["kubectl", "namespace"]
    copied = subprocess.run([target / "kubectl", "version"], capture_output=True, text=True)
    assert copied.stdout.startswith("v1.")
    (tmp_path / "account" / "namespace").unlink()
    copied = subprocess.run(
        [target / "kubectl", "exec", "pi-worker-0", "--", "echo", "one"],
        capture_output=True,
        env=os.environ | server.environment,
        text=True,
    )
    assert copied.stdout == "one\n"


def test_beside_the_copy_is_always_the_file_by_which_it_is_recognised(start, tmp_path):
    assert ended(start(env={"TARGET_DIR": str(tmp_path), "NAMESPACE": ""}))[0] == 0
    assert (tmp_path / "namespace").read_text() == ""
