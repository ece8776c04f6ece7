"""The ConfigMap that tells the launcher where its hosts are."""

from collections.abc import Iterable, Mapping

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import CONFIG_MAPS, Manifest

from .hostfile import discover_script, hostfile
from .ownership import metadata
from .settings import Settings
from .volumes import Volume

HOSTFILE = "hostfile"
DISCOVER_SCRIPT = "discover_hosts.sh"

_MOUNT_PATH = "/etc/mpi"  # known to images and to people's commands
HOSTFILE_PATH = f"{_MOUNT_PATH}/{HOSTFILE}"
_MODES = {HOSTFILE: 0o444, DISCOVER_SCRIPT: 0o555}


def config_map(
    job: MPIJob,
    running: Iterable[int],
    settings: Settings,
    annotations: Mapping[str, str] = {},
) -> Manifest:
    """The hosts of the job, and those that run."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": metadata(job, names.config_map(job), labels.object_labels(job), annotations),
        "data": {
            HOSTFILE: hostfile(job, settings),
            DISCOVER_SCRIPT: discover_script(job, running, settings),
        },
    }


def config_volume(job: MPIJob) -> Volume:
    """The same as files."""
    items = [{"key": name, "path": name, "mode": mode} for name, mode in _MODES.items()]
    source = {"configMap": {"name": names.config_map(job), "items": items}}
    return Volume("mpi-job-config", source, _MOUNT_PATH)
