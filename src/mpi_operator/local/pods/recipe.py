"""What a container needs to run: its command, its variables, its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.host import RUN_VARIABLE
from mpi_operator.local.sandbox.keeper import CONTAINER_VARIABLE
from mpi_operator.local.sandbox.protocol import Command, Mount
from mpi_operator.local.volumes import VolumeError

from . import one_daemon, shared_memory
from .capacity import gpus_of
from .context import PodContext
from .environment import Surroundings, command_line, declared, expanded
from .outfit import BIN, HOME, MPI, gpu_environment, outfitted
from .sshd import is_sshd, without_sshd

POD_VARIABLE = "MPI_OPERATOR_POD"

_TERMINATION_LOG = "/dev/termination-log"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_HOSTS = "/etc/hosts"


@dataclass(frozen=True)
class Recipe:
    """All that is needed to start a container."""

    command: Command
    mounts: tuple[Mount, ...]
    identity: Mapping[str, str]
    """The variables that say who it is and what is its own; whatever runs in it has these."""
    is_sshd: bool = False
    """It would listen to ssh on a cluster. Here it only waits."""


async def recipe(context: PodContext, container: Manifest) -> Recipe:
    """The recipe of a container; Missing if something that it is made from is not there yet."""
    place = context.place
    own = await declared(container, Surroundings(context.pod, context.lookup, place.machine.texts))
    identity = _identity(context, container, own) | _gpus(context, container)
    if context.memory is not None:
        identity |= shared_memory.variables(context.memory, own)
    env = outfitted(place.environment, own, context.tools, identity)
    directory = expanded(container.get("workingDir") or str(place.working_directory), own)
    words = command_line(container, own)
    argv = without_sshd(words, f"{BIN}/sshd")
    listens = is_sshd(words) or argv != words
    mounts = _mounts(context, container, own, directory)
    if place.is_plain and one_daemon.is_launcher(own):
        argv, env = one_daemon.redirected(argv, env, MPI)
    return Recipe(Command(argv, env, directory), tuple(mounts), identity, listens)


def _identity(context: PodContext, container: Manifest, own: Mapping[str, str]) -> dict[str, str]:
    return {
        "HOSTNAME": own.get("HOSTNAME", context.hostname),
        RUN_VARIABLE: str(context.place.directory),
        POD_VARIABLE: str(context.key),
        CONTAINER_VARIABLE: container["name"],
    }


def _gpus(context: PodContext, container: Manifest) -> dict[str, str]:
    """The GPUs of a container: those of the pod, dealt in the order of its containers."""
    wanted = gpus_of(container)
    if not wanted:
        return {}
    names = [each["name"] for each in context.containers]
    earlier = context.containers[: names.index(container["name"])]
    first = sum(map(gpus_of, earlier))
    return gpu_environment(context.gpus[first : first + wanted])


def _mounts(
    context: PodContext, container: Manifest, own: Mapping[str, str], directory: str
) -> list[Mount]:
    mounts = [_mount(context, mount, own) for mount in container.get("volumeMounts") or ()]
    targets = {mount.target for mount in mounts}
    words = Mount(
        _empty_file(context.termination_log(container["name"])),
        container.get("terminationMessagePath") or _TERMINATION_LOG,
    )
    mounts += [Mount(context.home, HOME), words]
    if not context.place.is_plain:
        context.place.mountpoints.make(targets)
        ours = (
            Mount(context.directory / "shm", _SHARED_MEMORY),
            Mount(context.place.hosts.file(context.key.namespace), _HOSTS),
        )
        mounts += [mount for mount in ours if mount.target not in targets]
    if not _is_there(directory, targets):
        # An image would have it. Here the directory of the job stands in for the image.
        mounts.append(Mount(context.place.working_directory, directory))
    return mounts


def _mount(context: PodContext, mount: Manifest, own: Mapping[str, str]) -> Mount:
    volume = context.volumes.get(mount["name"])
    if volume is None:
        raise VolumeError(f"volumeMounts: there is no volume {mount['name']!r}")
    inner = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", own)
    source = volume.path / inner
    if volume.path.resolve() not in (source.resolve(), *source.resolve().parents):
        raise VolumeError(f"volume {mount['name']!r}: subPath {inner!r} is outside of it")
    if inner and not source.exists():
        source.mkdir(parents=True)
    read_only = volume.read_only or bool(mount.get("readOnly"))
    return Mount(source, mount["mountPath"].rstrip("/") or "/", read_only)


def _is_there(directory: str, targets: set[str]) -> bool:
    path = Path(directory)
    return path.is_dir() or any(str(each) in targets for each in (path, *path.parents))


def _empty_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    path.chmod(0o666)
    return path
