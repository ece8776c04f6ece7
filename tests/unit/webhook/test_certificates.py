"""Certificates, the Secret that has them, and what becomes of a corrupted one."""

import base64
from dataclasses import replace

import pytest
from cryptography import x509

from mpi_operator.kube.resources import Key
from mpi_operator.webhook import certificates, rotation
from mpi_operator.webhook.certificate_keeper import Wanted
from mpi_operator.webhook.certificate_secret import (
    Corrupted,
    is_stored,
    read_state,
    secret,
    with_state,
)

NOW = 1_800_000_000.0
KEY = Key("home", "mpi-operator-webhook")
NAMES = ("webhook.home.svc", "webhook.home.svc.cluster.local", "127.0.0.1")
WANTED = Wanted(KEY, NAMES)


@pytest.fixture(scope="module")
def state():
    return rotation.first_state(WANTED.issuer, NAMES, NOW)


@pytest.fixture(scope="module")
def rotating(state):
    other = rotation.first_state(WANTED.issuer, NAMES, NOW).current
    older = rotation.first_state(WANTED.issuer, NAMES, NOW).current
    retired = rotation.Retired(older.certificate, older.expires_at)
    return replace(state, upcoming=other, trusted_since=NOW + 0.25, retired=(retired,))


def test_a_certificate_is_for_its_names_and_signed_by_its_authority(state):
    assert state.serving.names == NAMES
    assert certificates.is_signed_by(state.serving.certificate, state.current.certificate)
    assert not certificates.is_signed_by(state.current.certificate, state.serving.certificate)


def test_a_certificate_does_not_outlive_its_authority():
    authority = certificates.new_authority(NOW, 100)
    assert certificates.new_serving(authority, NAMES, NOW + 50, 100).expires_at == NOW + 100


def test_no_two_authorities_have_the_same_name(rotating):
    names = {x509.load_pem_x509_certificate(each.encode()).subject for each in rotating.authorities}
    assert len(names) == 3


def test_no_key_is_printed(rotating):
    assert "PRIVATE" not in repr(rotating)
    assert rotating.current.key not in repr(rotating)


@pytest.mark.parametrize("name", ["state", "rotating"])
def test_a_secret_has_the_whole_state(name, request):
    given = request.getfixturevalue(name)
    assert read_state(secret(KEY, given)) == given


def changed(manifest, name, text):
    data = {k: v for k, v in manifest["data"].items() if k != name}
    return {**manifest, "data": data | ({name: text} if text is not None else {})}


def pem(text):
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("ca.key", None, "it has no ca.key", id="a missing key"),
        pytest.param("tls.crt", None, "it has no tls.crt", id="a missing certificate"),
        pytest.param("tls.crt", "%%%", "cannot be decoded", id="no base64"),
        pytest.param("tls.crt", 5, "cannot be decoded", id="no text"),
        pytest.param("tls.crt", pem("garbage"), "not a certificate", id="no certificate"),
        pytest.param("tls.key", pem("garbage"), "not a private key", id="no key"),
        pytest.param("old-ca.crt", pem("garbage"), "not certificates", id="no old authority"),
        pytest.param("tls.crt", "/v8=", "not a certificate", id="no characters"),
        pytest.param("next-ca.trusted-since", pem("soon"), "cannot be decoded", id="no time"),
    ],
)
def test_a_corrupted_secret(rotating, name, text, message):
    with pytest.raises(Corrupted, match=message):
        read_state(changed(secret(KEY, rotating), name, text))


def test_a_secret_without_data_is_corrupted():
    with pytest.raises(Corrupted):
        read_state({"metadata": {}, "data": None})


def test_the_keys_of_two_certificates_cannot_be_exchanged(rotating):
    manifest = secret(KEY, rotating)
    with pytest.raises(Corrupted, match="belongs to another certificate"):
        read_state(changed(manifest, "tls.key", manifest["data"]["ca.key"]))


def test_a_certificate_of_another_authority_is_not_served(state, rotating):
    swapped = replace(rotating, current=rotating.upcoming)
    with pytest.raises(Corrupted, match="is signed by"):
        read_state(secret(KEY, swapped))


def test_the_message_about_a_corrupted_secret_quotes_nothing_of_it(rotating):
    with pytest.raises(Corrupted) as raised:
        read_state(changed(secret(KEY, rotating), "tls.key", pem("hunter2")))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "authority",
    [pytest.param("ca", id="the authority itself"), pytest.param("tls", id="no authority at all")],
)
def test_an_authority_signs_and_a_certificate_serves(state, authority):
    """A server must not use the key that makes certificates."""
    data = secret(KEY, state)["data"]
    pair = {end: data[f"{authority}.{end}"] for end in ("crt", "key")}
    mixed = {f"{name}.{end}": pair[end] for name in ("ca", "tls") for end in pair}
    with pytest.raises(Corrupted, match=r"not allowed to sign|not a certificate for a server"):
        read_state({"data": mixed})


@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(lambda text: text.rstrip(), id="no newline at the end"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="newlines of Windows"),
        pytest.param(lambda text: f"# für alle\n{text}", id="a comment that is not ASCII"),
    ],
)
@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key", "next-ca.crt"])
def test_what_an_editor_changes_about_a_text_means_nothing(rotating, name, edited):
    manifest = secret(KEY, rotating)
    text = base64.b64decode(manifest["data"][name]).decode()
    found = changed(manifest, name, pem(edited(text)))
    assert read_state(found) == rotating
    assert not is_stored(found, rotating), "so it will be healed"
    assert with_state(found, rotating) == manifest


def test_what_is_not_ours_stays_in_the_secret(state, rotating):
    foreign = {"keystore.p12": "/v8=", "note": "aGk="}
    found = secret(KEY, rotating)
    found = {**found, "type": "theirs", "data": found["data"] | foreign}
    assert read_state(found) == rotating
    assert is_stored(found, rotating)
    written = with_state(found, state)
    assert written == found | {"data": secret(KEY, state)["data"] | foreign}
