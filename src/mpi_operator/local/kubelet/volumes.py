"""The volumes of a pod, as directories of this machine.

ConfigMaps, Secrets and the downward API become files as a kubelet writes them: the files are links
into a directory that is itself behind a link, so that all keys change at once. A claim is the host
path of the volume that it is bound to.

    volume/hostfile -> ..data/hostfile
           ..data   -> ..1
           ..1/hostfile
"""

import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

import msgspec

from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    Manifest,
    Resource,
)

from .config_sources import Missing, Sources, keys_of, no_key
from .downward_api import field, resource

_DATA = "..data"
_DEFAULT_MODE = 0o644


class VolumeError(Exception):
    """A volume that this machine does not support."""


class File(msgspec.Struct, frozen=True):
    """A file of a volume."""

    content: bytes
    mode: int


class Volume(msgspec.Struct, frozen=True):
    """A volume that is ready to be mounted."""

    path: Path
    read_only: bool = False
    tmpfs: str = ""
    """The options of its tmpfs, if its medium is memory."""


async def prepare(volume: Manifest, directory: Path, sources: Sources) -> Volume:
    """Make a volume. Missing: a source does not exist yet; VolumeError: it is unsupported."""
    kind = kind_of(volume)
    place = directory / volume["name"]
    if kind == "hostPath":
        return _host_path(volume)
    if kind == "persistentVolumeClaim":
        return await _claim(volume, sources)
    if kind in ("emptyDir", "ephemeral"):  # both live as long as the pod
        return _empty(volume, place)
    if kind in _FILES:
        write(place, await files(volume, sources))
        return Volume(place, read_only=True)
    raise VolumeError(
        f"volume {volume['name']!r}: {kind} is not supported on this machine."
        f" Use one of: {', '.join(SUPPORTED)}"
    )


def kind_of(volume: Manifest) -> str:
    """The type of a volume; emptyDir by default."""
    return next((key for key in volume if key != "name"), "emptyDir")


def depends_on(volume: Manifest) -> set[tuple[Resource, str]]:
    """The objects that a volume is made from."""
    kind = kind_of(volume)
    if kind == "projected":
        return set().union(*(depends_on(source) for source in volume[kind].get("sources") or ()))
    if kind == "configMap":
        return {(CONFIG_MAPS, volume[kind].get("name") or "")}
    if kind == "secret":
        return {(SECRETS, _secret_name(volume[kind]))}
    return set()


async def files(volume: Manifest, sources: Sources) -> dict[str, File]:
    """The files of a volume by their paths in it."""
    kind = kind_of(volume)
    return await _FILES[kind](volume[kind], sources, _mode(volume[kind], _DEFAULT_MODE))


async def _config_map_files(source: Manifest, sources: Sources, mode: int) -> dict[str, File]:
    name, optional = source.get("name") or "", bool(source.get("optional"))
    held = await keys_of(sources.lookup, CONFIG_MAPS, name, optional=optional)
    return _chosen(held, source, mode, (CONFIG_MAPS, name))


async def _secret_files(source: Manifest, sources: Sources, mode: int) -> dict[str, File]:
    name, optional = _secret_name(source), bool(source.get("optional"))
    held = await keys_of(sources.lookup, SECRETS, name, optional=optional)
    return _chosen(held, source, mode, (SECRETS, name))


async def _downward_files(source: Manifest, sources: Sources, mode: int) -> dict[str, File]:
    return {
        _inside(item["path"]): File(_field(item, sources).encode(), item.get("mode") or mode)
        for item in source.get("items") or ()
    }


async def _projected_files(source: Manifest, sources: Sources, mode: int) -> dict[str, File]:
    result: dict[str, File] = {}
    for part in source.get("sources") or ():
        kind = kind_of(part)
        if kind not in PROJECTED:
            raise VolumeError(f"projected volume: {kind} is not supported on this machine")
        result.update(await _FILES[kind](part[kind], sources, mode))
    return result


_FILES: Mapping[str, Callable[[Manifest, Sources, int], Awaitable[dict[str, File]]]] = {
    "configMap": _config_map_files,
    "secret": _secret_files,
    "downwardAPI": _downward_files,
    "projected": _projected_files,
}
PROJECTED = ("configMap", "secret", "downwardAPI")
SUPPORTED = ("emptyDir", "ephemeral", "hostPath", "persistentVolumeClaim", *_FILES)


def _chosen(
    held: Mapping[str, bytes], source: Manifest, mode: int, owner: tuple[Resource, str]
) -> dict[str, File]:
    if source.get("items") is None:
        return {_inside(key): File(content, mode) for key, content in held.items()}
    chosen = {}
    for item in source["items"]:
        if item["key"] in held:
            content = held[item["key"]]
            chosen[_inside(item["path"])] = File(content, item.get("mode") or mode)
        elif not source.get("optional"):
            raise no_key(*owner, item["key"])
    return chosen


def _field(item: Manifest, sources: Sources) -> str:
    if reference := item.get("fieldRef"):
        return field(sources.pod, reference["fieldPath"])
    return resource(sources.pod, {}, item["resourceFieldRef"], sources.machine)


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or parts[0].startswith(".."):
        raise VolumeError(f"invalid path {path!r}: it leads out of the volume")
    return path


def _mode(source: Manifest, default: int) -> int:
    given = source.get("defaultMode")
    return default if given is None else int(given)


def _secret_name(source: Manifest) -> str:
    # A projected secret has `name`.
    return str(source.get("secretName") or source.get("name") or "")


def _empty(volume: Manifest, place: Path) -> Volume:
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    source = volume.get("emptyDir") or {}
    return Volume(place, tmpfs="mode=0777" if source.get("medium") == "Memory" else "")


def _host_path(volume: Manifest) -> Volume:
    source = volume["hostPath"]
    path, kind = Path(source["path"]), source.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    if not path.exists():
        raise Missing(f"volume {volume['name']!r}: {path} does not exist on this machine")
    return Volume(path)


async def _claim(volume: Manifest, sources: Sources) -> Volume:
    source = volume["persistentVolumeClaim"]
    name = source["claimName"]
    claim = await sources.lookup(PERSISTENT_VOLUME_CLAIMS, name)
    if claim is None:
        raise Missing(f'persistentvolumeclaim "{name}" not found')
    bound_to = (claim.get("spec") or {}).get("volumeName") or ""
    bound = await sources.lookup(PERSISTENT_VOLUMES, bound_to) if bound_to else None
    if bound is None:
        raise Missing(f'persistentvolumeclaim "{name}" is not bound to a volume')
    found = _host_path({"name": volume["name"], "hostPath": bound["spec"]["hostPath"]})
    return Volume(found.path, read_only=bool(source.get("readOnly")))


def write(place: Path, wanted: Mapping[str, File]) -> bool:
    """Write the files of a volume, all at once; whether anything changed."""
    place.mkdir(parents=True, exist_ok=True)
    current = _current(place)
    if current is not None and _stored(place / current) == wanted:
        return False
    fresh = f"..{int(current[2:]) + 1 if current else 1}"
    for directory in {(place / fresh / path).parent for path in wanted} | {place / fresh}:
        directory.mkdir(parents=True, exist_ok=True)
    for path, file in wanted.items():
        write_file(place / fresh / path, file.content, file.mode)
    _point(place / _DATA, fresh)
    _link_names(place, {PurePosixPath(path).parts[0] for path in wanted})
    if current:
        shutil.rmtree(place / current, ignore_errors=True)
    return True


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file that has this mode, whatever umask this process has."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(path, flags, mode), "wb", buffering=0) as file:
        os.fchmod(file.fileno(), mode)
        view = memoryview(content)
        while view:
            view = view[file.write(view) :]


def _current(place: Path) -> str | None:
    try:
        return os.readlink(place / _DATA)
    except OSError:
        return None


def _stored(directory: Path) -> dict[str, File]:
    return {
        str(path.relative_to(directory)): File(path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in directory.rglob("*")
        if path.is_file()
    }


def _link_names(place: Path, names: set[str]) -> None:
    for name in names:
        _point(place / name, f"{_DATA}/{name}")
    for entry in place.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()


def _point(link: Path, target: str) -> None:
    """Create or replace a link atomically."""
    with suppress(FileExistsError):
        link.symlink_to(target)
        return
    partial = link.with_name(f"..new-{link.name}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.rename(link)
