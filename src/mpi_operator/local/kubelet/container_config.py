"""The configuration of a container: its command, its variables, its mounts."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.remote_exec import stand_ins
from mpi_operator.local.sandbox.process_tree import CONTAINER_VARIABLE, RUN_VARIABLE
from mpi_operator.local.sandbox.protocol import Command, Mount
from mpi_operator.mpi_variables import MPIS, OPEN_MPI

from . import gpus, host_files
from .capacity import gpus_of
from .container_env import (
    BIN,
    HOME,
    MPI,
    command_line,
    container_env,
    declared_variables,
    expanded,
)
from .context import PodContext
from .network_choice import network_variables
from .volumes import VolumeError

POD_VARIABLE = "MPI_OPERATOR_POD"

# A container with one of these is a launcher.
_HOSTFILE_VARIABLES = tuple(name for mpi in MPIS.values() for name in mpi.hostfile)
_TERMINATION_LOG = "/dev/termination-log"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_HOSTS = "/etc/hosts"


class ContainerConfig(msgspec.Struct, frozen=True):
    """All that is needed to start a container."""

    command: Command
    mounts: tuple[Mount, ...]
    identity: Mapping[str, str]
    """Variables that identify it and its resources; every process in it has them."""
    is_sshd: bool = False
    """On a cluster it would run an sshd. Here it only waits."""
    gives_input: bool = False
    """Its standard input goes to rank 0, and not through its mpirun."""


async def container_config(context: PodContext, container: Manifest) -> ContainerConfig:
    """The configuration of a container; Missing if something it refers to does not exist yet."""
    node = context.node
    own = await declared_variables(container, context.sources)
    gpu_variables = _gpus(context, container)
    identity = _identity(context, container, own) | gpu_variables
    if context.shared_memory is not None:
        identity |= shared_memory_variables(context.shared_memory, own)
    machine = node.environment if gpu_variables else _without_gpus(node.environment, own)
    env = container_env(machine, own, context.tools, identity)
    directory = expanded(container.get("workingDir") or str(node.working_directory), own)
    words = command_line(container, own)
    argv = stand_ins.without_sshd(words, f"{BIN}/sshd")
    runs_sshd = stand_ins.is_sshd(words) or argv != words
    mounts = _mounts(context, container, own, directory)
    gives_input = False
    if stand_ins.is_open_mpi_launcher(own):
        env |= network_variables(words, env, directory, context.tools)
        if stand_ins.is_mpirun(argv):  # a script may read its input, and what its mpirun says
            gives_input = node.stdio.rank_0 is not None and stand_ins.can_give_input(argv, own)
            env = {**OPEN_MPI.failures, **env}
        if gives_input and node.stdio.is_empty:
            argv = stand_ins.without_input(argv)
        elif gives_input:
            env[stand_ins.RANK_AGENT] = f"{BIN}/{stand_ins.INPUT_AGENT}"
        if node.is_plain:
            argv, env = stand_ins.with_mpirun(argv, env, MPI)
    command = Command(argv, env, directory)
    return ContainerConfig(command, tuple(mounts), identity, runs_sshd, gives_input)


def _identity(context: PodContext, container: Manifest, own: Mapping[str, str]) -> dict[str, str]:
    return {
        "HOSTNAME": own.get("HOSTNAME", context.hostname),
        RUN_VARIABLE: str(context.node.directory),
        POD_VARIABLE: str(context.key),
        CONTAINER_VARIABLE: container["name"],
    }


def shared_memory_variables(directory: Path, declared: Mapping[str, str]) -> dict[str, str]:
    """Variables that make MPIs share memory in this directory, unless the container sets them."""
    names = (name for mpi in MPIS.values() for name in mpi.shared_memory)
    return {name: str(directory) for name in names if name not in declared}


def _gpus(context: PodContext, container: Manifest) -> dict[str, str]:
    """The GPUs of a container: containers get those of their pod in order."""
    wanted = gpus_of(container)
    if not wanted:
        return {}
    names = [each["name"] for each in context.containers]
    earlier = context.containers[: names.index(container["name"])]
    first = sum(map(gpus_of, earlier))
    return gpus.variables(context.gpus[first : first + wanted])


def _without_gpus(machine: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
    """What a container that requests no GPUs inherits from this machine.

    Hydra passes the launcher's variables to ranks. So a launcher must not have those that say which
    GPUs are visible: each worker has its own.
    """
    if not any(name in own for name in _HOSTFILE_VARIABLES):
        return machine
    return {name: value for name, value in machine.items() if name not in gpus.VARIABLES}


def _mounts(
    context: PodContext, container: Manifest, own: Mapping[str, str], directory: str
) -> list[Mount]:
    mounts = [_mount(context, mount, own) for mount in container.get("volumeMounts") or ()]
    targets = {mount.target for mount in mounts}
    termination = Mount(
        _empty_file(context.termination_log(container["name"])),
        container.get("terminationMessagePath") or _TERMINATION_LOG,
    )
    mounts += [Mount(context.home, HOME), termination]
    if not context.node.is_plain:
        context.node.mountpoints.make(targets)
        ours = (
            Mount(context.directory / "shm", _SHARED_MEMORY),
            Mount(context.node.dns.file(context.key.namespace), _HOSTS),
        )
        mounts += [mount for mount in ours if mount.target not in targets]
    if not _exists(directory, targets):
        # An image would have it. Here the directory of the job replaces it.
        mounts.append(Mount(context.node.working_directory, directory))
    return _as_words(mounts, context, container) if context.node.is_plain else mounts


def _as_words(mounts: list[Mount], context: PodContext, container: Manifest) -> list[Mount]:
    """Mounts whose sources may replace their targets in the text of a shell."""
    links = context.root / "links"
    return [
        msgspec.structs.replace(
            mount,
            source=host_files.as_word(mount.source, links, f"{container['name']}-{number}"),
        )
        for number, mount in enumerate(mounts)
    ]


def _mount(context: PodContext, mount: Manifest, own: Mapping[str, str]) -> Mount:
    volume = context.volumes.get(mount["name"])
    if volume is None:
        raise VolumeError(f"volumeMounts: volume {mount['name']!r} not found")
    inner = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", own)
    source = volume.path / inner
    if volume.path.resolve() not in (source.resolve(), *source.resolve().parents):
        raise VolumeError(f"volume {mount['name']!r}: subPath {inner!r} leads out of the volume")
    if inner and not source.exists():
        source.mkdir(parents=True)
    read_only = volume.read_only or bool(mount.get("readOnly"))
    return Mount(source, mount["mountPath"].rstrip("/") or "/", read_only)


def _exists(directory: str, targets: set[str]) -> bool:
    path = Path(directory)
    return path.is_dir() or any(str(each) in targets for each in (path, *path.parents))


def _empty_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    path.chmod(0o666)
    return path
