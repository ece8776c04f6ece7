"""A new key pair for a job."""

from mpi_operator.build.ssh_secret import KeyPair


def new_key_pair() -> KeyPair:
    """ECDSA on P-521, in the formats that every OpenSSH reads."""
    # Loaded when it is needed: a job on one machine needs no keys, and should start at once.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return KeyPair(private=private.decode(), public=public.decode() + "\n")
