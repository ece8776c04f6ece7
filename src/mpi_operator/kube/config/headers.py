"""The headers that authenticate us, and those that impersonate another user."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from mpi_operator.kube.errors import ConfigError

from .files import read_text

Headers = tuple[tuple[str, str], ...]

# RFC 9110 tokens without "%", which starts an escape; quote() adds letters, digits and "_.-~".
_HEADER_NAME_PUNCTUATION = "!#$&'*+^`|"


def bearer(token: str, where: str) -> Headers:
    """The header for a token. Files and YAML blocks tend to end in a newline."""
    return (("Authorization", f"Bearer {header_value(token.strip(), f'{where}: the token')}"),)


def bearer_file(path: Path, where: str) -> Headers:
    """The header for the token in a file. An empty file is probably being written right now."""
    token = read_text(path, where)
    if not token.strip():
        raise ConfigError(f"{where}: {path} is empty; expected a token")
    return bearer(token, f"{where}: {path}")


def basic(username: str, password: str, where: str) -> Headers:
    """The header for a name and a password."""
    if ":" in username:
        raise ConfigError(
            f"{where}: username must not contain a colon, which separates it from the password"
        )
    try:
        encoded = b64encode(f"{username}:{password}".encode()).decode()
    except UnicodeEncodeError:
        raise ConfigError(f"{where}: username and password must be valid Unicode") from None
    return (("Authorization", f"Basic {encoded}"),)


def impersonation(
    user: str | None,
    uid: str | None,
    groups: Iterable[str],
    extra: Mapping[str, Iterable[str]],
    where: str,
) -> Headers:
    """The headers to act as another user, if the server allows it."""
    pairs = [("Impersonate-Uid", uid)] if uid else []
    pairs += [("Impersonate-Group", group) for group in groups]
    pairs += [(_extra_name(key, where), value) for key in extra for value in extra[key]]
    if not user and pairs:
        raise ConfigError(f"{where}: as-uid, as-groups and as-user-extra need a user in `as`")
    named = [("Impersonate-User", user)] if user else []
    return tuple((name, header_value(value, f"{where}: {name}")) for name, value in named + pairs)


def header_value(text: str, what: str) -> str:
    """The text, if a header may contain it: a line break would start another header."""
    if not text.isprintable():
        raise ConfigError(
            f"{what} contains characters that are not allowed in a header; check for line breaks"
        )
    return text


def _extra_name(key: str, where: str) -> str:
    try:
        return f"Impersonate-Extra-{quote(key, safe=_HEADER_NAME_PUNCTUATION)}"
    except UnicodeEncodeError:
        raise ConfigError(f"{where}: as-user-extra has a key that is not valid Unicode") from None
