"""The configuration of a node's programs, as far as it depends on something."""

import tomllib
from pathlib import Path

import pytest

from devcluster import containerd, kubelet
from devcluster.pki import KeyPair


def kubelet_configuration(grace_seconds):
    return kubelet.configuration(
        authority=Path("/ca"),
        serving=KeyPair(Path("/crt"), Path("/key")),
        cgroup_root="/tree",
        runtime="/socket",
        dns_address="10.0.0.1",
        dns_domain="cluster.local",
        grace_seconds=grace_seconds,
    )


def test_a_kubelet_denies_anonymous_requests():
    configuration = kubelet_configuration(None)
    assert configuration["authentication"]["anonymous"] == {"enabled": False}
    assert configuration["authorization"] == {"mode": "Webhook"}


def test_a_short_grace_period_sets_the_lease_duration():
    assert "nodeLeaseDurationSeconds" not in kubelet_configuration(None)
    assert kubelet_configuration(8)["nodeLeaseDurationSeconds"] == 8


@pytest.mark.parametrize("for_kubernetes", [True, False])
def test_containerd_serves_kubernetes_unless_it_is_to_forget_its_containers(for_kubernetes):
    text = containerd.configuration(
        plugins=Path("/cni"), cni=Path("/net.d"), for_kubernetes=for_kubernetes
    )
    disabled = tomllib.loads(text)["disabled_plugins"]
    assert ("io.containerd.grpc.v1.cri" not in disabled) is for_kubernetes
