"""The errors of `kube`.

    KubeError
    ├── NotSent                 the request never left this machine: nothing happened, try again
    │   └── Untrusted           … because the server's certificate is not trusted
    ├── ConnectionLost          it left, no answer came back: a write may have happened
    │   └── DeadlineExceeded    … because we stopped waiting
    ├── Undecodable             an answer that does not conform to the Kubernetes API
    ├── ConfigError             a kubeconfig or the pod's service account cannot be used
    ├── NotLeader               the fence refused a write: this process does not hold the lease
    └── ApiError                the server answered with a Status
        ├── BadRequest          400
        ├── Unauthorized        401
        ├── Forbidden           403
        │   └── QuotaExceeded   … by a ResourceQuota: may pass without a change of ours
        ├── NotFound            404
        ├── MethodNotAllowed    405
        ├── AlreadyExists       409, the name is taken
        ├── Conflict            409, the object has changed, or a precondition failed
        ├── Gone                410, the resourceVersion or continue token is too old: list again
        ├── TooLarge            413
        ├── Invalid             422, with every invalid field in `causes`
        ├── TooManyRequests     429, with the server's `retry_after`
        └── ServerError         5xx
            └── Unavailable     503 and timeouts inside the server

The `reason` in the Status decides the class, and the HTTP code if there is no reason that we know:
proxies between us and the server send codes without reasons.
"""

from collections.abc import Mapping

import msgspec

# What msgspec raises for unexpected bytes. Two of them are not its own: text that is not UTF-8, and
# brackets nested a thousand levels deep.
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class KubeError(Exception):
    """Any error of a request to Kubernetes."""


class NotSent(KubeError):
    """The request never left this machine, so it changed nothing."""


class Untrusted(NotSent):
    """The TLS handshake failed. A retry does not make a certificate valid."""


class ConnectionLost(KubeError):
    """The request was sent and no complete answer came: a write may have happened."""


class DeadlineExceeded(ConnectionLost):
    """No answer within the time that the caller allowed."""


class Undecodable(KubeError):
    """The answer of the server does not conform to the Kubernetes API."""


class ConfigError(KubeError):
    """A kubeconfig, or what a pod was given instead, cannot be used.

    The message says where the mistake is and how to correct it. Raised `from None` where the cause
    could quote a secret (a YAML parser quotes the line).
    """


class NotLeader(KubeError):
    """A write was stopped before it was sent, because this process does not hold the lease."""


class Cause(msgspec.Struct, frozen=True):
    """What the server says about one invalid field."""

    reason: str = ""
    message: str = ""
    field: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """The object that a Status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """A `v1/Status`: the body of an unsuccessful answer."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(KubeError):
    """The server refused the request."""

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
        """The invalid fields, if the server named them."""
        return self.status.details.causes if self.status.details else ()


class BadRequest(ApiError):
    """400: the server does not understand the request."""


class Unauthorized(ApiError):
    """401: the server does not accept our credentials."""


class Forbidden(ApiError):
    """403: our identity has no permission."""


class QuotaExceeded(Forbidden):
    """403: a ResourceQuota is used up. Unlike other refusals this one may pass without a change."""


class NotFound(ApiError):
    """404: no such object, or no such kind of object."""


class MethodNotAllowed(ApiError):
    """405: the resource exists but not this verb."""


class AlreadyExists(ApiError):
    """409: an object of this name exists."""


class Conflict(ApiError):
    """409: the object has changed since it was read, or a precondition failed."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; only a new list helps."""


class TooLarge(ApiError):
    """413: the object is too large for the server."""


class Invalid(ApiError):
    """422: the object is invalid; `causes` names every invalid field."""


class TooManyRequests(ApiError):
    """429: the server is busy; `retry_after` says when to retry."""


class ServerError(ApiError):
    """5xx: the server failed; a write may have happened."""


class Unavailable(ServerError):
    """The server cannot serve now, or timed out waiting for something behind it."""


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
        # Not from Kubernetes: a proxy's page, or nothing at all. Show how it begins.
        text = body[:200].decode(errors="replace").strip()
        status = Status(message=f"HTTP {code}: {text}" if text else f"HTTP {code}")
    return msgspec.structs.replace(status, code=code)


def _class_of(status: Status) -> type[ApiError]:
    found = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if found is Forbidden and "exceeded quota" in status.message:
        # The server has no reason for this; its message has been the same since 1.0.
        return QuotaExceeded
    if found is None:
        return ServerError if status.code >= 500 else ApiError
    return found


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("Retry-After", "")
    # HTTP also allows a date, but no Kubernetes server sends one.
    return float(value) if value.isdecimal() else None


def from_watch_error(raw: msgspec.Raw) -> ApiError:
    """The error inside an `ERROR` event of a watch."""
    try:
        return from_status(_decode_status(raw))
    except MALFORMED:
        return ServerError(
            Status(message=f"the watch sent an error that is not a Status: {bytes(raw)[:200]!r}")
        )
