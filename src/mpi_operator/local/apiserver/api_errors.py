"""How the cluster says no: the errors of `kube.errors`, in the sentences of an API server.

People search for these sentences, and some programs match on them.
"""

from collections.abc import Iterable

from mpi_operator.kube import errors
from mpi_operator.kube.errors import Cause, Details, Status
from mpi_operator.kube.resources import Resource

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def not_found(resource: Resource, name: str) -> errors.NotFound:
    return errors.NotFound(
        Status(f'{resource} "{name}" not found', "NotFound", 404, _details(resource, name))
    )


def no_such_place() -> errors.NotFound:
    """For a kind or a subresource that is not served."""
    return errors.NotFound(
        Status("the server could not find the requested resource", "NotFound", 404)
    )


def already_exists(resource: Resource, name: str) -> errors.AlreadyExists:
    message = f'{resource} "{name}" already exists'
    return errors.AlreadyExists(Status(message, "AlreadyExists", 409, _details(resource, name)))


def conflict(resource: Resource, name: str, why: str) -> errors.Conflict:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return errors.Conflict(Status(message, "Conflict", 409, _details(resource, name)))


def another_uid(resource: Resource, name: str, wanted: str, found: str) -> errors.Conflict:
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(resource, name, why)


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> errors.Invalid:
    """With every complaint, field by field."""
    causes = tuple(causes)
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    sentences = [str(cause) for cause in causes]
    said = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    details = Details(name=name, group=resource.group, kind=resource.kind, causes=causes)
    return errors.Invalid(Status(f'{kind} "{name}" is invalid: {said}', "Invalid", 422, details))


def unprocessable(why: str) -> errors.Invalid:
    """For a patch that does not fit the object."""
    message = f"the server rejected our request due to an error in our request: {why}"
    return errors.Invalid(Status(message, "Invalid", 422))


def bad_request(why: str) -> errors.BadRequest:
    return errors.BadRequest(Status(why, "BadRequest", 400))


def internal(why: str) -> errors.ServerError:
    return errors.ServerError(Status(f"Internal error occurred: {why}", "InternalError", 500))


def expired(why: str) -> errors.Gone:
    return errors.Gone(Status(why, "Expired", 410))


def _details(resource: Resource, name: str) -> Details:
    return Details(name=name, group=resource.group, kind=resource.plural)
