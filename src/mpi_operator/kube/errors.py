"""What can go wrong when talking to Kubernetes.

    KubeError
    ├── NotSent                 the request never left this machine: nothing happened, try again
    │   └── Untrusted               … because the other side is not who it should be
    ├── ConnectionLost          it left, no answer came back: a write may have happened
    │   └── DeadlineExceeded    … because we stopped waiting
    ├── Undecodable             an answer that is not what the API promises
    ├── ConfigError             a kubeconfig or the pod's service account cannot be used
    ├── NotLeader               a fence refused a write, because the lease is not ours (any more)
    └── ApiError                the server answered with a Status
        ├── BadRequest          400
        ├── Unauthorized        401
        ├── Forbidden           403
        │   └── QuotaExceeded       … by a ResourceQuota: passes when somebody frees some
        ├── NotFound            404
        ├── MethodNotAllowed    405
        ├── AlreadyExists       409, the name is taken
        ├── Conflict            409, somebody else wrote in between (or a precondition failed)
        ├── Gone                410, the resourceVersion or continue token is too old: list again
        ├── TooLarge            413
        ├── Invalid             422, with every complaint in `causes`
        ├── TooManyRequests     429, with the server's `retry_after`
        └── ServerError         5xx
            └── Unavailable         503 and time-outs inside the server

The class follows the `reason` of the Status body, and the HTTP code only where there is no reason
that we know: proxies between us and the server know codes, but no reasons.
"""

from collections.abc import Mapping

import msgspec

# What msgspec raises for bytes that are not what was expected. Two of them are not its own: text
# that is no UTF-8, and brackets nested a thousand deep.
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class KubeError(Exception):
    """Anything that goes wrong between us and Kubernetes."""


class NotSent(KubeError):
    """The request never left this machine, so it certainly did nothing."""


class Untrusted(NotSent):
    """The TLS handshake failed. Trying again will not make a certificate valid."""


class ConnectionLost(KubeError):
    """The request left and no whole answer came back: a write may or may not have happened."""


class DeadlineExceeded(ConnectionLost):
    """No answer within the time that the caller allowed."""


class Undecodable(KubeError):
    """The server's answer is not what the Kubernetes API promises."""


class ConfigError(KubeError):
    """A kubeconfig, or what a pod was given instead, cannot be used.

    The message says where the mistake is and how to correct it. Raised `from None` where the cause
    could quote a secret (a YAML parser quotes the line).
    """


class NotLeader(KubeError):
    """A write was stopped before it was sent, because this process does not hold the lease."""


class Cause(msgspec.Struct, frozen=True):
    """One complaint of the server about one field."""

    reason: str = ""
    message: str = ""
    field: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What the server says about the object concerned."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """A `v1/Status` body: how Kubernetes says no."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(KubeError):
    """The server answered, and the answer was no."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(status.message or f"the server answered {status.code} {status.reason}")
        self.status = status
        details = status.details or Details()
        self.retry_after = details.retry_after_seconds if retry_after is None else retry_after

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The complaints, field by field, where the server gave them."""
        return self.status.details.causes if self.status.details else ()


class BadRequest(ApiError):
    """400: the request itself makes no sense to the server."""


class Unauthorized(ApiError):
    """401: the server does not know who we are."""


class Forbidden(ApiError):
    """403: it knows, and we may not."""


class QuotaExceeded(Forbidden):
    """403: a ResourceQuota is used up. Unlike other prohibitions this one passes by itself."""


class NotFound(ApiError):
    """404: no such object, or no such kind of object."""


class MethodNotAllowed(ApiError):
    """405: the resource exists but not this verb."""


class AlreadyExists(ApiError):
    """409: an object of this name is there."""


class Conflict(ApiError):
    """409: the object changed since it was read, or is not the one that was meant."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; only a new list helps."""


class TooLarge(ApiError):
    """413: the object is larger than the server takes."""


class Invalid(ApiError):
    """422: the object breaks rules; `causes` has every one."""


class TooManyRequests(ApiError):
    """429: not now. `retry_after` is when the server wants to hear from us again."""


class ServerError(ApiError):
    """5xx: the server failed; a write may have happened."""


class Unavailable(ServerError):
    """The server is there but cannot serve, or gave up waiting for something behind it."""


_BY_REASON: Mapping[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "RequestEntityTooLarge": TooLarge,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": ServerError,
    "ServiceUnavailable": Unavailable,
    "ServerTimeout": Unavailable,
    "Timeout": Unavailable,
}

_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
    503: Unavailable,
    504: Unavailable,
}

_decode_status = msgspec.json.Decoder(Status).decode


def from_response(code: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """The error of an HTTP answer with a code of 400 or more."""
    return from_status(_status(code, body), retry_after=_retry_after(headers))


def from_status(status: Status, *, retry_after: float | None = None) -> ApiError:
    """The error that a Status stands for."""
    return _class_of(status)(status, retry_after=retry_after)


def _status(code: int, body: bytes) -> Status:
    try:
        status = _decode_status(body)
    except MALFORMED:
        status = Status()
    if not status.message and not status.reason:
        # Not from Kubernetes: a proxy's page, or nothing at all. Its first words are all we have.
        text = body[:200].decode(errors="replace").strip()
        status = Status(message=f"HTTP {code}: {text}" if text else f"HTTP {code}")
    return msgspec.structs.replace(status, code=code)


def _class_of(status: Status) -> type[ApiError]:
    found = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if found is Forbidden and "exceeded quota" in status.message:
        # The server has no reason of its own for this; its sentence has been the same since 1.0.
        return QuotaExceeded
    if found is None:
        return ServerError if status.code >= 500 else ApiError
    return found


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    # The date form is legal HTTP, but no Kubernetes server sends it.
    return float(value) if value.isdecimal() else None


def from_watch_error(raw: msgspec.Raw) -> ApiError:
    """The error inside an `ERROR` event of a watch."""
    try:
        return from_status(_decode_status(raw))
    except MALFORMED:
        return ServerError(Status(message=f"a watch error that is no Status: {bytes(raw)[:200]!r}"))
