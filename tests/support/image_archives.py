"""Images for tests: trees of files, and the archives that tools write of them."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Tree = Mapping[str, str | bytes | None]
"""Paths with their contents: None is a directory, "-> x" a link, bytes a program."""

PATH = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}


def usable(changes: Tree | None = None) -> dict[str, str | bytes | None]:
    """The tree of an image that every job can use, less or plus some files."""
    tree: dict[str, str | bytes | None] = {
        "bin": "-> usr/bin",
        "usr/bin/sh": b"",
        "usr/bin/sleep": b"",
        "usr/bin/ssh": b"",
        "usr/bin/mpirun": "-> /etc/alternatives/mpirun",
        "etc/alternatives/mpirun": "-> /usr/bin/mpirun.openmpi",
        "usr/bin/mpirun.openmpi": b"",
        "usr/sbin/sshd": b"",
        "run/sshd": None,
        "etc/passwd": "root:x:0:0::/root:/bin/sh\nmpi:x:1000:1000::/home/mpi:/bin/sh\n",
        "etc/nsswitch.conf": "passwd: files self\ngroup: files\n",
        "etc/ssh/ssh_config": "Port 2222\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n",
        "etc/ssh/sshd_config": "Port 2222\nStrictModes no\nHostKey /root/.ssh/id_rsa\n",
        "var/lib/dpkg/status": "Package: openmpi-bin\nStatus: ok\nVersion: 5.0.7-1\n\n",
    }
    return tree | dict(changes or {})


def write_tree(root: Path, tree: Tree) -> Path:
    """The files of an image in a directory."""
    with tarfile.open(fileobj=io.BytesIO(layer(tree))) as packed:
        packed.extractall(root, filter="fully_trusted")
    return root


def layer(tree: Tree, capabilities: Mapping[str, bytes] | None = None) -> bytes:
    """A layer with these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path, content in tree.items():
            entry, data = _entry(path, content)
            if capability := (capabilities or {}).get(path):
                text = capability.decode(errors="surrogateescape")
                entry.pax_headers = {"SCHILY.xattr.security.capability": text}
            packed.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def docker_archive(*layers: bytes, settings: Mapping[str, Any] = PATH) -> bytes:
    """As `docker save` of old, and `buildah push docker-archive:…`."""
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["x:1"], "Layers": names}]
    return _packed(
        # The order is not guaranteed, so a reader must not need the manifest first.
        dict(zip(names, layers, strict=True))
        | {"config.json": _json({"config": settings}), "manifest.json": _json(manifest)}
    )


def oci_archive(*layers: bytes, settings: Mapping[str, Any] = PATH) -> bytes:
    """An OCI layout, with compressed layers."""
    blobs = [gzip.compress(each) for each in layers]
    config = _json({"config": settings})
    manifest = _json({"config": _described(config), "layers": [_described(blob) for blob in blobs]})
    files = {_place(blob): blob for blob in [*blobs, config, manifest]}
    return _packed(files | {"index.json": _json({"manifests": [_described(manifest)]})})


def _entry(path: str, content: str | bytes | None) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(path)
    if content is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        return entry, b""
    if isinstance(content, str) and content.startswith("-> "):
        entry.type, entry.linkname = tarfile.SYMTYPE, content.removeprefix("-> ")
        return entry, b""
    entry.mode = 0o755 if isinstance(content, bytes) else 0o644
    data = content if isinstance(content, bytes) else content.encode()
    entry.size = len(data)
    return entry, data


def _packed(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _json(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    return json.dumps(value).encode()


def _described(blob: bytes) -> dict[str, str]:
    return {"digest": f"sha256:{hashlib.sha256(blob).hexdigest()}"}


def _place(blob: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"
