"""What the agent makes of the command lines that MPIs call ssh with."""

import socket

import pytest

from mpi_operator.local.remote_exec import agent_server
from mpi_operator.local.remote_exec.agent import answer, parse

# What horovodrun begins every call with; its other options come after the host.
HOROVOD = ("-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no")


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        pytest.param(["w-0", "hostname"], "w-0", "hostname", id="Open MPI"),
        pytest.param(["-x", "w-0", "a 'b c'"], "w-0", "a 'b c'", id="MPICH"),
        pytest.param(["-q", "-x", "w-0", "a"], "w-0", "a", id="Intel MPI"),
        pytest.param(["-o", "X=y", "-p", "22", "w-0", "a"], "w-0", "a", id="options with values"),
        pytest.param(["-oX=y", "-p22", "w-0", "a"], "w-0", "a", id="values without a space"),
        pytest.param(["-tt", "-qp", "22", "w-0", "a"], "w-0", "a", id="letters together"),
        pytest.param(["-l", "root", "w-0", "a"], "w-0", "a", id="a user as rsh names it"),
        pytest.param(["root@w-0", "a"], "w-0", "a", id="a user as ssh names it"),
        pytest.param(["w-0", "a", "-o", "b"], "w-0", "a -o b", id="options of the command stay"),
        pytest.param(["-x", "--", "w-0", "a"], "w-0", "a", id="an end of options"),
        pytest.param(["w-0"], "w-0", "", id="no command"),
        pytest.param([*HOROVOD, "w-0", "true"], "w-0", "true", id="horovodrun"),
        pytest.param(
            [*HOROVOD, "w-0", "-p", "22", "-i", "/key", "true"],
            *("w-0", "true"),
            id="horovodrun with a port and a key",
        ),
        pytest.param(
            [*HOROVOD, "w-0", "-p", "22", "cd /work && ssh -p 1 x"],
            *("w-0", "cd /work && ssh -p 1 x"),
            id="horovodrun with a script",
        ),
        pytest.param(["w-0", "-l", "root", "-n", "a", "-n"], "w-0", "a -n", id="rsh"),
    ],
)
def test_host_and_command(words, host, command):
    assert parse(words) == (host, command)


def test_without_a_host_it_says_so():
    with pytest.raises(ValueError, match="no host"):
        parse(["-x"])


def test_a_signal_that_comes_too_late_does_not_change_the_exit_code():
    ours, servers = socket.socketpair()
    with ours, servers:
        servers.sendall(bytes([3]))
        ours.sendall(bytes([15]))
        servers.close()
        assert answer(ours) == 3


def test_a_shell_command_is_understood_by_the_node():
    request = agent_server.parsed(["run", "w-0", "echo hi"], (0, 1, 2))
    assert (request.host, request.shell, request.rank) == ("w-0", "echo hi", None)


def test_a_rank_comes_with_words_and_variables():
    fields = ["rank", "/work", "2", "python", "a.py", "PMIX_RANK=1", "X=a=b"]
    rank = agent_server.parsed(fields, (0, 1, 2)).rank
    assert rank is not None
    assert rank.argv == ["python", "a.py"]
    assert rank.env == {"PMIX_RANK": "1", "X": "a=b"}
    assert rank.directory == "/work"
