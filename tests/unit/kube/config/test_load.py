"""Which configuration is used where none is named."""

from importlib import import_module
from pathlib import Path

import pytest

from mpi_operator.kube.config import ConfigError, load
from tests.unit.kube.config.factories import make_kubeconfig, write


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No configuration of the person who runs the tests."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def kubeconfig(path: Path, server: str) -> Path:
    return write(path, make_kubeconfig(cluster={"server": server}))


def test_an_explicit_file_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "env", "https://env")))
    explicit = kubeconfig(tmp_path / "explicit", "https://explicit")
    assert load(kubeconfig=explicit).server == "https://explicit"


def test_then_the_files_of_the_variable_missing_and_empty_ones_passed_over(tmp_path, monkeypatch):
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    first = kubeconfig(tmp_path / "first", "https://first")
    second = kubeconfig(tmp_path / "second", "https://second")
    monkeypatch.setenv("KUBECONFIG", f":{tmp_path}/missing:{first}::{second}:{first}")
    assert load().server == "https://first"


def test_then_the_file_at_home(tmp_path):
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    assert load().server == "https://home"
    assert load(kubeconfig="~/.kube/config").server == "https://home"


def test_otherwise_the_error_names_the_places_that_were_searched(tmp_path):
    with pytest.raises(ConfigError, match=rf"looked at: {tmp_path}/home/.kube/config"):
        load()


def test_a_broken_file_in_the_list_is_not_passed_over(tmp_path, monkeypatch):
    good = kubeconfig(tmp_path / "good", "https://good")
    monkeypatch.setenv("KUBECONFIG", f"{good}:{write(tmp_path / 'bad', '[')}")
    with pytest.raises(ConfigError, match="bad: not valid YAML"):
        load()


class Pod:
    """Stands for the pod's own configuration."""


@pytest.fixture
def pod(monkeypatch):
    # The package's function `load` hides the module of the same name.
    module = import_module("mpi_operator.kube.config.load")
    monkeypatch.setattr(module, "is_in_cluster", lambda: True)
    monkeypatch.setattr(module, "in_cluster", Pod)


@pytest.mark.usefixtures("pod")
def test_the_pod_is_used_when_there_is_no_kubeconfig():
    assert isinstance(load(), Pod)


@pytest.mark.usefixtures("pod")
def test_a_kubeconfig_wins_over_the_pod(tmp_path):
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    assert load().server == "https://home"


@pytest.mark.usefixtures("pod")
def test_a_context_asked_for_is_never_the_pod():
    with pytest.raises(ConfigError, match="no Kubernetes configuration found"):
        load(context="prod")
