"""Trust and client certificates, against a real TLS server on loopback."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mpi_operator.kube.config import TLS, ClientCertificate, ConfigError
from mpi_operator.kube.config.tls import parse_ca, parse_client_certificate, ssl_context
from tests.support.listener import Listener
from tests.unit.kube.config import pki


@asynccontextmanager
async def server(tmp_path: Path) -> AsyncIterator[int]:
    """Says who called. Its certificate is for api.example only."""
    pair = pki.authority().sign("server", "api.example")
    (tmp_path / "server.pem").write_text(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=pki.authority().pem)
    context.load_cert_chain(tmp_path / "server.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # our authority is as plain as old clusters'

    async def say_who(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert")
        writer.write(peer["subject"][0][0][1].encode() if peer else b"nobody")
        writer.close()
        await writer.wait_closed()

    listener = Listener()
    async with await asyncio.start_server(say_who, sock=listener, ssl=context):
        yield listener.port
        await listener.end_connections()


async def call(port: int, tls: TLS, certificate: ClientCertificate | None = None) -> str:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1",
        port,
        ssl=ssl_context(tls, certificate),
        server_hostname=tls.server_name or "127.0.0.1",
    )
    said = await reader.read()
    writer.close()
    await writer.wait_closed()
    return said.decode()


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(TLS(pki.authority().pem, server_name="api.example"), id="by CA and name"),
        pytest.param(TLS(insecure=True), id="without looking"),
    ],
)
async def test_the_server_is_trusted(tmp_path, tls):
    async with server(tmp_path) as port:
        assert await call(port, tls) == "nobody"


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(TLS(pki.authority().pem), id="a name that it is not"),
        pytest.param(TLS(pki.authority("other").pem, server_name="api.example"), id="another CA"),
        pytest.param(TLS(server_name="api.example"), id="a CA that this machine does not know"),
    ],
)
async def test_the_server_is_not_trusted(tmp_path, tls):
    async with server(tmp_path) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await call(port, tls)


async def test_the_client_certificate_says_who_we_are(tmp_path):
    certificate = ClientCertificate(pki.client("alice").certificate, pki.client("alice").key)
    async with server(tmp_path) as port:
        assert await call(port, TLS(insecure=True), certificate) == "alice"


def test_no_key_stays_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ssl_context(TLS(), ClientCertificate(pki.client().certificate, pki.client().key))
    assert list(tmp_path.iterdir()) == []


def test_strictness_that_old_clusters_fail_is_off():
    assert not ssl_context(TLS(), None).verify_flags & ssl.VERIFY_X509_STRICT


@pytest.mark.parametrize(
    ("chain", "key", "message"),
    [
        pytest.param("a chain", "hunter2", "expected PEM", id="no PEM"),
        pytest.param(
            pki.client("alice").certificate,
            pki.client("bob").key,
            "KEY_VALUES_MISMATCH",
            id="the key of another certificate",
        ),
        pytest.param(
            pki.client().certificate,
            pki.key_pem(ec.generate_private_key(ec.SECP256R1()), b"hunter2"),
            "the key has a password",
            id="a key with a password",
        ),
    ],
)
def test_unusable_certificates_are_explained(chain, key, message):
    with pytest.raises(ConfigError, match=f"here: .*{message}") as caught:
        parse_client_certificate(chain, key, "here")
    assert key not in str(caught.value)


def test_comments_in_a_bundle_are_skipped():
    assert parse_ca(f"# Zertifikat für Müller\n{pki.authority().pem}", "here").startswith("-----")


@pytest.mark.parametrize(
    "text",
    ["", "nothing", "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----"],
    ids=["nothing", "no PEM", "a broken certificate"],
)
def test_a_bundle_without_certificates_is_explained(text):
    with pytest.raises(ConfigError, match="here: expected PEM certificates"):
        parse_ca(text, "here")


def test_keys_are_not_printed():
    pair = pki.client()
    assert "PRIVATE" not in repr(ClientCertificate(pair.certificate, pair.key))
