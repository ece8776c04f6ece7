"""Certificates for tests: an authority, and what it signs."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: str
    key: str


class Authority:
    """Signs certificates, as plainly as old clusters do: no Authority Key Identifier."""

    def __init__(self, name: str = "test CA") -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key.public_key())
        signed = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.pem = _pem(signed)

    def sign(self, common_name: str, *hosts: str) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = _builder(subject, self._name, key.public_key())
        if hosts:
            names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), key_pem(key))


def key_pem(key: ec.EllipticCurvePrivateKey, password: bytes | None = None) -> str:
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, encryption).decode()


@cache
def authority(name: str = "test CA") -> Authority:
    """Making keys takes time, so each authority is made once."""
    return Authority(name)


@cache
def client(name: str = "alice") -> Pair:
    return authority().sign(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
