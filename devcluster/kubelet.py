"""The kubelet: its configuration and its command line."""

from pathlib import Path
from typing import Any

from devcluster.pki import KeyPair


def configuration(
    *,
    authority: Path,
    serving: KeyPair,
    cgroup_root: str,
    runtime: str,
    dns_address: str,
    dns_domain: str,
    grace_seconds: int | None,
) -> dict[str, Any]:
    """The kubelet's configuration file, as data."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "containerRuntimeEndpoint": f"unix://{runtime}",
        "clusterDNS": [dns_address],
        "clusterDomain": dns_domain,
        "resolvConf": "/dev/null",  # pods know the cluster's names and no others
        "maxPods": 250,
        "serializeImagePulls": False,
        **_shared_machine(cgroup_root),
        **_heartbeat(grace_seconds),
    }


def command(
    binary: Path, *, configuration_file: Path, kubeconfig: Path, node: str, address: str
) -> list[str]:
    return [
        str(binary),
        f"--config={configuration_file}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node}",
        f"--node-ip={address}",
    ]


def _shared_machine(cgroup_root: str) -> dict[str, Any]:
    """Settings for a machine that it shares with others, and that may be nearly full."""
    return {
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,  # never: loaded images stay
        "podPidsLimit": -1,
    }


def _heartbeat(grace_seconds: int | None) -> dict[str, Any]:
    """A short grace period needs more frequent heartbeats."""
    if grace_seconds is None:
        return {}
    return {"nodeLeaseDurationSeconds": grace_seconds, "nodeStatusUpdateFrequency": "1s"}
