"""The address of the API server, and the namespace to use there."""

import re
from urllib.parse import SplitResult, urlsplit, urlunsplit

from .errors import ConfigError

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def parse_server(text: str, where: str) -> str:
    """The address without a slash at the end, a query or a fragment. Never quotes a password."""
    parts = split_url(text, where)
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"{where}: expected https://HOST[:PORT] or http://HOST[:PORT]")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{where}: no name or password belongs here; put them under `users`")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def parse_namespace(text: str, where: str) -> str:
    """A name that is safe in a path."""
    if not _DNS_LABEL.fullmatch(text):
        raise ConfigError(
            f"{where}: namespace {text!r} is not a DNS label (a-z, 0-9 and -, at most 63)"
        )
    return text


def split_url(text: str, where: str) -> SplitResult:
    """The parts of an address that has a host and, if any, a possible port."""
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            f"{where}: not an address; expected https://HOST[:PORT] or http://HOST[:PORT]"
        )
    return parts
