"""The remote shell of mpirun, with a real ssh and a real sshd."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from mpi_operator.build.scripts import EVENT, REMOTE_SHELL, WORKER, Event
from tests.local.scripts import SHELLS, Scripts, missing
from tests.support.sshd import SSHD, Sshd
from tests.support.waiting import block_until

pytestmark = pytest.mark.skipif(SSHD is None, reason="needs sshd (Debian: openssh-server)")

HOST = "pi-worker-1.pi.lab.svc"
NOWHERE = "no-such-host.invalid"
GIVES_UP_SOON = {"MPI_OPERATOR_INIT_TIMEOUT": "0"}


@pytest.fixture(params=SHELLS)
def shell(request):
    if missing(request.param):
        pytest.skip(f"needs {request.param}")
    return request.param


@pytest.fixture
def scripts(tmp_path, shell):
    return Scripts(tmp_path, shell)


@pytest.fixture
def sshd(tmp_path):
    place = tmp_path / "sshd"
    place.mkdir()
    server = Sshd(place)
    yield server
    server.stop()


@pytest.fixture
def remote(scripts, sshd):
    """Starts a remote shell; whatever is left of it ends with the test."""
    started = []

    def start(*command, host=HOST, options=(), env=None):
        arguments = ("-F", str(sshd.client), *options, host, *command)
        process = scripts.start(REMOTE_SHELL, *arguments, env=env)
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate()


def has_tried(scripts):
    """Whether ssh has failed at least once: its words are in the file of the script."""
    logs = scripts.directory.glob("mpi-remote-shell.*")
    return any(log.stat().st_size for log in logs)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="Open MPI"),
        pytest.param(["-x"], id="MPICH"),
        pytest.param(["-q", "-x"], id="Intel MPI"),
        pytest.param(["-o", "ConnectionAttempts=10"], id="with arguments for ssh"),
        pytest.param(
            ["-qxoConnectionAttempts=10", "-l", os.environ.get("USER") or "root"], id="in one word"
        ),
    ],
)
def test_the_command_runs_there_whatever_the_options(remote, sshd, options):
    sshd.start()
    out, err = remote("echo", "it is", "$((1 + 1))", options=options).communicate(timeout=30)
    assert (out, err) == ("it is 2\n", "")


def test_standard_streams_and_the_exit_code_pass_through(remote, sshd):
    sshd.start()
    process = remote("cat; echo wrong >&2; exit 7")
    assert process.communicate("words\n", timeout=30) == ("words\n", "wrong\n")
    assert process.returncode == 7


def test_an_sshd_that_comes_late_is_waited_for(remote, scripts, sshd):
    process = remote("echo here")
    block_until(lambda: has_tried(scripts))
    sshd.start()
    assert process.communicate(timeout=30) == ("here\n", "")
    assert process.returncode == 0


def test_a_name_that_comes_late_is_waited_for(remote, scripts, sshd):
    sshd.resolves_to(NOWHERE)
    process = remote("echo here")
    block_until(lambda: has_tried(scripts))
    sshd.start()
    sshd.resolves_to("127.0.0.1")
    assert process.communicate(timeout=30) == ("here\n", "")


def test_what_is_waited_for_is_said(remote):
    process = remote("true")
    line = process.stderr.readline()
    assert line.startswith(f"{EVENT}{Event.WAITING} worker=pi-worker-1 seconds=")
    assert "Connection refused" in line


def test_intel_mpi_does_not_keep_it_to_itself(remote, scripts):
    process = remote("true --upstream-host here ", env=GIVES_UP_SOON)
    _, err = process.communicate(timeout=30)
    assert err.startswith(f"{EVENT}{Event.GAVE_UP} worker=pi-worker-1 ")
    assert scripts.container_log.read_text() == err


def test_where_a_container_has_no_log_it_is_said_to_who_started_it(remote, scripts):
    scripts.container_log.mkdir()
    _, err = remote("true --upstream-host here ", env=GIVES_UP_SOON).communicate(timeout=30)
    [line] = err.splitlines()
    assert line.startswith(f"{EVENT}{Event.GAVE_UP} worker=pi-worker-1 ")


@pytest.mark.parametrize(
    ("address", "env", "cause"),
    [
        pytest.param(
            "127.0.0.1", GIVES_UP_SOON, "Connection refused", id="sshd, in the time given"
        ),
        pytest.param("127.0.0.1", {}, "Connection refused", id="sshd, after a while"),
        pytest.param(NOWHERE, GIVES_UP_SOON, "Could not resolve hostname", id="name"),
    ],
)
def test_it_times_out_with_a_sentence_and_an_exit_code_of_its_own(
    remote, scripts, sshd, address, env, cause
):
    scripts.give_up_early()
    sshd.resolves_to(address)
    process = remote("true", env=env)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 79
    [sentence] = err.splitlines()
    assert sentence.startswith(f"{EVENT}{Event.GAVE_UP} worker=pi-worker-1 seconds=")
    assert cause in sentence
    assert scripts.last_words.read_text() == f"{sentence}\n"


def test_a_connection_that_is_closed_at_once_is_tried_again(remote, sshd):
    with socket.create_server(("127.0.0.1", sshd.port)) as listener:
        process = remote("echo here")
        listener.accept()[0].close()
    sshd.start()
    assert process.communicate(timeout=30) == ("here\n", "")


def test_a_refused_login_fails_at_once(remote, sshd):
    (sshd.directory / "key.pub").write_text("")
    sshd.start()
    process = remote("true")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 255
    assert "Permission denied" in err
    assert "mpi-operator" not in err


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("exit 255", id="by the command"),
        pytest.param("kill -9 $PPID", id="by a session that was killed"),
        pytest.param("echo 'Connection closed by it' >&2; exit 255", id="with misleading words"),
    ],
)
def test_what_has_begun_is_never_begun_again(remote, sshd, scripts, ending):
    sshd.start()
    begun = scripts.directory / "begun"
    process = remote(f"echo once >>{begun}; {ending}")
    process.communicate(timeout=30)
    assert process.returncode == 255
    assert begun.read_text() == "once\n"


BREAKS_OFF = "kill -9 $PPID"


@pytest.mark.parametrize(
    "ending",
    [pytest.param(BREAKS_OFF, id="with its sshd"), pytest.param("kill -9 $$", id="by a signal")],
)
def test_a_session_that_breaks_off_is_recorded(remote, sshd, scripts, ending):
    sshd.start()
    remote(ending).communicate(timeout=30)
    [word] = scripts.last_words.read_text().splitlines()
    assert word.startswith(f"{EVENT}{Event.LOST} worker=pi-worker-1 seconds=")
    assert word.endswith(" cause=the connection was closed")


# Ours are minutes. What users say about it counts, as here.
NOTICES_SOON = ["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=1"]
PROXY = "hydra_pmi_proxy=; echo here; exec sleep 600"


def test_a_link_that_is_cut_is_noticed_and_recorded(remote, sshd, scripts):
    sshd.start()
    process = remote("echo here; exec sleep 600", options=NOTICES_SOON)
    process.stdout.readline()
    sshd.fall_silent()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 255
    assert err == "Timeout, server 127.0.0.1 not responding.\n"
    [word] = scripts.last_words.read_text().splitlines()
    assert word.startswith(f"{EVENT}{Event.LOST} worker=pi-worker-1 seconds=")
    assert word.endswith(err.strip())


@pytest.mark.parametrize(
    ("timeout", "interval"),
    [
        pytest.param(None, "30", id="6 minutes"),
        pytest.param("60", "5", id="a minute"),
        pytest.param("0", "0", id="for ever"),
        pytest.param("long", "30", id="a word"),
        pytest.param("090", "30", id="what some shells take for octal"),
        pytest.param("9" * 20, "30", id="too long for a number"),
    ],
)
def test_a_silent_worker_is_waited_for_as_long_as_its_node(remote, timeout, interval):
    env = {"MPI_OPERATOR_NODE_TIMEOUT_SECONDS": timeout} if timeout else {}
    # -G: ssh only says what it would do.
    shown, _ = remote("true", options=["-G"], env=env).communicate(timeout=30)
    options = dict(line.partition(" ")[::2] for line in shown.splitlines())
    assert (options["serveraliveinterval"], options["serveralivecountmax"]) == (interval, "11")


@pytest.mark.parametrize(
    ("command", "end", "is_interrupted"),
    [
        pytest.param(PROXY, Sshd.fall_silent, True, id="when a link is cut, which it overlooks"),
        pytest.param(
            PROXY, Sshd.break_off_one_session, False, id="not when a session ends, which it notices"
        ),
        pytest.param("echo here; sleep 600", Sshd.fall_silent, False, id="not Open MPI's mpirun"),
    ],
)
def test_hydra_is_interrupted(scripts, sshd, command, end, is_interrupted):
    sshd.start()
    arguments = ("-F", str(sshd.client), *NOTICES_SOON, HOST, command)
    # It takes the first for a mistake, as Intel's does.
    mpirun = (
        "times=; trap 'times=x$times; [ $times != xx ] || exit 3' INT; \"$@\" & wait $!; wait $!"
    )
    words = ["sh", "-c", mpirun, "sh", *scripts.command(REMOTE_SHELL, *arguments)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        end(sshd)
        assert process.wait(timeout=30) == (3 if is_interrupted else 255)


# What OpenSSH says when TCP gives up on a session, which takes a quarter of an hour.
TCP_WAS_FIRST = """\
#!/bin/sh
while [ "$1" != -E ]; do shift; done
printf 'Authenticated to x\\nclient_loop: send disconnect: Broken pipe\\n' >"$2"
exit 255
"""


def test_hydra_is_interrupted_when_tcp_times_out_first(scripts, tmp_path):
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(TCP_WAS_FIRST)
    ssh.chmod(0o755)
    path = {"PATH": f"{ssh.parent}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    mpirun = "trap 'exit 3' INT; \"$@\" & wait $!"
    words = ["sh", "-c", mpirun, "sh", *scripts.command(REMOTE_SHELL, HOST, PROXY)]
    assert subprocess.run(words, env={**os.environ, **path}, timeout=30).returncode == 3


def test_a_process_that_inherits_it_is_not_interrupted(scripts, sshd):
    sshd.start()
    arguments = ("-F", str(sshd.client), *NOTICES_SOON, HOST, PROXY)
    # The first process of a container: it gets the children of an mpirun that was killed.
    inherits = "import ctypes, subprocess, sys, os; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); "
    inherits += "mpirun = subprocess.Popen(['sh', '-c', '\"$@\" & wait', 'sh', *sys.argv[1:]]); "
    inherits += "sys.stdin.read(1); mpirun.kill(); [os.wait() for _ in range(2)]"
    words = [sys.executable, "-c", inherits, *scripts.command(REMOTE_SHELL, *arguments)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        sshd.fall_silent()
        process.communicate("x", timeout=30)
        assert process.returncode == 0


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("true", id="well"),
        pytest.param("exit 1", id="with an error"),
        pytest.param("exit 255", id="with that of ssh"),
    ],
)
def test_nothing_is_recorded_whatever_a_command_exits_with(remote, sshd, scripts, ending):
    sshd.start()
    remote(ending).communicate(timeout=30)
    assert scripts.last_words.read_text() == ""


def test_a_command_after_a_loss_is_recorded_once(remote, sshd, scripts):
    sshd.start()
    remote(BREAKS_OFF).communicate(timeout=30)
    for _ in range(2):
        remote("true", host="pi-worker-0.pi.lab.svc").communicate(timeout=30)
    lost, *others = scripts.last_words.read_text().splitlines()
    assert lost.startswith(f"{EVENT}{Event.LOST} ")
    assert others == [f"{EVENT}{Event.CONTINUED} worker=pi-worker-0"]


def test_who_ends_it_ends_ssh(remote, sshd, scripts):
    sshd.start()
    process = remote("echo $$; exec sleep 600")
    process.stdout.readline()
    [child] = children(process.pid)
    [ssh] = children(child)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    assert scripts.last_words.read_text() == ""
    assert not os.path.exists(f"/proc/{ssh}")


def test_what_was_killed_is_not_tried_by_what_is_left(remote, scripts, sshd):
    process = remote("echo here")
    block_until(lambda: has_tried(scripts))
    process.kill()
    assert process.communicate(timeout=30)[0] == ""


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=-1, text=True)
    return found.stdout.split()


def test_it_leaves_no_file(remote, sshd, scripts):
    sshd.start()
    remote("true").communicate(timeout=30)
    assert not list(scripts.directory.glob("mpi-remote-shell.*"))


def test_a_host_that_is_this_one_needs_no_ssh(remote):
    process = remote("cat; exit 3", host=f"{socket.gethostname()}.pi.lab.svc")
    assert process.communicate("words\n", timeout=30) == ("words\n", "")
    assert process.returncode == 3


def test_without_a_standard_input_it_works_too(scripts, sshd):
    sshd.start()
    command = scripts.command(REMOTE_SHELL, "-F", str(sshd.client), HOST, "echo here")
    closed = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *command], stdout=-1, text=True)
    assert closed.stdout == "here\n"


HOSTILE = {
    "QUOTED": 'it\'s "so"',
    "LINES": "one\ntwo\nexport EVIL=yes\n",
    "DOLLARS": "$HOME ${PATH} $(touch {proof}) `touch {proof}`",
    "BREAKS": "'; touch {proof}; '",
    "BACKSLASHES": "\\n \\' \\",
    "SPACES": "  a  b\t",
    "EMPTY": "",
    "UNICODE": "é→",
}


def test_the_environment_of_the_container_arrives_unchanged(remote, scripts, sshd, tmp_path):
    proof = tmp_path / "proof"
    given = {name: value.replace("{proof}", str(proof)) for name, value in HOSTILE.items()}
    kept = {"HOME": "/nowhere", "UID": "7", "EXTRA": "1"}
    started = scripts.start(WORKER, "env", "-0", env={**given, **kept})
    passed = started.communicate(timeout=30)[0]
    sshd.start()
    seen = remote("env -0").communicate(timeout=30)[0]
    arrived = dict(each.split("=", 1) for each in seen.split("\0") if each)
    assert {name: arrived.get(name) for name in given} == given
    assert arrived["EXTRA"] == "1"
    assert arrived["HOME"] != "/nowhere"
    assert "EVIL" not in arrived
    assert "mpi_operator" not in seen + passed
    assert not proof.exists()


@pytest.mark.parametrize("reader", SHELLS)
def test_every_shell_reads_what_any_shell_kept(scripts, reader):
    if missing(reader):
        pytest.skip(f"needs {reader}")
    scripts.start(WORKER, "true", env=HOSTILE).communicate(timeout=30)
    command = [*SHELLS[reader], "-c", f". {scripts.environment}; env -0"]
    empty = {"PATH": os.environ["PATH"]}
    seen = subprocess.run(command, env=empty, stdout=-1, text=True, check=True).stdout
    arrived = dict(each.split("=", 1) for each in seen.split("\0") if each)
    assert {name: arrived.get(name) for name in HOSTILE} == HOSTILE


def test_a_worker_that_cannot_keep_its_environment_starts_all_the_same(scripts):
    scripts.run_directory.rmdir()
    process = scripts.start(WORKER, "echo", "started", env={"MINE": "1"})
    out, err = process.communicate(timeout=30)
    assert out == "started\n"
    assert "ranks will lack the environment variables" in err


@pytest.fixture
def own_port(sshd):
    """A first port with which the worker of the tests has that of the sshd."""
    sshd.port = next(filter(_is_free, range(20001, 30000)))
    return {"MPI_OPERATOR_FIRST_SSH_PORT": str(sshd.port - 1)}


def _is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="where ssh_config says something else"),
        pytest.param(["-p", "22"], id="where the user says something else"),
        pytest.param(["-oPort=22"], id="in whatever way"),
    ],
)
def test_on_the_network_of_nodes_a_worker_is_found_at_its_port(remote, sshd, own_port, options):
    sshd.start()
    process = remote("echo here", env=own_port | GIVES_UP_SOON, options=options)
    assert process.communicate(timeout=30) == ("here\n", "")


def test_the_ports_of_workers_begin_again_at_the_end_of_their_range(remote):
    env = {"MPI_OPERATOR_FIRST_SSH_PORT": "29999", **GIVES_UP_SOON}
    _, err = remote("true", env=env).communicate(timeout=30)
    assert "port 20000: Connection refused" in err


CALLS_BACK = pytest.mark.parametrize(
    "flag", ["--control-port {}:4711", "--upstream-host {} --upstream-port 4711"]
)


@CALLS_BACK
def test_on_the_network_of_nodes_hydra_is_called_back_by_address(remote, sshd, own_port, flag):
    # Only the address from which sshd was called is sure to lead back: node names may be unknown.
    sshd.start()
    words = flag.format(socket.gethostname())
    out, _ = remote("echo", words, env=own_port).communicate(timeout=30)
    assert out == flag.format("127.0.0.1") + "\n"


@CALLS_BACK
@pytest.mark.parametrize(
    ("line", "caller"),
    [
        pytest.param("10.1.2.3\t{0}.pi.lab.svc\t{0}", "10.1.2.3", id="as a kubelet writes it"),
        pytest.param("10.1.2.3 {0} # mine", "10.1.2.3", id="before a comment"),
        pytest.param("127.0.1.1 {0}\n10.1.2.3 {0}", "10.1.2.3", id="after one for itself alone"),
        pytest.param("127.0.1.1 {0}", "{0}", id="only for itself"),
        pytest.param("fd00::7\t{0}", "{0}", id="with colons, which Hydra does not take"),
        pytest.param("10.1.2.3 {0}-1", "{0}", id="of another host"),
        pytest.param("#10.1.2.3 {0}", "{0}", id="not any more"),
        pytest.param("10.1.2.3 other # {0}", "{0}", id="in the comment of another host"),
        pytest.param(
            "# Kubernetes-managed hosts file (host network).\n10.1.2.3 {0}",
            "{0}",
            id="of a node, which may have several",
        ),
    ],
)
def test_hydra_is_called_back_by_the_address_of_the_pod(remote, scripts, sshd, flag, line, caller):
    # DNS may not know a launcher yet when its workers do not have to wait any more.
    here = socket.gethostname()
    scripts.hosts.write_text("127.0.0.1 localhost\n" + line.format(here))
    sshd.start()
    out, _ = remote("echo", flag.format(here)).communicate(timeout=30)
    assert out == flag.format(caller.format(here)) + "\n"
