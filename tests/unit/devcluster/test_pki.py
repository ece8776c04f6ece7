import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from devcluster import pki
from devcluster.pki import KeyPair, Pki


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return pki.create(tmp_path_factory.mktemp("pki") / "keys", addresses=["127.0.0.1", "10.96.0.1"])


def shake_hands(
    client_context: ssl.SSLContext, server_context: ssl.SSLContext, host: str
) -> dict[str, list[str]]:
    """Two TLS ends agree without a network; the result is what the server knows of the client."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server, client, server]
    for end in waiting:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(end)
    certificate: Any = server.getpeercert()
    pairs = [pair for part in certificate["subject"] for pair in part]
    return {key: sorted(v for k, v in pairs if k == key) for key, _ in pairs}


def serving(keys: Pki, name: str = "serving", clients: str = "ca") -> ssl.SSLContext:
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cafile=keys.pair(clients).certificate
    )
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(keys.pair(name).certificate, keys.pair(name).key)
    return context


def calling(keys: Pki, files: KeyPair, server: str = "ca") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=keys.pair(server).certificate)
    context.load_cert_chain(files.certificate, files.key)
    return context


@pytest.fixture
def alice(keys: Pki, tmp_path: Path) -> KeyPair:
    return keys.authority.issue_client(tmp_path / "alice", "alice", ["staff", "admins"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.96.0.1", "kubernetes.default.svc"], ids=str
)
def test_the_server_is_trusted_under_all_its_names(keys, alice, host):
    assert shake_hands(calling(keys, alice), serving(keys), host)


def test_the_server_is_not_trusted_under_another_name(keys, alice):
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(calling(keys, alice), serving(keys), "example.org")


def test_a_client_certificate_names_the_user_and_groups(keys, alice):
    known = shake_hands(calling(keys, alice), serving(keys), "127.0.0.1")
    assert known == {"commonName": ["alice"], "organizationName": ["admins", "staff"]}


@pytest.mark.parametrize("guarded_by", ["etcd-ca", "front-proxy-ca"])
def test_a_user_of_kubernetes_is_unknown_elsewhere(keys, alice, guarded_by):
    with pytest.raises(ssl.SSLError):
        shake_hands(calling(keys, alice), serving(keys, clients=guarded_by), "127.0.0.1")


def test_etcd_accepts_its_own_certificate_as_a_client(keys):
    client = calling(keys, keys.pair("etcd"), server="etcd-ca")
    assert shake_hands(client, serving(keys, "etcd", clients="etcd-ca"), "127.0.0.1")


def test_private_keys_are_for_their_owner_only(keys):
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in keys.directory.glob("*.key")}
    assert set(modes.values()) == {"0o600"}
    assert {"ca.key", "sa.key", "serving.key", "etcd.key", "front-proxy.key"} <= set(modes)


def test_certificates_do_not_live_long(keys):
    for file in keys.directory.glob("*.crt"):
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        assert datetime.timedelta() < left <= pki.VALID_FOR
