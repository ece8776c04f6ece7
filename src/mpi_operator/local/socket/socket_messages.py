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

from mpi_operator.kube.client import Propagation
from mpi_operator.kube.errors import Status
from mpi_operator.kube.resources import Manifest, Resource

SOCKET = "socket"
# Larger than any object that an API server would take.
LONGEST_REQUEST = 8 << 20
# A page of objects is one line, and so is a line of a log.
LONGEST_ANSWER = 64 << 20


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="verb", tag=str.lower):
    """A verb; its fields are the arguments of the method of the same name."""

    @property
    def verb(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Selecting(Request, frozen=True, kw_only=True):
    """What is about many objects."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


class Create(Request, frozen=True):
    resource: Resource
    manifest: Manifest


class Get(Request, frozen=True):
    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""


class Pages(Selecting, frozen=True):
    limit: int = 500


class Watch(Selecting, frozen=True):
    resource_version: str = ""
    initial_events: bool = False
    timeout: float | None = None


class Replace(Request, frozen=True):
    resource: Resource
    manifest: Manifest
    subresource: str = ""


class Patch(Request, frozen=True):
    resource: Resource
    name: str
    patch: Manifest | list[Manifest]
    namespace: str = ""
    subresource: str = ""


class Delete(Request, frozen=True):
    resource: Resource
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    grace_period_seconds: int | None = None
    propagation: Propagation = Propagation.BACKGROUND


class DeleteCollection(Selecting, frozen=True, tag="delete_collection"):
    propagation: Propagation = Propagation.BACKGROUND


class Log(Request, frozen=True):
    name: str
    namespace: str
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    limit_bytes: int | None = None


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
