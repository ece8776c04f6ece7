"""The network of pods: a bridge in each node, addresses from the node's range."""

import json
from pathlib import Path

# Where Debian and where most others put the plugins.
_PLUGIN_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
_PLUGINS = ("bridge", "host-local", "loopback")


def plugin_directory() -> Path | None:
    """The directory of the plugins that we use, if they are installed."""
    for directory in _PLUGIN_DIRECTORIES:
        if all((directory / plugin).exists() for plugin in _PLUGINS):
            return directory
    return None


def configure(directory: Path, *, pod_range: str) -> None:
    """Write the configuration that containerd reads."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "10-bridge.conflist").write_text(json.dumps(_configuration(pod_range), indent=2))


def _configuration(pod_range: str) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,  # a pod may reach itself through a service
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": pod_range}]],
            "dataDir": "/run/cni",  # forgotten in a power loss, as the pods are
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
