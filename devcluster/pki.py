"""Keys and certificates of one control plane.

    ca              signs the serving certificate and every client certificate (CN=user, O=group)
    front-proxy-ca  signs only the API server's own identity towards aggregated API servers: a
                    client certificate must never be able to impersonate another user
    etcd-ca         signs only etcd's certificate, which the API server uses as a client as well:
                    a user of Kubernetes must not be able to write into its database
    sa              signs service account tokens

Elliptic keys, because making them takes a millisecond; valid for a month, because nothing here
should live that long. Private keys are readable by their owner only.
"""

import datetime
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=30)
_CLOCK_SKEW = datetime.timedelta(minutes=5)
_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A certificate authority with its key beside its certificate."""

    files: KeyPair

    def issue_server(self, target: Path, names: Iterable[str]) -> KeyPair:
        """A certificate for a server under these names and addresses, good as a client as well."""
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        return self._issue(target, _subject(target.name), usages, alternatives)

    def issue_client(self, target: Path, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate for a user of the API server."""
        return self._issue(target, _subject(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH])

    def _issue(
        self,
        target: Path,
        subject: x509.Name,
        usages: list[x509.ObjectIdentifier],
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        issuer = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
        issuer_key = serialization.load_pem_private_key(self.files.key.read_bytes(), None)
        assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
        key = _new_key()
        builder = (
            _builder(subject, issuer.subject, key.public_key(), issuer_key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if alternatives:
            builder = builder.add_extension(alternatives, critical=False)
        return _store(target, builder.sign(issuer_key, hashes.SHA256()), key)


@dataclass(frozen=True)
class Pki:
    """All keys of one control plane, by directory."""

    directory: Path

    @property
    def authority(self) -> Authority:
        return Authority(self.pair("ca"))

    def pair(self, name: str) -> KeyPair:
        return KeyPair(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    @property
    def service_account_key(self) -> Path:
        return self.directory / "sa.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.directory / "sa.pub"


def create(directory: Path, *, addresses: Iterable[str]) -> Pki:
    """Make everything that a control plane serving at these addresses needs."""
    directory.mkdir(mode=0o700, parents=True)
    for name in ("ca", "front-proxy-ca", "etcd-ca"):
        create_authority(directory / name)
    pki = Pki(directory)
    pki.authority.issue_server(directory / "serving", (*_NAMES, *addresses))
    etcd_authority = Authority(pki.pair("etcd-ca"))
    etcd_authority.issue_server(directory / "etcd", ("localhost", "127.0.0.1"))
    Authority(pki.pair("front-proxy-ca")).issue_client(directory / "front-proxy", "front-proxy")
    _create_service_account_keys(pki)
    return pki


def create_authority(target: Path) -> Authority:
    """A new self-signed authority, stored as TARGET.crt and TARGET.key."""
    key, subject = _new_key(), _subject(target.name)
    certificate = (
        _builder(subject, subject, key.public_key(), key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(_store(target, certificate, key))


def _create_service_account_keys(pki: Pki) -> None:
    key = _new_key()
    _write_secret(pki.service_account_key, _private_pem(key))
    pki.service_account_public_key.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False
        )
    )


def _subject(common_name: str, organisations: Iterable[str] = ()) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organisations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(**allowed: bool) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: allowed.get(usage, False) for usage in _USAGES})


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _store(target: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    files = KeyPair(target.with_name(f"{target.name}.crt"), target.with_name(f"{target.name}.key"))
    _write_secret(files.key, _private_pem(key))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return files


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_secret(path: Path, content: bytes) -> None:
    # Created with its mode, so that no other user can ever open it.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
