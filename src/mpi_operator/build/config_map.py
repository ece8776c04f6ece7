"""The ConfigMap with the hostfile and the scripts of both roles."""

from collections.abc import Iterable, Mapping

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.kube.resources import CONFIG_MAPS, Manifest

from . import exec_shell, remote_shell, scripts
from .hostfile import discover_script, hostfile
from .ownership import metadata
from .settings import Settings
from .volumes import Volume

HOSTFILE = "hostfile"
DISCOVER_SCRIPT = "discover_hosts.sh"

HOSTFILE_PATH = f"{scripts.PATH}/{HOSTFILE}"  # images and users' commands rely on it
_HOSTS = {HOSTFILE: 0o444, DISCOVER_SCRIPT: 0o555}
_LAUNCHER_SCRIPTS = {scripts.REMOTE_SHELL: 0o555}
_KUBEXEC = {scripts.KUBEXEC: 0o555}  # in workers, too: Open MPI looks for it in each pod
_IDLE = {scripts.IDLE: 0o555}
_WORKER_SCRIPTS = dict.fromkeys(scripts.NAMES, 0o555)


def config_map(
    job: MPIJob,
    running: Iterable[int],
    settings: Settings,
    annotations: Mapping[str, str] = {},
    workers: Iterable[int] | None = None,
) -> Manifest:
    """The hosts of the job, those of them that are running, and the scripts."""
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": metadata(job, names.config_map(job), labels.object_labels(job), annotations),
        "data": {
            HOSTFILE: hostfile(job, settings, workers),
            DISCOVER_SCRIPT: discover_script(job, running, settings),
            **_scripts(job, settings),
        },
    }


def _scripts(job: MPIJob, settings: Settings) -> dict[str, str]:
    if uses_exec(job):
        return exec_shell.scripts_of(job)
    used = scripts.NAMES if remote_shell.is_used(job, settings) else ()
    return {name: scripts.text(name) for name in used}


def launcher_volume(job: MPIJob, settings: Settings) -> Volume:
    """The files for the launcher."""
    if uses_exec(job):
        return _volume(job, _HOSTS | _KUBEXEC)
    used = _LAUNCHER_SCRIPTS if remote_shell.is_used(job, settings) else {}
    return _volume(job, _HOSTS | used)


def worker_volume(job: MPIJob) -> Volume:
    """The files for workers: only the scripts, which do not change when hosts come and go."""
    return _volume(job, _KUBEXEC | _IDLE if uses_exec(job) else _WORKER_SCRIPTS)


def _volume(job: MPIJob, modes: Mapping[str, int]) -> Volume:
    items = [{"key": name, "path": name, "mode": mode} for name, mode in modes.items()]
    source = {"configMap": {"name": names.config_map(job), "items": items}}
    return Volume("mpi-job-config", source, scripts.PATH)
