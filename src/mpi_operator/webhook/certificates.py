"""Makes and reads certificates: an authority, and what the webhook serves.

ECDSA on P-256: made in a millisecond, and every API server accepts it. A private key is in no log:
`Pair` does not print it.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# The clocks of API servers may be behind ours.
_CLOCK_SKEW = timedelta(minutes=5)
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


class BadCertificate(ValueError):
    """A certificate or key that cannot be used."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, in PEM."""

    certificate: str
    key: str = field(repr=False)
    expires_at: float
    """Unix time."""
    names: tuple[str, ...] = ()
    """What a serving certificate is valid for."""
    valid_from: float = 0.0
    """Unix time."""


def new_authority(now: float, seconds: float) -> Pair:
    """A self-signed authority, valid for this many seconds."""
    key = _new_key()
    # A name of its own: with one name for all, a verifier might try the wrong authority only.
    subject = _subject(f"mpi-operator-webhook-ca-{x509.random_serial_number() % 16**8:08x}")
    end = now + seconds
    certificate = (
        _builder(subject, subject, key.public_key(), key.public_key(), now, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def new_serving(authority: Pair, names: Sequence[str], now: float, seconds: float) -> Pair:
    """A certificate for a server with these names. It does not outlive its authority."""
    issuer, issuer_key = _loaded(authority.certificate), _loaded_key(authority.key)
    key = _new_key()
    end = min(now + seconds, authority.expires_at)
    certificate = (
        _builder(
            _subject(names[0][:64]),
            issuer.subject,
            key.public_key(),
            issuer_key.public_key(),
            now,
            end,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(map(_general_name, names)), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def read_pair(certificate: str, key: str) -> Pair:
    """A pair from its PEM; BadCertificate if the two do not belong together."""
    found, found_key = _loaded(certificate), _loaded_key(key)
    if found.public_key() != found_key.public_key():
        raise BadCertificate("the private key belongs to another certificate")
    return _pair(found, found_key)  # without what an editor has changed about the text


def expiry(certificate: str) -> float:
    """When a certificate expires, as Unix time."""
    return _loaded(certificate).not_valid_after_utc.timestamp()


def split(bundle: str) -> tuple[str, ...]:
    """The certificates of a bundle."""
    try:
        found = x509.load_pem_x509_certificates(bundle.encode()) if bundle.strip() else []
    except ValueError as error:
        raise BadCertificate(f"not certificates: {error}") from None
    return tuple(map(_pem, found))


def is_signed_by(certificate: str, authority: str) -> bool:
    """Whether an authority has signed a certificate that is not itself an authority."""
    found = _loaded(certificate)
    try:
        found.verify_directly_issued_by(_loaded(authority))
        return not _is_authority(found)
    except (ValueError, TypeError, InvalidSignature):
        return False


def is_authority(certificate: str) -> bool:
    """Whether a certificate may sign others."""
    return _is_authority(_loaded(certificate))


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    start: float,
    end: float,
) -> x509.CertificateBuilder:
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(start, UTC) - _CLOCK_SKEW)
        .not_valid_after(datetime.fromtimestamp(end, UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(authority, critical=False)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Pair(
        _pem(certificate),
        private.decode(),
        certificate.not_valid_after_utc.timestamp(),
        _names(certificate),
        certificate.not_valid_before_utc.timestamp(),
    )


def _loaded(certificate: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise BadCertificate(f"not a certificate: {error}") from None


def _loaded_key(key: str) -> ec.EllipticCurvePrivateKey:
    try:
        found = serialization.load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError):
        raise BadCertificate("not a private key") from None  # the cause could quote it
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise BadCertificate("not a private key on an elliptic curve")
    return found


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(each.value) for each in found)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*allowed: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in allowed for usage in _USAGES})


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
