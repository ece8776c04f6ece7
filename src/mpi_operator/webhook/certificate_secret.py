"""The Secret with the certificates of all replicas: a State as data, and back.

`tls.crt`, `tls.key` and `ca.crt` have the names that they have in a Secret of cert-manager.
"""

import base64
import binascii
from typing import Any

from mpi_operator.kube.resources import SECRETS, Key, Manifest

from .certificates import BadCertificate, Pair, expiry, is_authority, is_signed_by, read_pair, split
from .rotation import Retired, State

_KEYS = frozenset(
    {
        "ca.crt",
        "ca.key",
        "tls.crt",
        "tls.key",
        "next-ca.crt",
        "next-ca.key",
        "next-ca.trusted-since",
        "old-ca.crt",
    }
)


class Corrupted(ValueError):
    """The Secret does not contain what it should; the message quotes nothing of it."""


def secret(key: Key, state: State) -> Manifest:
    """A new Secret that has this state."""
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {"app.kubernetes.io/name": "mpi-operator"},
        },
        "type": "Opaque",
        "data": _data(state),
    }


def with_state(found: Manifest, state: State) -> Manifest:
    """The same Secret with this state; keys that are not ours stay as they are."""
    others = {k: v for k, v in (found.get("data") or {}).items() if k not in _KEYS}
    return {**found, "data": others | _data(state)}


def is_stored(found: Manifest, state: State) -> bool:
    """Whether the Secret has exactly this text for a state, and not another one that means it."""
    ours = {k: v for k, v in (found.get("data") or {}).items() if k in _KEYS}
    return ours == _data(state)


def _data(state: State) -> dict[str, str]:
    return {name: base64.b64encode(text.encode()).decode() for name, text in _texts(state)}


def read_state(manifest: Manifest) -> State:
    """The state in a Secret; Corrupted if it cannot be used."""
    try:
        texts = _Texts(manifest.get("data") or {})
        state = State(
            current=read_pair(texts["ca.crt"], texts["ca.key"]),
            serving=read_pair(texts["tls.crt"], texts["tls.key"]),
            upcoming=_upcoming(texts),
            trusted_since=_trusted_since(texts),
            retired=tuple(
                Retired(each, expiry(each)) for each in split(texts.get("old-ca.crt", ""))
            ),
        )
    except KeyError as error:
        raise Corrupted(f"it has no {error.args[0]}") from None
    except (BadCertificate, ValueError, TypeError, AttributeError, binascii.Error) as error:
        reason = str(error) if isinstance(error, BadCertificate) else type(error).__name__
        raise Corrupted(f"it cannot be decoded: {reason}") from None
    if not all(map(is_authority, state.authorities)):
        raise Corrupted("one of its CA certificates is not allowed to sign certificates")
    if not is_signed_by(state.serving.certificate, state.current.certificate):
        raise Corrupted("tls.crt is not a certificate for a server that is signed by ca.crt")
    return state


def _texts(state: State) -> list[tuple[str, str]]:
    texts = [
        ("ca.crt", state.current.certificate),
        ("ca.key", state.current.key),
        ("tls.crt", state.serving.certificate),
        ("tls.key", state.serving.key),
    ]
    if state.upcoming:
        texts.append(("next-ca.crt", state.upcoming.certificate))
        texts.append(("next-ca.key", state.upcoming.key))
    if state.trusted_since is not None:
        texts.append(("next-ca.trusted-since", repr(state.trusted_since)))
    if state.retired:
        texts.append(("old-ca.crt", "".join(each.certificate for each in state.retired)))
    return texts


def _upcoming(texts: "_Texts") -> Pair | None:
    if "next-ca.crt" not in texts:
        return None
    return read_pair(texts["next-ca.crt"], texts["next-ca.key"])


def _trusted_since(texts: "_Texts") -> float | None:
    since = texts.get("next-ca.trusted-since")
    return None if since is None else float(since)


class _Texts(dict[str, str]):
    """The decoded data of a Secret, as far as it is ours."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(
            (name, base64.b64decode(value, validate=True).decode(errors="replace"))
            for name, value in data.items()
            if name in _KEYS
        )
