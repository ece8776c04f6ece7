"""The answer to an AdmissionReview: a decision, and how the API server wants it written.

The API server drops warnings that are too long or have control characters, so they are cut to what
it accepts.
"""

import base64
import re
from dataclasses import dataclass

import msgspec

from mpi_operator.kube.resources import Manifest

API_VERSION = "admission.k8s.io/v1"

# What an API server passes on: so many characters of one warning, and of all of them.
_LONGEST_WARNING = 256
_ALL_WARNINGS = 4096

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Admission:
    """Whether an object may be stored, what its author should know, and what to change in it."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[Manifest, ...] = ()
    """Operations of a JSON patch (RFC 6902)."""


def review(uid: str, admission: Admission) -> Manifest:
    """The AdmissionReview that answers the request with this uid."""
    response: Manifest = {"uid": uid, "allowed": admission.allowed}
    if not admission.allowed:
        response["status"] = {"code": 422, "reason": "Invalid", "message": admission.message}
    if warnings := accepted_warnings(admission.warnings):
        response["warnings"] = warnings
    if admission.allowed and admission.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encode(admission.patch)).decode()
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def accepted_warnings(warnings: tuple[str, ...]) -> list[str]:
    """The warnings as the API server accepts them, as many as it passes on."""
    accepted: list[str] = []
    left = _ALL_WARNINGS
    for text in dict.fromkeys(map(_accepted_warning, warnings)):
        left -= len(text)
        if text and left >= 0:
            accepted.append(text)
    return accepted


def _accepted_warning(text: str) -> str:
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= _LONGEST_WARNING else line[: _LONGEST_WARNING - 1] + "…"
