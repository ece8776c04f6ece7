"""The Secret with the certificates of all replicas: a State as data, and back.

`tls.crt`, `tls.key` and `ca.crt` have the names that they have in a Secret of cert-manager.
"""

import base64
import binascii
from typing import Any

from mpi_operator.kube.resources import SECRETS, Key, Manifest

from .certificates import BadCertificate, Pair, expiry, is_signed_by, read_pair, split
from .rotation import Retired, State


class Corrupted(ValueError):
    """The Secret does not contain what it should; the message quotes nothing of it."""


def secret(key: Key, state: State, resource_version: str = "") -> Manifest:
    """The Secret that has this state; with a version, to replace the one that has it."""
    version = {"resourceVersion": resource_version} if resource_version else {}
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {"app.kubernetes.io/name": "mpi-operator"},
            **version,
        },
        "type": "Opaque",
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in _texts(state)},
    }


def read_state(manifest: Manifest) -> State:
    """The state in a Secret; Corrupted if it cannot be used."""
    try:
        texts = _Texts(manifest.get("data") or {})
        state = State(
            current=read_pair(texts["ca.crt"], texts["ca.key"]),
            serving=read_pair(texts["tls.crt"], texts["tls.key"]),
            upcoming=_upcoming(texts),
            trusted_since=float(texts["next-ca.trusted-since"])
            if "next-ca.trusted-since" in texts
            else None,
            retired=tuple(
                Retired(each, expiry(each)) for each in split(texts.get("old-ca.crt", ""))
            ),
        )
    except KeyError as error:
        raise Corrupted(f"it has no {error.args[0]}") from None
    except (BadCertificate, ValueError, TypeError, AttributeError, binascii.Error) as error:
        reason = str(error) if isinstance(error, BadCertificate) else type(error).__name__
        raise Corrupted(f"it cannot be decoded: {reason}") from None
    if not is_signed_by(state.serving.certificate, state.current.certificate):
        raise Corrupted("tls.crt is not signed by ca.crt")
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


class _Texts(dict[str, str]):
    """The decoded data of a Secret."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(
            (name, base64.b64decode(value, validate=True).decode()) for name, value in data.items()
        )
