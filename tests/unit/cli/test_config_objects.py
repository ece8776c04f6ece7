"""ConfigMaps and Secrets from files of this machine."""

from base64 import b64decode

import pytest

from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.job_input import config_objects
from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS


def config_map(*given):
    [made] = config_objects.from_files(CONFIG_MAPS, "--configmap", given)
    return made.manifest


def test_each_file_of_a_directory_is_a_key(tmp_path):
    (tmp_path / "a.conf").write_text("1")
    (tmp_path / "b.bin").write_bytes(b"\xff")
    (tmp_path / "inner").mkdir()
    made = config_map(f"train={tmp_path}")
    assert made["metadata"] == {"name": "train", "namespace": "default"}
    assert made["data"] == {"a.conf": "1"}
    assert b64decode(made["binaryData"]["b.bin"]) == b"\xff"


def test_a_file_is_one_key_and_keys_can_be_named(tmp_path):
    (tmp_path / "a.conf").write_text("1")
    made = config_map(f"train={tmp_path}/a.conf", f"train:other={tmp_path}/a.conf")
    assert made["data"] == {"a.conf": "1", "other": "1"}


def test_a_secret_is_encoded(tmp_path):
    (tmp_path / "token").write_text("hunter2")
    given = [f"db={tmp_path}/token"]
    [made] = config_objects.from_files(SECRETS, "--secret-file", given)
    assert made.manifest["data"] == {"token": "aHVudGVyMg=="}


def test_the_command_line_replaces_what_the_file_has(tmp_path):
    (tmp_path / "a").write_text("new")
    documents = [
        {"kind": "ConfigMap", "metadata": {"name": "train"}, "data": {"a": "old"}},
        {"kind": "Secret", "metadata": {"name": "train"}},
    ]
    given = config_objects.from_files(CONFIG_MAPS, "--configmap", [f"train={tmp_path}/a"])
    found = config_objects.merged(documents, given)
    assert [(each["kind"], each.get("data")) for each in found] == [
        ("ConfigMap", {"a": "new"}),
        ("Secret", None),
    ]


def test_a_key_of_the_command_line_leaves_the_other_keys_of_the_file(tmp_path):
    (tmp_path / "new").write_text("new")
    document = {
        "kind": "Secret",
        "metadata": {"name": "db"},
        "stringData": {"a": "old", "b": "kept"},
        "data": {"c": "a2VwdA=="},
    }
    given = config_objects.from_files(SECRETS, "--secret-file", [f"db:a={tmp_path}/new"])
    [found] = config_objects.merged([document], given)
    assert found["stringData"] == {"b": "kept"}
    assert found["data"] == {"c": "a2VwdA==", "a": "bmV3"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param({"a": "pässword"}, "data.a must be base64", id="not ASCII"),
        pytest.param({".": ""}, "invalid key '.'", id="the directory itself"),
        pytest.param({"..data": ""}, "invalid key '..data'", id="a name of the volume"),
    ],
)
def test_what_the_api_server_refuses(data, message):
    secret = {"kind": "Secret", "metadata": {"name": "db"}, "data": data}
    with pytest.raises(InvalidInput, match=message):
        config_objects.checked(secret, "job.yaml")


@pytest.mark.parametrize("key", [".profile", "a..b", "a."])
def test_keys_may_have_dots(key):
    config_map = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {key: ""}}
    assert config_objects.checked(config_map, "job.yaml")["data"] == {key: ""}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param("train", "expected NAME=PATH", id="no path"),
        pytest.param("=x", "expected NAME=PATH", id="no name"),
        pytest.param("train=", "expected NAME=PATH", id="an empty path"),
        pytest.param("train=none", "cannot read none: No such file", id="no file"),
        pytest.param("train=a b", "a b cannot be a key; give one as NAME:KEY=PATH", id="a key"),
    ],
)
def test_invalid_options(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").touch()
    with pytest.raises(InvalidInput) as raised:
        config_map(given)
    assert str(raised.value).startswith(f"invalid --configmap {given}: ")
    assert message in str(raised.value)
