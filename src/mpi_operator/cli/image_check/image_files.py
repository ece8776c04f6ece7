"""The files of an image, from a directory or from an archive, which is never unpacked.

An archive is read once from start to end, so it can come through a pipe. Of most files only the
name is kept; of the few that configure the image, the content too.
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
_MAX_TEXT_BYTES = 4 << 20
_TEXTS = (
    "etc/passwd",
    "etc/nsswitch.conf",
    "etc/ssh/ssh_config",
    "etc/ssh/sshd_config",
    "var/lib/dpkg/status",
)
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_MAX_LINKS = 40


class UnreadableImage(Exception):
    """Not an image that can be read: why, and a command that helps if there is one."""

    def __init__(self, why: str, command: str = "") -> None:
        super().__init__(why)
        self.command = command


@dataclass(frozen=True)
class File:
    """One path of an image."""

    mode: int
    link: str = ""
    """The target of a symbolic link."""
    capability: bytes = b""
    """The file capability, in the format of the kernel."""
    text: str = ""
    """The content, for the few files in `_TEXTS`."""

    @property
    def is_executable(self) -> bool:
        return stat.S_ISREG(self.mode) and bool(self.mode & 0o111)


@dataclass(frozen=True)
class Image:
    """The files of an image by path (without a leading slash), and its settings."""

    files: Mapping[str, File]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def find(self, path: str) -> File | None:
        """The file at a path, following links as a process in the image would."""
        real = self.resolve(path)
        return self.files.get(real) if real is not None else None

    def text(self, path: str) -> str:
        found = self.find(path)
        return found.text if found else ""

    def resolve(self, path: str) -> str | None:
        """The path after following all links; None if no file is there."""
        rest, done = _steps(path), list[str]()
        for _ in range(_MAX_LINKS):
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
    def search_path(self) -> list[str]:
        variables = dict(each.partition("=")[::2] for each in self.settings.get("Env") or ())
        return [place for place in variables.get("PATH", _DEFAULT_PATH).split(":") if place]

    def program(self, name: str) -> str | None:
        """The path of a program on the PATH of the image."""
        places = (f"{place}/{name}" for place in self.search_path)
        return next((place for place in places if self._is_program(place)), None)

    def _is_program(self, path: str) -> bool:
        found = self.find(path)
        return found is not None and found.is_executable


def of_directory(root: Path) -> Image:
    """The image whose root is a directory."""
    return Image(dict(_walk(root)))


def of_archive(stream: IO[bytes]) -> Image:
    """The image in an archive, as `docker save` and `buildah push` write it."""
    try:
        parts = _Parts.read(stream)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UnreadableImage(f"not an image archive: {error}") from error
    layers, settings = parts.layers_and_settings()
    files: dict[str, File] = {}
    for layer in layers:
        _apply(files, layer)
    return Image(files, settings)


@dataclass
class _Parts:
    """The members of an archive, before its manifest says what each one is."""

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
            self.documents[name] = _json(start + content.read(_MAX_TEXT_BYTES))
        elif start:
            self._add_layer(name, _Joined(start, content))

    def _add_layer(self, name: str, content: "_Joined") -> None:
        try:
            self.layers[name] = _layer(content)
        except tarfile.ReadError:
            if content.is_compressed_with_zstd:
                raise UnreadableImage(
                    "this Python cannot read layers that are compressed with zstd",
                    "skopeo copy … docker-archive:image.tar  # or docker save: writes gzip",
                ) from None

    def layers_and_settings(self) -> tuple[list[dict[str, File]], Mapping[str, Any]]:
        """The layers from the lowest to the highest, and the settings."""
        if manifest := self.documents.get("manifest.json"):
            config, names = manifest[0]["Config"], manifest[0]["Layers"]
        else:
            config, names = self._oci()
        settings = self.documents.get(config, {}).get("config") or {}
        try:
            return [self.layers[self._link_target(name)] for name in names], settings
        except KeyError as error:
            raise UnreadableImage(f"layer {error} is not in the archive") from None

    def _oci(self) -> tuple[str, list[str]]:
        index = self.documents.get("index.json")
        while index and "manifests" in index:
            index = self.documents.get(_blob(index["manifests"][0]))
        if not index or "layers" not in index:
            raise UnreadableImage("not an image archive: no manifest.json and no index.json")
        return _blob(index["config"]), [_blob(layer) for layer in index["layers"]]

    def _link_target(self, name: str) -> str:
        return os.path.normpath(self.links.get(name, name))


class _Joined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start, self._rest = start, rest
        self.is_compressed_with_zstd = start.startswith(b"\x28\xb5\x2f\xfd")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        length = size if size >= 0 else len(self._start)
        taken, self._start = self._start[:length], self._start[length:]
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
    if member.isfile() and _has_text(name) and member.size <= _MAX_TEXT_BYTES:
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


def _apply(files: dict[str, File], layer: Mapping[str, File]) -> None:
    """Apply a layer to the ones below: first its whiteouts, then its files."""
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
    is_text = stat.S_ISREG(mode) and _has_text(relative)
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


def _has_text(path: str) -> bool:
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
