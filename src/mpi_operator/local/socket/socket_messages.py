"""What is said between a run and the other shells of its owner.

One request a connection, as a line of JSON: a verb of `kube.client.Client` with its arguments. The
answer is a line for each thing there is to say, and one that says how it ended:

    {"verb": "watch", "resource": {…}, "namespace": "default"}
                                                 {"item": {"type": "ADDED", "object": {…}}}
                                                 {"item": …}
                                                 {"end": {}}

`end` has the Status of Kubernetes that says why where it ended badly. Who hears no `end` has lost
the other side. Who wants to hear no more closes the connection.
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
# Larger than any object that an API server would take.
LONGEST_REQUEST = 8 << 20
# A page of objects is one line, and so is a line of a log.
LONGEST_ANSWER = 64 << 20


class Request(msgspec.Struct, frozen=True, tag_field="verb", tag=str.lower):
    """A verb; its fields are the arguments of the method of the same name."""

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
    """One line of an answer: something said, or how it ended."""

    item: Raw | UnsetType = UNSET
    end: Status | UnsetType = UNSET


encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(AnyRequest).decode
decode_answer = msgspec.json.Decoder(Answer).decode
