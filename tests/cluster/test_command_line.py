import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import cluster as clusters
from devcluster import runs, slots
from tests.support import traces
from tests.support.devcluster_command import Command, devcluster_command

pytestmark = pytest.mark.timeout(300)  # each test starts its own cluster


@pytest.fixture
def devcluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Runs `python -m devcluster`; every cluster is taken down after the test."""
    if reason := clusters.unsupported_reason():
        pytest.skip(reason)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield devcluster_command
    devcluster_command("down", "--all")


def components(status: subprocess.CompletedProcess[str]) -> dict[str, dict[str, str]]:
    [found] = json.loads(status.stdout)
    return {each["name"]: each for each in found["components"]}


def dead(status: subprocess.CompletedProcess[str]) -> set[str]:
    return {name for name, component in components(status).items() if component["state"] == "dead"}


def test_a_cluster_with_nodes_goes_up_is_repaired_and_goes_down(devcluster, busybox):
    up = devcluster("up", "--nodes", "1")
    assert up.returncode == 0, up.stderr
    [directory] = runs.detached()
    [slot] = slots.of(directory)
    status = devcluster("status", "-o", "json")
    assert components(status).keys() >= {"etcd", "coredns", "node-0", "node-0.kubelet"}
    assert dead(status) == set()

    os.kill(int(components(status)["node-0"]["pid"]), signal.SIGKILL)
    assert "node-0" in dead(devcluster("status", "-o", "json"))
    again = devcluster("up")
    assert "restarted node-0" in again.stderr
    assert again.stdout == up.stdout
    assert dead(devcluster("status", "-o", "json")) == set()

    load = devcluster("load", str(busybox))
    assert load.returncode == 0, load.stderr

    subprocess.run(["ip", "link", "delete", f"mpik{slot}"], check=True)
    rebooted = devcluster("up")
    assert rebooted.returncode == 1
    assert (
        "error: Cannot restart 'default': its network is gone, as after a reboot" in rebooted.stderr
    )

    assert "down, its data deleted" in devcluster("down").stderr
    assert traces.of(directory, slot) == {}
