"""The images that a node keeps between clusters."""

from pathlib import Path

import pytest

from devcluster import containerd, image_store, images
from devcluster.containerd import ImportFailed
from devcluster.image_store import ImageStore
from devcluster.process import Process


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The store of a node whose containerd has written something."""
    monkeypatch.setattr(image_store, "_directory", lambda: tmp_path / "nodes")
    store = ImageStore(slot=0, node=1)
    (store.root / "content").mkdir(parents=True)
    (store.root / "content/layer").touch()
    return store


def packed(directory: Path, name: str) -> Path:
    """The archive of an image."""
    files = {"file": name.encode()}
    return images.pack(directory / f"{name}.tar", name=f"localhost/{name}:1", files=files)


@pytest.fixture
def node(monkeypatch) -> Process:
    """A node whose containerd imports everything but what is broken."""

    def import_image(node: Process, archive: Path) -> None:
        if archive.name == "broken.tar":
            raise ImportFailed("the process was killed")

    monkeypatch.setattr(containerd, "import_image", import_image)
    return None  # type: ignore[return-value] # only containerd would use it


def test_an_image_is_imported_once(store: ImageStore, tmp_path: Path, node: Process):
    archive = packed(tmp_path, "one")
    assert store.load(node, archive)
    assert not store.load(node, archive)
    assert not store.is_incomplete


def test_everything_is_imported_again_after_an_import_that_did_not_end(
    store: ImageStore, tmp_path: Path, node: Process
):
    archive = packed(tmp_path, "one")
    assert store.load(node, archive)
    with pytest.raises(ImportFailed):
        store.load(node, packed(tmp_path, "broken"))
    assert store.is_incomplete

    store.clear()

    assert not store.is_incomplete
    assert list(store.root.iterdir()) == []
    assert store.load(node, archive)
