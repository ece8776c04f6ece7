"""The images of one node, kept between clusters so that each is imported once.

    ${XDG_CACHE_HOME:-~/.cache}/mpi-operator/nodes/<slot>-<node>/containerd   containerd's own files
                                                                 images.json  what was imported
                                                                 used         containers may be left
                                                                 importing    an import did not end

A slot belongs to one cluster at a time, and so does its store. The containers of an earlier cluster
are removed before the next one sees them. After an import that did not end, containerd may take a
layer for unpacked that is not: then everything is imported again.
"""

import json
import shutil
from pathlib import Path

from devcluster import binaries, containerd, images, slots
from devcluster.process import Process


def unused() -> list[Path]:
    """The stores of slots that no cluster claims."""
    stores = _directory().glob("*-*/")
    return sorted(path for path in stores if not slots.is_claimed(int(path.name.split("-")[0])))


def _directory() -> Path:
    return binaries.cache_directory().parent / "nodes"


class ImageStore:
    """What containerd of one node keeps on disk."""

    def __init__(self, slot: int, node: int) -> None:
        self.directory = _directory() / f"{slot}-{node}"

    @property
    def root(self) -> Path:
        return self.directory / "containerd"

    @property
    def has_old_containers(self) -> bool:
        return self._used.exists()

    def mark_used(self) -> None:
        """Record that there may be containers from now on."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._used.touch()

    def remove_old_containers(self, node: Process) -> None:
        """Delete all containers, with a containerd that runs without the CRI plugin."""
        containerd.remove_containers(node)
        for plugin in ("io.containerd.grpc.v1.cri", "io.containerd.runtime.v2.task"):
            shutil.rmtree(self.root / plugin, ignore_errors=True)
        self._used.unlink(missing_ok=True)

    @property
    def is_incomplete(self) -> bool:
        return self._importing.exists()

    def clear(self) -> None:
        """Delete all images, before containerd starts."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in (self._index, self._used, self._importing):
            path.unlink(missing_ok=True)

    def load(self, node: Process, archive: Path) -> bool:
        """Import an archive; False if all its images were there already."""
        wanted = images.names_in(archive)
        if wanted.items() <= self._imported().items():
            return False
        self._importing.touch()
        containerd.import_image(node, archive)
        self._write(self._imported() | wanted)
        self._importing.unlink()
        return True

    @property
    def _importing(self) -> Path:
        return self.directory / "importing"

    @property
    def _used(self) -> Path:
        return self.directory / "used"

    @property
    def _index(self) -> Path:
        return self.directory / "images.json"

    def _imported(self) -> dict[str, str]:
        if not self._index.exists() or not self.root.exists():
            return {}
        imported: dict[str, str] = json.loads(self._index.read_text())
        return imported

    def _write(self, imported: dict[str, str]) -> None:
        partial = self._index.with_suffix(".partial")
        partial.write_text(json.dumps(imported, indent=2))
        partial.rename(self._index)
