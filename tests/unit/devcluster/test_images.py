import json
import tarfile

import pytest

from devcluster import images
from devcluster.images import BadArchive

NAME = "localhost/tool:1"


@pytest.fixture
def archive(tmp_path):
    return images.pack(tmp_path / "tool.tar", name=NAME, files={"bin/tool": b"program"})


def layer_of(archive):
    with (
        tarfile.open(archive) as image,
        tarfile.open(fileobj=image.extractfile("layer.tar")) as all_,
    ):
        return {member.name: member for member in all_}


def test_an_image_has_its_files_and_a_place_for_temporary_ones(archive):
    layer = layer_of(archive)
    assert layer.keys() == {"bin", "bin/tool", "tmp"}
    assert layer["bin/tool"].mode == 0o755
    assert layer["tmp"].mode == 0o1777


def test_links_are_links(tmp_path):
    archive = images.pack(
        tmp_path / "a.tar", name=NAME, files={"bin/b": b""}, links={"usr/bin/sh": "/bin/b"}
    )
    assert layer_of(archive)["usr/bin/sh"].linkname == "/bin/b"


def test_the_same_files_make_the_same_image_and_others_make_another(tmp_path, archive):
    again = images.pack(tmp_path / "again.tar", name=NAME, files={"bin/tool": b"program"})
    other = images.pack(tmp_path / "other.tar", name=NAME, files={"bin/tool": b"newer"})
    assert images.names_in(again) == images.names_in(archive)
    assert images.names_in(other) != images.names_in(archive)
    assert images.names_in(other).keys() == {NAME}


def test_how_it_starts_is_in_the_image(tmp_path):
    archive = images.pack(
        tmp_path / "a.tar", name=NAME, files={}, entrypoint=["/tool"], command=["x"], user="7"
    )
    [name] = images.names_in(archive).values()
    with tarfile.open(archive) as image:
        file = image.extractfile(name)
        assert file
        config = json.load(file)["config"]
    assert (config["Entrypoint"], config["Cmd"], config["User"]) == (["/tool"], ["x"], "7")


def write(path, **files):
    with tarfile.open(path, "w") as target:
        for name, content in files.items():
            source = path.parent / name
            source.write_text(json.dumps(content))
            target.add(source, f"{name}.json")
    return path


def test_an_oci_archive_names_its_images_in_another_place(tmp_path):
    reference = {"org.opencontainers.image.ref.name": NAME}
    index = {
        "manifests": [{"digest": "sha256:1", "annotations": reference}, {"digest": "sha256:2"}]
    }
    assert images.names_in(write(tmp_path / "oci.tar", index=index)) == {NAME: "sha256:1"}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="of nothing"),
        pytest.param({"manifest": [{"Config": "a", "RepoTags": None}]}, id="without a tag"),
        pytest.param({"index": {"manifests": [{"digest": "a"}]}}, id="without a reference"),
    ],
)
def test_an_archive_without_names_is_refused(tmp_path, files):
    with pytest.raises(BadArchive, match="has no named image"):
        images.names_in(write(tmp_path / "nameless.tar", **files))


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(BadArchive, match=r"Cannot read .*note\.txt as an image archive"):
        images.names_in(tmp_path / "note.txt")
