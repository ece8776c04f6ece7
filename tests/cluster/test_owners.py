"""What is left of a cluster when the process that owns it goes away: nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster import cgroups, network, runs, slot_cleanup, slots
from devcluster import cluster as clusters
from tests.support import traces
from tests.support.pods import BUSYBOX
from tests.support.waiting import block_until

pytestmark = pytest.mark.timeout(300)  # clusters of their own, on a machine that may be busy

# Owns a cluster with a running pod until its standard input ends.
_OWNER = """
import json, sys
from pathlib import Path
from devcluster.cluster import Cluster
with Cluster(nodes=1) as cluster:
    cluster.load(Path(sys.argv[1]))
    cluster.kubectl("run", "pod", f"--image={sys.argv[2]}", "--", "sleep", "1000")
    cluster.kubectl("wait", "pod/pod", "--for=condition=Ready", "--timeout=60s")
    watchdog = cluster.run.process("watchdog").pid
    print(json.dumps([str(cluster.directory), cluster.network.slot, watchdog]), flush=True)
    sys.stdin.read()
"""


@dataclass
class Owner:
    """Another process with a cluster."""

    process: subprocess.Popen[str]
    directory: Path
    slot: int
    watchdog: int

    def traces(self) -> dict[str, list[str]]:
        return traces.of(self.directory, self.slot)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of its own, so that the start of another run does not clean up here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def start_owner(state: Path, busybox: Path) -> Iterator[Callable[[], Owner]]:
    """Starts processes that own a cluster with one node and one pod."""
    if reason := clusters.unsupported_reason():
        pytest.skip(reason)
    started: list[subprocess.Popen[str]] = []

    def start() -> Owner:
        process = subprocess.Popen(
            [sys.executable, "-c", _OWNER, str(busybox), BUSYBOX],
            cwd=Path(runs.__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout
        directory, slot, watchdog = json.loads(process.stdout.readline())
        return Owner(process, Path(directory), slot, watchdog)

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()
    runs.reap()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["by Ctrl-C", "killed"])
def test_an_owner_that_is_ended_takes_everything_with_it(start_owner, number):
    owner = start_owner()
    # There is something of each kind to lose; mounts and namespaces never show on the host.
    kinds = {"directory", "claim", "processes", "containers", "cgroups", "links", "routes"}
    assert owner.traces().keys() == kinds
    owner.process.send_signal(number)
    block_until(lambda: not owner.traces(), 60)


def test_the_next_start_cleans_up_after_an_owner_and_its_guard_were_killed(start_owner):
    owner = start_owner()
    os.kill(owner.watchdog, signal.SIGKILL)
    owner.process.kill()
    owner.process.wait()
    assert owner.traces()
    assert runs.reap() == [owner.directory.name]
    assert owner.traces() == {}


def test_the_slot_of_a_run_whose_directory_was_deleted_is_cleared_by_who_wants_it(tmp_path):
    if reason := clusters.unsupported_reason():
        pytest.skip(reason)
    directory = tmp_path / "deleted"
    directory.mkdir()
    slot = slots.claim(directory, slot_cleanup.clear)
    network.create(network.Network(slot))
    cgroups.create(slot, 0)
    directory.rmdir()
    assert traces.of(directory, slot).keys() == {"cgroups", "links", "routes"}
    claimed = [slots.claim(tmp_path, slot_cleanup.clear)]
    while claimed[-1] < slot:  # others may come and go meanwhile, and the lowest goes first
        claimed.append(slots.claim(tmp_path, slot_cleanup.clear))
    for each in claimed:
        slots.release(each)
    assert claimed[-1] == slot
    assert traces.of(directory, slot) == {}
