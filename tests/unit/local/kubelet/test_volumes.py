"""Volumes as directories: what is in them, and how it changes."""

import os
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest

from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
)
from mpi_operator.local.kubelet import volumes
from mpi_operator.local.kubelet.config_sources import Missing, Sources
from tests.unit.local.kubelet.manifests import make_pod

OBJECTS = {
    (CONFIG_MAPS, "c"): {"data": {"hostfile": "a\n", "script": "#!/bin/sh\n"}},
    (PERSISTENT_VOLUME_CLAIMS, "unbound"): {"spec": {}},
    (SECRETS, "s"): {"data": {"key": b64encode(b"k\n").decode()}},
}


async def lookup(resource, name):
    return OBJECTS.get((resource, name))


@pytest.fixture
def sources():
    pod = make_pod()
    pod["metadata"]["labels"] = {"b": 'x"y', "a": "1"}
    return Sources(pod, lookup, {"cpu": "1", "memory": "1"})


async def prepared(volume, tmp_path, sources):
    return await volumes.prepare({"name": "v", **volume}, tmp_path, sources)


def contents(directory: Path) -> dict[str, str]:
    names = [entry for entry in directory.iterdir() if not entry.name.startswith("..")]
    return {entry.name: entry.read_text() for entry in names}


async def test_every_key_is_a_file(tmp_path, sources):
    made = await prepared({"configMap": {"name": "c"}}, tmp_path, sources)
    assert contents(made.path) == {"hostfile": "a\n", "script": "#!/bin/sh\n"}
    assert made.read_only


async def test_items_choose_keys_paths_and_modes(tmp_path, sources):
    item = {"key": "script", "path": "bin/go", "mode": 0o555}
    made = await prepared({"configMap": {"name": "c", "items": [item]}}, tmp_path, sources)
    assert [entry.name for entry in made.path.iterdir() if entry.name[:2] != ".."] == ["bin"]
    assert (made.path / "bin/go").stat().st_mode & 0o777 == 0o555


async def test_a_secret_has_its_mode(tmp_path, sources):
    made = await prepared({"secret": {"secretName": "s", "defaultMode": 0o600}}, tmp_path, sources)
    assert (made.path / "key").read_text() == "k\n"
    assert (made.path / "key").stat().st_mode & 0o777 == 0o600


async def test_the_downward_api_as_files(tmp_path, sources):
    items = [
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
    ]
    made = await prepared({"downwardAPI": {"items": items}}, tmp_path, sources)
    assert contents(made.path) == {"name": "p", "labels": 'a="1"\nb="x\\"y"'}


async def test_projected_volumes_are_several_in_one(tmp_path, sources):
    parts = [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]
    made = await prepared({"projected": {"sources": parts}}, tmp_path, sources)
    assert set(contents(made.path)) == {"hostfile", "script", "key"}


async def test_an_empty_directory_may_be_in_memory(tmp_path, sources):
    made = await prepared({"emptyDir": {"medium": "Memory"}}, tmp_path, sources)
    assert list(made.path.iterdir()) == []
    assert made.tmpfs


async def test_a_path_of_the_machine(tmp_path, sources):
    wanted = tmp_path / "new"
    source = {"hostPath": {"path": str(wanted), "type": "DirectoryOrCreate"}}
    assert (await prepared(source, tmp_path, sources)).path == wanted
    assert wanted.is_dir()


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "none"}},
        {"configMap": {"name": "c", "items": [{"key": "none", "path": "x"}]}},
        {"hostPath": {"path": "/there/is/no/such/place"}},
        {"persistentVolumeClaim": {"claimName": "none"}},
        {"persistentVolumeClaim": {"claimName": "unbound"}},
    ],
    ids=["no such object", "no such key", "no such path", "no such claim", "an unbound claim"],
)
async def test_what_is_not_there_may_come(source, tmp_path, sources):
    with pytest.raises(Missing):
        await prepared(source, tmp_path, sources)


async def test_an_optional_object_may_be_missing(tmp_path, sources):
    made = await prepared({"configMap": {"name": "none", "optional": True}}, tmp_path, sources)
    assert contents(made.path) == {}


async def test_an_unknown_kind_is_named(tmp_path, sources):
    source = {"nfs": {"server": "files", "path": "/"}}
    with pytest.raises(volumes.VolumeError, match=r"volume 'v': nfs is not supported"):
        await prepared(source, tmp_path, sources)


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_claim_is_the_host_path_of_its_volume(tmp_path, sources, read_only):
    path = tmp_path / "claims" / "data"
    objects = {
        (PERSISTENT_VOLUME_CLAIMS, "data"): {"spec": {"volumeName": "data-1"}},
        (PERSISTENT_VOLUMES, "data-1"): {
            "spec": {"hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}
        },
    }

    async def find(resource, name):
        return objects.get((resource, name))

    source = {"persistentVolumeClaim": {"claimName": "data", "readOnly": read_only}}
    made = await prepared(source, tmp_path, msgspec.structs.replace(sources, lookup=find))
    assert made == volumes.Volume(path, read_only=read_only)
    assert path.is_dir()


async def test_an_ephemeral_claim_is_a_directory_of_the_pod(tmp_path, sources):
    made = await prepared({"ephemeral": {"volumeClaimTemplate": {}}}, tmp_path, sources)
    assert made.path == tmp_path / "v"
    assert made.path.is_dir()


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "..data"])
async def test_no_file_is_written_outside(path, tmp_path, sources):
    source = {"configMap": {"name": "c", "items": [{"key": "hostfile", "path": path}]}}
    with pytest.raises(volumes.VolumeError, match="leads out of the volume"):
        await prepared(source, tmp_path, sources)


def file(text: str) -> volumes.File:
    return volumes.File(text.encode(), 0o644)


def test_a_change_is_seen_at_once(tmp_path):
    volumes.write(tmp_path / "v", {"a": file("1"), "b": file("1")})
    data = os.open(tmp_path / "v" / "..data", os.O_RDONLY)  # a reader in the middle of reading
    assert volumes.write(tmp_path / "v", {"a": file("2"), "c": file("2")})
    os.close(data)
    assert contents(tmp_path / "v") == {"a": "2", "c": "2"}
    assert len(list((tmp_path / "v").glob("..[0-9]*"))) == 1


def test_the_same_again_changes_nothing(tmp_path):
    volumes.write(tmp_path / "v", {"a": file("1")})
    assert not volumes.write(tmp_path / "v", {"a": file("1")})


def test_whose_changes_matter():
    parts = [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}, {"downwardAPI": {}}]
    volume = {"name": "v", "projected": {"sources": parts}}
    assert volumes.depends_on(volume) == {(CONFIG_MAPS, "c"), (SECRETS, "s")}
