"""Text from files and from base64, with errors that name the field it is for."""

import binascii
from base64 import b64decode
from pathlib import Path

from mpi_operator.kube.errors import ConfigError

# Far above any kubeconfig: a path to the wrong thing (a disk, /dev/zero) must end in an error.
_LARGEST = 16 * 1024 * 1024


def read_text(path: Path, where: str) -> str:
    """The file as text."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{where}: cannot read {path}: {error.strerror}") from None
    except ValueError:
        # The system does not accept the name: a zero byte, half a Unicode character.
        raise ConfigError(f"{where}: {str(path)!r} is not a possible file name") from None
    if len(content) > _LARGEST:
        raise ConfigError(f"{where}: {path} is larger than {_LARGEST >> 20} MiB")
    return _text(content, f"{where}: {path}")


def decode_data(data: str, where: str) -> str:
    """The text in a `…-data` field, which may contain line breaks."""
    try:
        return _text(b64decode("".join(data.split()), validate=True), where)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{where}: not valid base64; encode the PEM file with `base64`") from None


def _text(content: bytes, what: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: expected text, got binary data; convert DER to PEM") from None
