"""No process survives a killed node, nor a node that is killed together with its fork server."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpi_operator.local.runs import run_directories
from mpi_operator.local.sandbox import process_tree
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.run_processes import marked
from tests.local.test_pods import count, nap
from tests.support.waiting import block_until

CHECKOUT = Path(__file__).parents[2]
NAP = nap(982)


@pytest.fixture
def owner(root, kind):
    """A process that runs a pod of four processes."""
    argv = [sys.executable, "-m", "tests.local.owner", str(root), kind.value, NAP]
    env = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}"}
    process = subprocess.Popen(argv, cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline()
    block_until(lambda: count("sleep", NAP) == 3)
    yield process
    process.kill()
    process.communicate()


def fork_server_of(process) -> int:
    [found] = [pid for pid, parent in process_tree.parents().items() if parent == process.pid]
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_with_the_node_its_processes_end(owner, root, number):
    owner.send_signal(number)
    owner.wait()
    block_until(lambda: marked(root) == [] and count("sleep", NAP) == 0)
    assert run_directories.reap(root) != []


def test_with_the_fork_server_its_processes_end(owner, root):
    os.kill(fork_server_of(owner), signal.SIGKILL)
    block_until(lambda: count("sleep", NAP) == 0)
    owner.kill()
    owner.wait()
    run_directories.reap(root)


def test_what_survives_both_ends_with_the_next_start(owner, root, kind):
    processes = marked(root)
    fork_server = fork_server_of(owner)
    below = [fork_server, *process_tree.descendants(fork_server)]
    helpers = [pid for pid in below if pid in processes and _is_helper(pid)]
    assert len(helpers) == 2, "the fork server, and the init process of the pod"
    for pid in (owner.pid, *helpers):
        os.kill(pid, signal.SIGKILL)
    owner.wait()
    if kind is Kind.NAMESPACES:
        block_until(lambda: count("sleep", NAP) == 0)
    run = run_directories.create(root)
    assert count("sleep", NAP) == 0
    run.end()


def _is_helper(pid: int) -> bool:
    return b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
