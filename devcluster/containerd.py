"""The container runtime of one node: its configuration, and requests to it with `ctr`."""

import socket
import subprocess
from pathlib import Path

from devcluster import machine
from devcluster.process import Process

SOCKET = "/run/containerd/containerd.sock"
NAMESPACE = "k8s.io"  # where Kubernetes keeps its images and containers
SANDBOX_IMAGE = "localhost/pause:1"

_CRI = "io.containerd.grpc.v1.cri"
# Not needed, and each would probe or create something on this machine.
_DISABLED = (
    "io.containerd.internal.v1.opt",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
)
_CONFIGURATION = """\
version = 2
disabled_plugins = [{disabled}]
[plugins."{cri}"]
  sandbox_image = "{sandbox_image}"
  # Where a privilege is missing, a container that asks to be spared by the kernel cannot start.
  restrict_oom_score_adj = true
  [plugins."{cri}".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"
"""


class ImportFailed(Exception):
    """containerd refused an image."""


def configuration(*, plugins: Path, cni: Path, for_kubernetes: bool = True) -> str:
    """The configuration file; without the CRI plugin containerd does not restore old containers."""
    disabled = _DISABLED if for_kubernetes else (*_DISABLED, _CRI)
    return _CONFIGURATION.format(
        disabled=", ".join(f'"{plugin}"' for plugin in disabled),
        cri=_CRI,
        sandbox_image=SANDBOX_IMAGE,
        plugins=plugins,
        cni=cni,
    )


def command(configuration_file: Path) -> list[str]:
    return ["containerd", "--config", str(configuration_file)]


def answers(node: Process) -> bool:
    """Whether containerd accepts connections in this machine."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(machine.path_inside(node, SOCKET)))
        except OSError:
            return False
    return True


def import_image(node: Process, archive: Path) -> None:
    """Store and unpack the images of a docker or OCI archive."""
    done = _ctr(node, "images", "import", str(archive))
    if done.returncode != 0:
        raise ImportFailed(
            f"containerd on {node.name} cannot import {archive}: {done.stderr.strip()}."
            " Use an archive from `docker save` or `buildah push … docker-archive:`."
        )


def remove_containers(node: Process) -> None:
    """Delete all containers and their files; images stay."""
    listed = _ctr(node, "containers", "list", "--quiet").stdout.split()
    if listed:
        _ctr(node, "containers", "delete", *listed)


def _ctr(node: Process, *arguments: str) -> subprocess.CompletedProcess[str]:
    address = machine.path_inside(node, SOCKET)
    command = ["ctr", "--address", str(address), "--namespace", NAMESPACE, *arguments]
    return subprocess.run(command, capture_output=True, text=True)
