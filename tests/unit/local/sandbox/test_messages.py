"""Messages to helper processes, and what those import."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import mpi_operator.local
from mpi_operator.local.sandbox import host, messages

PACKAGE = Path(mpi_operator.local.__file__).parent


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def everything(inbox, count):
    received: list[tuple[dict[str, object], list[int]]] = []
    while len(received) < count:
        received += inbox.read()
    return received


def test_messages_arrive_whole_and_in_order(pair):
    ours, theirs = pair
    sent = [{"op": "run", "argv": ["x" * size]} for size in (0, 10, 70_000)]
    inbox = messages.Inbox(theirs)
    received = []
    for message in sent:
        messages.send(ours, message)
        received += everything(inbox, 1)
    assert [message for message, _ in received] == sent


def test_descriptors_stay_with_their_messages(pair):
    ours, theirs = pair
    reader, writer = os.pipe()
    messages.send(ours, {"n": 1})
    messages.send(ours, {"n": 2}, (writer, writer))
    messages.send(ours, {"n": 3}, (reader,))
    received = everything(messages.Inbox(theirs), 3)
    assert [len(descriptors) for _, descriptors in received] == [0, 2, 1]
    for _, descriptors in received:
        for descriptor in descriptors:
            assert not os.get_inheritable(descriptor)
            os.close(descriptor)
    os.close(reader)
    os.close(writer)


def test_the_end_is_reported(pair):
    ours, theirs = pair
    ours.close()
    with pytest.raises(EOFError):
        messages.Inbox(theirs).read()


def loaded(code: str, *arguments: str) -> set[str]:
    """What a helper process has imported."""
    argv = [sys.executable, "-S", "-E", "-s", "-X", "importtime", "-c", code, *arguments]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stderr
    return {line.rpartition("|")[2].strip() for line in printed.splitlines() if "|" in line}


def test_the_fork_server_starts_with_next_to_nothing():
    start = host._START.replace("fork_server.main(int(sys.argv[3]))", "")
    modules = loaded(start, str(PACKAGE.parent), str(PACKAGE), "0")
    assert "mpi_operator.local.sandbox.pod_init" in modules
    assert modules.isdisjoint({"socket", "signal", "typing", "contextlib", "subprocess", "msgspec"})


@pytest.mark.parametrize("program", ["agent.py", "mpirun_wrapper.py"])
def test_programs_in_pods_start_with_even_less(program):
    file = str(PACKAGE / "remote_exec" / program)
    modules = loaded(f"import runpy; exec(open({file!r}).read(), {{}})")
    assert modules.isdisjoint({"socket", "signal", "typing", "json", "ctypes"})


@pytest.mark.parametrize(
    ("table", "has"),
    [
        ("           |-- 127.0.0.1\n              /32 host LOCAL\n", False),
        ("           |-- 10.0.0.2\n              /32 host LOCAL\n", True),
        ("           |-- 10.0.0.255\n              /32 link BROADCAST\n", False),
    ],
)
def test_whether_there_is_a_network(table, has, tmp_path):
    (tmp_path / "fib").write_text(table)
    assert host.has_network(tmp_path / "fib") == has
