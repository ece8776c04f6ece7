import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devcluster import runs
from tests.support.devcluster_command import Command, devcluster_command

pytestmark = pytest.mark.api


@pytest.fixture
def devcluster(state: Path, programs: dict[str, Path]) -> Iterator[Command]:
    """Runs `python -m devcluster`, and takes everything down in the end."""
    yield devcluster_command
    devcluster_command("down", "--all")


def components(status: subprocess.CompletedProcess[str]) -> dict[str, str]:
    [cluster] = json.loads(status.stdout)
    return {component["name"]: component["state"] for component in cluster["components"]}


def pid_of(status: subprocess.CompletedProcess[str], name: str) -> int:
    [cluster] = json.loads(status.stdout)
    return next(int(each["pid"]) for each in cluster["components"] if each["name"] == name)


ALL_RUNNING = dict.fromkeys(
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"], "running"
)


def test_up_status_and_down(devcluster):
    up = devcluster("up", "--nodes", "0")
    assert up.returncode == 0, up.stderr
    assert up.stdout.count("\n") == 1
    server = yaml.safe_load(Path(up.stdout.strip()).read_text())["clusters"][0]["cluster"]["server"]
    assert components(devcluster("status", "-o", "json")) == ALL_RUNNING
    assert server in devcluster("status").stdout

    again = devcluster("up", "--nodes", "0")
    assert again.stdout == up.stdout
    assert "already up" in again.stderr

    assert "down, its data deleted" in devcluster("down").stderr
    assert "not up" in devcluster("down").stderr
    assert devcluster("status").returncode == 1
    assert runs.detached() == []


def test_up_starts_again_what_has_died(devcluster):
    kubeconfig = devcluster("up", "--name", "mortal", "--nodes", "0").stdout
    os.kill(pid_of(devcluster("status", "-o", "json"), "kube-apiserver"), signal.SIGKILL)
    assert components(devcluster("status", "-o", "json"))["kube-apiserver"] == "dead"

    again = devcluster("up", "--name", "mortal", "--nodes", "0")
    assert "mortal: restarted kube-apiserver" in again.stderr
    assert again.stdout == kubeconfig
    assert components(devcluster("status", "-o", "json")) == ALL_RUNNING


def test_an_impossible_name_is_an_error_and_not_a_traceback(devcluster):
    answer = devcluster("up", "--name", "No Name")
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: 'No Name' is not a valid name")
