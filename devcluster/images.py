"""Container images as files: packing small ones, and listing the images of an archive.

An image here is a `docker save` archive. `pack` makes one of a few files, always the same bytes for
the same files, with nothing but the standard library. Big ones are built elsewhere.
"""

import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Python and as container images call them
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class BadArchive(Exception):
    """A file that is not an archive of named images."""


def pack(
    archive: Path,
    *,
    name: str,
    files: Mapping[str, Path | bytes],
    links: Mapping[str, str] | None = None,
    entrypoint: Sequence[str] = (),
    command: Sequence[str] = (),
    user: str = "",
) -> Path:
    """Write an image of these files (their paths in the image without a leading slash).

    Everything is executable and belongs to root. `tmp` is writable for all users.
    """
    layer = _layer(files, links or {})
    settings = {"Env": [_PATH], "Entrypoint": [*entrypoint], "Cmd": [*command], "User": user}
    config = {
        "architecture": _MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {key: value for key, value in settings.items() if value},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
    }
    content = json.dumps(config).encode()
    config_name = f"{_sha256(content)}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    partial = archive.with_name(f"{archive.name}.{os.getpid()}.partial")
    with tarfile.open(partial, "w") as target:
        _add(target, "manifest.json", json.dumps(manifest).encode())
        _add(target, config_name, content)
        _add(target, "layer.tar", layer)
    partial.rename(archive)
    return archive


def names_in(archive: Path) -> dict[str, str]:
    """The images of an archive by name, each with what identifies its content."""
    try:
        with tarfile.open(archive) as opened:
            index = _read_index(opened)
    except (OSError, tarfile.TarError) as error:
        raise BadArchive(f"Cannot read {archive} as an image archive: {error}") from error
    if not index:
        raise BadArchive(
            f"{archive} has no named image. Name the image when you write the archive."
        )
    return index


def _read_index(opened: tarfile.TarFile) -> dict[str, str]:
    # Archives may have both files; the first is the one that names its images in full.
    found: dict[str, Any] = {}
    for member in opened:
        if member.name in ("manifest.json", "index.json"):
            file = opened.extractfile(member)
            assert file is not None, "both are plain files"
            found[member.name] = json.load(file)
        if "manifest.json" in found:
            break
    if "manifest.json" in found:
        return {
            name: image["Config"]
            for image in found["manifest.json"]
            for name in image["RepoTags"] or ()
        }
    return {
        image["annotations"]["org.opencontainers.image.ref.name"]: image["digest"]
        for image in found.get("index.json", {}).get("manifests", ())
        if "org.opencontainers.image.ref.name" in image.get("annotations", {})
    }


def _layer(files: Mapping[str, Path | bytes], links: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for directory in sorted({*_parents(files), *_parents(links), "tmp"}):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755
            layer.addfile(entry)
        for path, content in sorted(files.items()):
            _add(layer, path, content if isinstance(content, bytes) else content.read_bytes())
        for path, target in sorted(links.items()):
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            layer.addfile(entry)
    return buffer.getvalue()


def _parents(paths: Mapping[str, Any]) -> set[str]:
    return {str(parent) for path in paths for parent in list(Path(path).parents)[:-1]}


def _add(target: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    target.addfile(entry, io.BytesIO(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
