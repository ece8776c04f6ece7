"""The files of an image, wherever they are: a directory tree, or an archive that is never unpacked.

An archive is read once, from the first byte to the last, so that it may come through a pipe. Kept
are the names of all files, and the contents of the few that say how the image is set up.
"""

import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

_CAPABILITY = "security.capability"
_LARGEST_TEXT = 4 << 20
_TEXTS = (
    "etc/passwd",
    "etc/nsswitch.conf",
    "etc/ssh/ssh_config",
    "etc/ssh/sshd_config",
    "var/lib/dpkg/status",
)
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_MOST_LINKS = 40


class UnreadableImage(Exception):
    """Something that is no image; the sentence says what to give instead."""


@dataclass(frozen=True)
class File:
    """What is known about one path."""

    mode: int
    link: str = ""
    """Where a symbolic link points to."""
    capability: bytes = b""
    """The file capability, as the kernel stores it."""
    text: str = ""
    """The content, where it is one of the few that matter."""

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_executable(self) -> bool:
        return stat.S_ISREG(self.mode) and bool(self.mode & 0o111)


@dataclass(frozen=True)
class Image:
    """The files of an image by path (without a leading slash), and its settings."""

    files: Mapping[str, File]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def find(self, path: str) -> File | None:
        """The file at a path, through links, as a process in the image would find it."""
        real = self.resolve(path)
        return self.files.get(real) if real is not None else None

    def text(self, path: str) -> str:
        found = self.find(path)
        return found.text if found else ""

    def resolve(self, path: str) -> str | None:
        """The path of the file itself; None if there is none."""
        rest, done = _steps(path), list[str]()
        for _ in range(_MOST_LINKS):
            while rest:
                step = rest.pop(0)
                if step == "..":
                    done = done[:-1]
                    continue
                done.append(step)
                found = self.files.get("/".join(done))
                if found is not None and found.link:
                    start = [] if found.link.startswith("/") else done[:-1]
                    rest, done = [*start, *_steps(found.link), *rest], []
                    break
            else:
                joined = "/".join(done)
                return joined if joined in self.files else None
        return None

    @property
    def variables(self) -> dict[str, str]:
        pairs = (variable.partition("=") for variable in self.settings.get("Env") or ())
        return {name: value for name, _, value in pairs}

    @property
    def search_path(self) -> list[str]:
        default = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return [place for place in self.variables.get("PATH", default).split(":") if place]

    def program(self, name: str) -> str | None:
        """Where a program is found on the PATH of the image."""
        places = (f"{place}/{name}" for place in self.search_path)
        return next((place for place in places if self._is_program(place)), None)

    def _is_program(self, path: str) -> bool:
        found = self.find(path)
        return found is not None and found.is_executable


def of_directory(root: Path) -> Image:
    """The image whose files are below a directory."""
    return Image(dict(_walk(root)))


def of_archive(stream: IO[bytes]) -> Image:
    """The image in an archive, as `docker save` and `buildah push` write it."""
    try:
        parts = _Parts.read(stream)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UnreadableImage(f"this is no image archive: {error}") from error
    layers, settings = parts.description()
    files: dict[str, File] = {}
    for layer in layers:
        _lay_over(files, layer)
    return Image(files, settings)


@dataclass
class _Parts:
    """The members of an archive, before it is known which is what."""

    documents: dict[str, Any] = field(default_factory=dict)
    layers: dict[str, dict[str, File]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, stream: IO[bytes]) -> "_Parts":
        parts = cls()
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                parts._add(archive, member)
        return parts

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = member.name.removeprefix("./")
        if member.issym():  # docker save writes a layer once, and links to it
            self.links[name] = str(PurePosixPath(name).parent / member.linkname)
        content = archive.extractfile(member) if member.isfile() else None
        if content is None:
            return
        start = content.read(1024)
        if start[:1] in (b"{", b"["):
            self.documents[name] = _json(start + content.read(_LARGEST_TEXT))
        elif start:
            self._add_layer(name, _Joined(start, content))

    def _add_layer(self, name: str, content: "_Joined") -> None:
        try:
            self.layers[name] = _layer(content)
        except tarfile.ReadError:
            if content.is_compressed_with_zstd:
                raise UnreadableImage(
                    "its layers are compressed with zstd, which this Python cannot read; write it"
                    " again with `skopeo copy … docker-archive:image.tar` or `docker save`"
                ) from None

    def description(self) -> tuple[list[dict[str, File]], Mapping[str, Any]]:
        """The layers from the lowest to the highest, and the settings."""
        if manifest := self.documents.get("manifest.json"):
            config, names = manifest[0]["Config"], manifest[0]["Layers"]
        else:
            config, names = self._oci()
        settings = self.documents.get(config, {}).get("config") or {}
        try:
            return [self.layers[self._followed(name)] for name in names], settings
        except KeyError as error:
            raise UnreadableImage(f"the layer {error} is not in the archive") from None

    def _oci(self) -> tuple[str, list[str]]:
        index = self.documents.get("index.json")
        while index and "manifests" in index:
            index = self.documents.get(_blob(index["manifests"][0]))
        if not index or "layers" not in index:
            raise UnreadableImage("there is neither a manifest.json nor an index.json in it")
        return _blob(index["config"]), [_blob(layer) for layer in index["layers"]]

    def _followed(self, name: str) -> str:
        return os.path.normpath(self.links.get(name, name))


class _Joined(io.RawIOBase):
    """A stream of which the beginning has been read."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start, self._rest = start, rest
        self.is_compressed_with_zstd = start.startswith(b"\x28\xb5\x2f\xfd")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        taken, self._start = (
            (self._start, b"") if size < 0 else (self._start[:size], self._start[size:])
        )
        wanted = size if size < 0 else size - len(taken)
        return taken + (self._rest.read(wanted) if wanted else b"")


def _layer(content: _Joined) -> dict[str, File]:
    files: dict[str, File] = {}
    with tarfile.open(fileobj=content, mode="r|*") as layer:
        for member in layer:
            name = os.path.normpath(member.name).lstrip("/")
            if member.islnk():
                target = os.path.normpath(member.linkname).lstrip("/")
                files[name] = files.get(target, File(stat.S_IFREG | member.mode))
            else:
                files[name] = _file(layer, member, name)
    return files


def _file(layer: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> File:
    header = member.pax_headers.get(f"SCHILY.xattr.{_CAPABILITY}", "")
    text = ""
    if member.isfile() and _is_telling(name) and member.size <= _LARGEST_TEXT:
        content = layer.extractfile(member)
        text = content.read().decode(errors="replace") if content else ""
    return File(
        _type(member) | member.mode,
        link=member.linkname if member.issym() else "",
        capability=header.encode(errors="surrogateescape"),
        text=text,
    )


def _type(member: tarfile.TarInfo) -> int:
    if member.isdir():
        return stat.S_IFDIR
    return stat.S_IFLNK if member.issym() else stat.S_IFREG if member.isfile() else 0


def _lay_over(files: dict[str, File], layer: Mapping[str, File]) -> None:
    """Put a layer onto those below it: first what it hides, then what it has."""
    for path in layer:
        directory, _, name = path.rpartition("/")
        if name == _OPAQUE:
            _hide(files, directory, itself=False)
        elif name.startswith(_WHITEOUT):
            hidden = name.removeprefix(_WHITEOUT)
            _hide(files, f"{directory}/{hidden}" if directory else hidden)
    files.update((path, file) for path, file in layer.items() if _WHITEOUT not in path)


def _hide(files: dict[str, File], path: str, *, itself: bool = True) -> None:
    for each in [each for each in files if each.startswith(f"{path}/")]:
        del files[each]
    if itself:
        files.pop(path, None)


def _walk(root: Path) -> Iterator[tuple[str, File]]:
    for directory, names, files in os.walk(root):
        for name in [*names, *files]:
            path = Path(directory, name)
            relative = path.relative_to(root).as_posix()
            yield relative, _file_on_disk(path, relative)


def _file_on_disk(path: Path, relative: str) -> File:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return File(mode, link=str(path.readlink()))
    is_text = stat.S_ISREG(mode) and _is_telling(relative)
    return File(
        mode,
        capability=_capability_on_disk(path),
        text=path.read_text(errors="replace") if is_text else "",
    )


def _capability_on_disk(path: Path) -> bytes:
    try:
        return os.getxattr(path, _CAPABILITY, follow_symlinks=False)
    except OSError:
        return b""


def _is_telling(path: str) -> bool:
    return path in _TEXTS or (path.startswith("etc/ssh/") and path.endswith(".conf"))


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _blob(described: Mapping[str, str]) -> str:
    return "blobs/" + described["digest"].replace(":", "/")
