"""ConversionReviews: decodes a request, converts its objects, and makes the answer.

The API server wants all objects or none, in the same order. It takes the first error as the answer
to its own client, so the message names the object.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from mpi_operator.api import types
from mpi_operator.api.conversion import UnknownVersion
from mpi_operator.kube.errors import MALFORMED
from mpi_operator.kube.json_depth import decoded
from mpi_operator.kube.resources import Manifest

from .annotation_size import bounded, size_error

logger = logging.getLogger(__name__)

API_VERSION = "apiextensions.k8s.io/v1"

Convert: TypeAlias = Callable[[Manifest, str], Manifest]

# Health checks and other requests get a turn this often while a long list is converted.
_TURN_SECONDS = 0.01


class Malformed(ValueError):
    """The request is not a review that we understand."""


class Request(msgspec.Struct, frozen=True, rename={"desired": "desiredAPIVersion"}):
    """The request of a ConversionReview."""

    uid: str
    desired: str
    objects: list[Manifest] = msgspec.field(default_factory=list)


class Failed(Exception):
    """An object that cannot be converted; the message is for the author of the request."""


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Request


_decode = msgspec.json.Decoder(_Review).decode


def decode(body: bytes) -> Request:
    """The request in a ConversionReview; Malformed if there is none."""
    try:
        review = decoded(_decode, body)
    except MALFORMED as error:
        raise Malformed(f"not a ConversionReview: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, "ConversionReview"):
        raise Malformed(f"expected a ConversionReview of {API_VERSION}")
    return review.request


async def converted(
    request: Request, convert: Convert, yield_turn: Callable[[], Awaitable[Any]] | None = None
) -> list[Manifest]:
    """All objects in the desired version; Failed if that is impossible for one of them."""
    version = _version(request.desired)
    give_turn = yield_turn or _yield_turn
    results: list[Manifest] = []
    turn_ends = time.monotonic() + _TURN_SECONDS
    for manifest in request.objects:
        results.append(_converted(manifest, version, convert))
        if time.monotonic() > turn_ends:
            await give_turn()
            turn_ends = time.monotonic() + _TURN_SECONDS
    return results


async def _yield_turn() -> None:
    await asyncio.sleep(0)


def _version(desired: str) -> str:
    group, _, version = desired.partition("/")
    if group != types.GROUP:
        raise Failed(f"{desired} is not a version of {types.KIND}")
    return version


def _converted(manifest: Manifest, version: str, convert: Convert) -> Manifest:
    try:
        return _with_bounded_annotations(manifest, convert(manifest, version), version)
    except Failed:
        raise
    except UnknownVersion as error:
        raise Failed(f"{_name(manifest)}: {error}") from error
    except Exception as error:
        # The message of the error could quote the object, which may contain secrets.
        logger.error(
            "Conversion failed because of a bug",
            extra={
                "job": _name(manifest),
                "from": str(manifest.get("apiVersion")),
                "to": version,
                "error": type(error).__name__,
                "where": where(error),
            },
        )
        raise Failed(f"{_name(manifest)}: a bug in the conversion to {version}") from error


def _with_bounded_annotations(manifest: Manifest, converted: Manifest, version: str) -> Manifest:
    if version != types.VERSION:
        return bounded(manifest, converted)
    if error := size_error(manifest, converted):
        raise Failed(f"{_name(manifest)}: {error}")
    return converted


def where(error: BaseException) -> str:
    """The lines of code that raised an error, innermost last, without any data."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno}" for each in frames[-5:])


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return "an object without metadata"
    return f"{types.KIND} {metadata.get('namespace', '')}/{metadata.get('name', '')}"


def success(uid: str, objects: Sequence[Manifest]) -> Manifest:
    """The answer with all objects."""
    return _review({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}})


def failure(uid: str, message: str) -> Manifest:
    """The answer with the reason why there are no objects."""
    return _review({"uid": uid, "result": {"status": "Failed", "message": message}})


def _review(response: Manifest) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": "ConversionReview", "response": response}
