import base64
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from devcluster import pki
from devcluster.users import Users


@pytest.fixture
def users(tmp_path: Path) -> Users:
    keys = pki.create(tmp_path / "pki", addresses=["127.0.0.1"])
    return Users(tmp_path / "users", keys, "127.0.0.1", 6443)


def subject_in(path: Path) -> str:
    """Who the certificate in a kubeconfig says its bearer is."""
    user = yaml.safe_load(path.read_text())["users"][0]["user"]
    certificate = base64.b64decode(user["client-certificate-data"])
    return x509.load_pem_x509_certificate(certificate).subject.rfc4514_string()


def test_a_kubeconfig_names_the_server_and_carries_what_it_takes(users):
    content = yaml.safe_load(users.kubeconfig("alice").read_text())
    cluster = content["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == users.ca.read_bytes()
    assert content["contexts"][0]["context"]["user"] == content["users"][0]["name"] == "alice"
    assert content["current-context"] == content["contexts"][0]["name"]


@pytest.mark.parametrize(
    ("user", "groups", "subject"),
    [
        pytest.param("admin", None, "CN=admin,O=system:masters", id="the admin may do everything"),
        pytest.param("eve", None, "CN=eve", id="others are in no group"),
        pytest.param("eve", ["staff"], "CN=eve,O=staff", id="unless some are given"),
        pytest.param("admin", [], "CN=admin", id="and so is an admin without groups"),
    ],
)
def test_groups_are_in_the_certificate(users, user, groups, subject):
    assert subject_in(users.kubeconfig(user, groups)) == subject


def test_the_same_user_has_one_kubeconfig_per_set_of_groups(users):
    assert users.kubeconfig("eve") == users.kubeconfig("eve", [])
    assert users.kubeconfig("eve") != users.kubeconfig("eve", ["staff"])


def test_a_kubeconfig_path_can_stand_in_the_environment_variable(users):
    assert ":" not in str(users.kubeconfig("system:serviceaccount:default:robot"))


def test_only_its_owner_can_read_a_kubeconfig(users):
    assert users.kubeconfig().stat().st_mode & 0o777 == 0o600
