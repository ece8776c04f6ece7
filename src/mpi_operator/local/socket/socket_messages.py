"""The protocol between a run and the other shells of its user.

Each connection carries one request, a line of JSON: a method of `kube.client.Client` with its
arguments. The response has a line for each item, and a last one for the end:

    {"verb": "watch", "resource": {…}, "namespace": "default"}
                                                 {"item": {"type": "ADDED", "object": {…}}}
                                                 {"item": …}
                                                 {"end": {}}

After an error `end` is a Kubernetes Status. Without an `end` the connection was lost. A client that
wants no more items closes the connection.
"""

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mpi_operator.kube.client import (
    DeleteOptions,
    LogOptions,
    Propagation,
    Selector,
    WatchOptions,
)
from mpi_operator.kube.errors import Status
from mpi_operator.kube.resources import Manifest, Resource

SOCKET = "socket"
# Larger than any object that an API server accepts.
MAX_REQUEST = 8 << 20
# A page of objects is one line.
MAX_ANSWER = 64 << 20


class Request(
    msgspec.Struct, frozen=True, tag_field="verb", tag=str.lower, forbid_unknown_fields=True
):
    """A request; its verb is a method of `Client`, and its fields are the arguments.

    Unknown fields are an error: a shell of another version must not lose a selector silently.
    """

    @property
    def verb(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Create(Request, frozen=True):
    resource: Resource
    manifest: Manifest


class Get(Request, frozen=True):
    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""


class Pages(Request, frozen=True):
    resource: Resource
    namespace: str = ""
    selector: Selector = Selector()
    limit: int = 500


class Watch(Request, frozen=True):
    resource: Resource
    namespace: str = ""
    options: WatchOptions = WatchOptions()


class Replace(Request, frozen=True):
    resource: Resource
    manifest: Manifest
    subresource: str = ""


class Patch(Request, frozen=True):
    resource: Resource
    name: str
    patch: Manifest
    namespace: str = ""
    subresource: str = ""


class Delete(Request, frozen=True):
    resource: Resource
    name: str
    namespace: str = ""
    options: DeleteOptions = DeleteOptions()


class DeleteCollection(Request, frozen=True, tag="delete_collection"):
    resource: Resource
    namespace: str = ""
    selector: Selector = Selector()
    propagation: Propagation = Propagation.BACKGROUND


class Log(Request, frozen=True):
    name: str
    namespace: str
    options: LogOptions = LogOptions()


AnyRequest: TypeAlias = (
    Create | Get | Pages | Watch | Replace | Patch | Delete | DeleteCollection | Log
)
STREAMS = (Pages, Watch, Log)


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a response: an item, or the end."""

    item: Raw | UnsetType = UNSET
    end: Status | UnsetType = UNSET


encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(AnyRequest).decode
decode_answer = msgspec.json.Decoder(Answer).decode
