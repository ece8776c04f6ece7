"""A fake node: kwok, which reports pods as running like a kubelet, but starts nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import yaml

from benchmarks.operators.running import DidNotStart
from benchmarks.operators.testbed import Testbed
from devcluster import binaries, process, readiness
from devcluster.process import Process
from mpi_operator.kube.resources import NODES, Manifest
from tests.support.waiting import until

USER = "kwok"
_NODE = "fake-0"
_MANY = {"cpu": "100000", "memory": "1000Ti", "pods": "1000000"}

_CONDITIONS = ("Initialized", "Ready", "ContainersReady")
_RUNNING = """\
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
podIP: {{ PodIP | Quote }}
podIPs:
- ip: {{ PodIP | Quote }}
conditions:
%(conditions)s
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
"""
_SUCCEEDED = """\
{{ $now := Now }}
phase: Succeeded
conditions:
- type: Ready
  status: "False"
  reason: PodCompleted
  lastTransitionTime: {{ $now | Quote }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      reason: Completed
      startedAt: {{ $now | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"""


_READY = """\
{{ $now := Now }}
conditions:
- type: Ready
  status: "True"
  reason: Fake
  message: it always is
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
"""


def configuration(*, launchers_end: bool) -> str:
    """The stages of pods: they run, and pods of Jobs may succeed at once."""
    conditions = "\n".join(
        f'- type: {kind}\n  status: "True"\n  lastTransitionTime: {{{{ $now | Quote }}}}'
        for kind in _CONDITIONS
    )
    stages = [
        # Without a stage for nodes, kwok ignores all nodes and their pods.
        _stage("ready", [_not_in(_NODE_IS_READY, "True")], {"statusTemplate": _READY}, "Node"),
        _stage(
            "run",
            [_absent(_DELETED), _in(".status.phase", "Pending")],
            {"statusTemplate": _RUNNING % {"conditions": conditions}},
        ),
        _stage("delete", [{"key": _DELETED, "operator": "Exists"}], {"delete": True}),
    ]
    if launchers_end:
        is_launcher = _in(".metadata.ownerReferences.[].kind", "Job")
        runs = _in(".status.phase", "Running")
        stages.append(
            _stage(
                "succeed", [_absent(_DELETED), runs, is_launcher], {"statusTemplate": _SUCCEEDED}
            )
        )
    return yaml.safe_dump_all([_OPTIONS, *stages])


_DELETED = ".metadata.deletionTimestamp"
_NODE_IS_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
_OPTIONS = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    # All of them: with a file there are no defaults. Its own 4 for pods would be what is measured.
    "options": {
        "manageAllNodes": True,
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 1,
        "nodeLeaseParallelism": 1,
        "nodeLeaseDurationSeconds": 40,
        "podsOnNodeSyncParallelism": 1,
        "cidr": "10.0.0.0/8",
    },
}


def _stage(
    name: str, when: list[dict[str, Any]], then: dict[str, Any], kind: str = "Pod"
) -> Manifest:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": when},
            "next": then,
        },
    }


def _in(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}


def _not_in(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": [value]}


def _absent(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "DoesNotExist"}


@asynccontextmanager
async def fake_node(testbed: Testbed, *, launchers_end: bool) -> AsyncIterator[None]:
    """A ready node with room for any number of pods, for as long as the block lasts."""
    directory = testbed.control_plane.directory
    file = directory / "kwok.yaml"
    file.write_text(configuration(launchers_end=launchers_end))
    await testbed.client.create(NODES, _node())
    status = {"status": _node_status()}
    await testbed.client.patch(NODES, _NODE, status, subresource="status")
    program = binaries.provide(["kwok"])["kwok"]
    kwok = process.start(
        "kwok",
        [
            str(program),
            f"--kubeconfig={testbed.control_plane.kubeconfig(USER)}",
            f"--config={file}",
        ],
        directory=directory,
        env={"HOME": str(directory)},
        log=directory / "logs" / "kwok.log",
    )
    testbed.control_plane.run.record(kwok)
    try:
        await until(lambda: _takes_pods(testbed, kwok), 60)
        yield
    finally:
        await asyncio.to_thread(kwok.stop)
        await testbed.client.delete(NODES, _NODE)


def _node() -> Manifest:
    return {"metadata": {"name": _NODE, "labels": {"kubernetes.io/hostname": _NODE}}}


def _node_status() -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "Fake", "message": "it always is"}
    return {
        "allocatable": _MANY,
        "capacity": _MANY,
        "conditions": [ready],
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        "nodeInfo": {"kubeletVersion": "fake", "architecture": "amd64", "operatingSystem": "linux"},
    }


async def _takes_pods(testbed: Testbed, kwok: Process) -> bool:
    if not kwok.is_alive:
        raise DidNotStart(f"kwok has ended. Its last log lines:\n{readiness.last_lines(kwok.log)}")
    node = await testbed.client.get(NODES, _NODE)
    return not node["spec"].get("taints")
