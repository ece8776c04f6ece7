"""Gang scheduling: the scheduler and the controller of kubernetes-sigs/scheduler-plugins.

The scheduler runs beside the default one, under a name of its own. A pod that asks for it and
belongs to a PodGroup starts only when enough members of the group can start.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from devcluster import binaries, go_sources
from devcluster.pki import Pki

SCHEDULER_NAME = "scheduler-plugins-scheduler"
SCHEDULER, CONTROLLER = COMPONENTS = binaries.USES["gang-scheduling"]
POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"

USER = "system:scheduler-plugins"
# Beyond what the default scheduler may do.
RULES = [
    {
        "apiGroups": ["scheduling.x-k8s.io"],
        "resources": ["podgroups", "podgroups/status", "elasticquotas", "elasticquotas/status"],
        "verbs": ["get", "list", "watch", "create", "delete", "update", "patch"],
    },
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
]
_DEFINITIONS = ("podgroups", "elasticquotas")


def definitions() -> list[dict[str, Any]]:
    """Its custom resource definitions, from the pinned module."""
    crds = go_sources.directory(binaries.TOOLS[SCHEDULER]) / "config" / "crd" / "bases"
    files = (crds / f"scheduling.x-k8s.io_{plural}.yaml" for plural in _DEFINITIONS)
    return [yaml.safe_load(file.read_text()) for file in files]


def configuration(kubeconfig: Path) -> str:
    """The scheduler's configuration: the default plugins and coscheduling."""
    profile = {
        "schedulerName": SCHEDULER_NAME,
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            # Only one plugin may sort the queue, and gangs have to stay together in it.
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        },
    }
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 2000, "burst": 4000},
            "profiles": [profile],
        }
    )


def scheduler(
    binary: Path, *, pki: Pki, kubeconfig: Path, configuration_file: Path, port: int
) -> list[str]:
    serving = pki.pair("serving")
    return [
        str(binary),
        f"--config={configuration_file}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        # A changed group wakes it, and it reads the group from another cache. If that is behind,
        # the gang waits for the next attempt: by default five minutes.
        "--pod-max-in-unschedulable-pods-duration=20s",
    ]


def controller(binary: Path, *, kubeconfig: Path, port: int) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        "--metricsAddr=0",
        f"--probeAddr=127.0.0.1:{port}",
        "--qps=2000",
        "--burst=4000",
        "--enableLeaderElection=false",
    ]
