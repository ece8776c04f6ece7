"""Cluster IPs: every node rewrites them to the addresses of pods."""

from pathlib import Path


def command(binary: Path, *, kubeconfig: Path, node: str, pod_ranges: str) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node}",
        f"--cluster-cidr={pod_ranges}",
        "--proxy-mode=iptables",
        "--iptables-min-sync-period=100ms",  # a new service should not take a second to work
        # These would change this machine's settings, and it is not ours.
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]
