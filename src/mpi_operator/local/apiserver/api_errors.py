"""The errors of `kube.errors` with the messages of a Kubernetes API server.

People search for these messages, and some programs match on them.
"""

from collections.abc import Iterable

from mpi_operator.kube import errors
from mpi_operator.kube.errors import Cause, Details, Status
from mpi_operator.kube.resources import Resource

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def not_found(resource: Resource, name: str) -> errors.NotFound:
    message = f'{resource} "{name}" not found'
    return errors.NotFound(Status(message, "NotFound", 404, _details(resource, name)))


def not_served() -> errors.NotFound:
    """A kind or a subresource that the cluster does not serve."""
    message = "the server could not find the requested resource"
    return errors.NotFound(Status(message, "NotFound", 404))


def already_exists(resource: Resource, name: str) -> errors.AlreadyExists:
    message = f'{resource} "{name}" already exists'
    return errors.AlreadyExists(Status(message, "AlreadyExists", 409, _details(resource, name)))


def conflict(resource: Resource, name: str, why: str) -> errors.Conflict:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return errors.Conflict(Status(message, "Conflict", 409, _details(resource, name)))


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> errors.Invalid:
    """An object with invalid fields; every one of them is a cause."""
    causes = tuple(causes)
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    reasons = [str(cause) for cause in causes]
    why = reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]"
    details = Details(name=name, group=resource.group, kind=resource.kind, causes=causes)
    return errors.Invalid(Status(f'{kind} "{name}" is invalid: {why}', "Invalid", 422, details))


def bad_request(why: str) -> errors.BadRequest:
    return errors.BadRequest(Status(why, "BadRequest", 400))


def internal(why: str) -> errors.ServerError:
    return errors.ServerError(Status(f"Internal error occurred: {why}", "InternalError", 500))


def expired(why: str) -> errors.Gone:
    return errors.Gone(Status(why, "Expired", 410))


def _details(resource: Resource, name: str) -> Details:
    return Details(name=name, group=resource.group, kind=resource.plural)
