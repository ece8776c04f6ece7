"""The objects of a file: jobs, what they are made from, and what has no effect on this machine.

MPIJob                                      runs
ConfigMap, Secret, PersistentVolumeClaim    created before the jobs
Deployment, PyTorchJob, …                   refused: the job may need what they would run
everything else                             ignored, and said so in one line per reason
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from mpi_operator.api.types import KIND
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.plain_text import printable
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    Manifest,
)

from .config_objects import checked

CREATED = {resource.kind: resource for resource in (CONFIG_MAPS, SECRETS, PERSISTENT_VOLUME_CLAIMS)}

# Kinds that run programs, besides those whose name ends in Job.
_WORKLOADS = frozenset(
    ("Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet")
)
_NETWORK = "pods use this machine's network and find each other by host name"
_USER = "pods run as you"
_STORAGE = "a claim is a directory here, kept between runs; --volume selects another one"
_QUEUES = "jobs start at once, without queues, quotas and priorities"
_WITHOUT_EFFECT = {
    "Namespace": "every job runs in the namespace default",
    **dict.fromkeys(
        ("Service", "Ingress", "NetworkPolicy", "Endpoints", "EndpointSlice"), _NETWORK
    ),
    **dict.fromkeys(
        ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"), _USER
    ),
    **dict.fromkeys(("PersistentVolume", "StorageClass"), _STORAGE),
    **dict.fromkeys(
        (
            *("LocalQueue", "ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass"),
            *("Queue", "PodGroup", "PriorityClass", "LimitRange", "ResourceQuota"),
            "PodDisruptionBudget",
        ),
        _QUEUES,
    ),
}
NO_ITEMS = "items must be a list of objects"
_UNKNOWN = "`mpijob run` does not use this kind"


class Listed(NamedTuple):
    """An object of a document, and the keys that lead to it if the document is a list."""

    value: Any
    keys: tuple[str | int, ...] = ()


class FileObjects(NamedTuple):
    """The objects of a file by what `mpijob run` does with them."""

    jobs: Sequence[Manifest]
    created: Sequence[Manifest]
    notices: Sequence[str]
    namespaces: Mapping[str, str] = MappingProxyType({})
    """Those that the file gives to what is created, by title."""


def sort(values: Sequence[Any], source: str) -> FileObjects:
    """The objects of a file; InvalidInput if one of them cannot be used."""
    found = [each.value for value in values for each in objects(value)]
    if any(map(lacks_items, found)):
        raise InvalidInput(f"invalid List in {source}: {NO_ITEMS}")
    if not any(isinstance(each, dict) and each.get("kind") == KIND for each in found):
        raise InvalidInput(f"no {KIND} in {source}: {_kinds_found(found)}")
    _check_kinds(found, source)
    jobs = [each for each in found if each["kind"] == KIND]
    written = [each for each in found if each["kind"] in CREATED]
    created = [checked(each, source) for each in written]
    _check_unique([*jobs, *written], source)
    rest = [each for each in found if each["kind"] not in (KIND, *CREATED)]
    return FileObjects(jobs, created, _notices(rest), dict(map(identity, written)))


def _kinds_found(values: Sequence[object]) -> str:
    """What a file without a job has instead."""
    if not values:
        return "it is empty"
    kinds = [each.get("kind") if isinstance(each, dict) else None for each in values]
    named = list(dict.fromkeys(str(kind) for kind in kinds if kind is not None))
    if not named:
        return f"one document needs `kind: {KIND}`"
    found = f"found kind {printable(', '.join(named))}"
    is_misspelt = any(name.lower() == KIND.lower() for name in named)
    return f"{found}; did you mean {KIND}?" if is_misspelt else found


def title(manifest: Manifest) -> str:
    """What messages call an object: `ConfigMap train`."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return printable(f"{manifest['kind']} {name}" if name else str(manifest["kind"]))


def identity(manifest: Manifest) -> tuple[str, str]:
    """What no two objects of a file share: the title and the namespace that is written."""
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return title(manifest), str(namespace or "")


def objects(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[Listed]:
    """A document, or the items of a `List` one by one."""
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list) or not str(value.get("kind")).endswith("List"):
        yield Listed(value, keys)
        return
    for index, item in enumerate(items):
        yield from objects(item, (*keys, "items", index))


def lacks_items(value: Any) -> bool:
    """Whether it is a `List` without a list of objects: others may be lists in name only."""
    return (
        isinstance(value, dict)
        and value.get("kind") == "List"
        and not isinstance(value.get("items"), list)
    )


def _check_kinds(found: Iterable[Any], source: str) -> None:
    for each in found:
        kind = each.get("kind") if isinstance(each, dict) else None
        if not isinstance(kind, str):
            raise InvalidInput(f"not an object in {source}: each document needs a `kind`")
        if kind != KIND and kind.lower() == KIND.lower():
            raise InvalidInput(f"unknown kind {printable(kind)} in {source}: did you mean {KIND}?")
        if kind in _WORKLOADS or (kind.endswith("Job") and kind != KIND):
            raise InvalidInput(
                f"cannot run {title(each)} in {source}: `mpijob run` runs only {KIND}s,"
                " and the job may need it. Remove it from the file, or use a cluster"
            )


def _check_unique(found: Iterable[Manifest], source: str) -> None:
    known: dict[str, str] = {}
    for each, namespace in map(identity, found):
        if known.get(each) == namespace:
            raise InvalidInput(f"{each} is in {source} twice")
        if each in known:
            raise InvalidInput(
                f"{each} is in {source} in two namespaces: `mpijob run` has only one. Use a file"
                " for each"
            )
        known[each] = namespace


def _notices(found: Iterable[Manifest]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for each in found:
        by_reason.setdefault(_WITHOUT_EFFECT.get(each["kind"], _UNKNOWN), []).append(title(each))
    return [
        f"{', '.join(titles)}: no effect on this machine, {reason}"
        for reason, titles in by_reason.items()
    ]
