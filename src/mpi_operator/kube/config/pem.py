"""PEM text, which a kubeconfig holds itself or names a file for."""

from typing import Any

from .files import decode_data, read_text
from .kubeconfig import Entry


def pem(entry: Entry[Any], name: str, data: str | None, path: str | None) -> str | None:
    """The PEM under `name`, if there is one. With both, the data wins, as the format says."""
    if data:
        return decode_data(data, f"{entry.where}: {name}-data")
    return read_text(entry.path(path), f"{entry.where}: {name}") if path else None
