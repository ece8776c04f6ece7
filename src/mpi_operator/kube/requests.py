"""Builds the request of every verb. Pure: no I/O.

A `Request` also has the verb and the resource for the metrics.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from .client import DeleteOptions, LogOptions, Propagation, Selector, WatchOptions
from .resources import PODS, Manifest, Resource

_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML too

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Request:
    """A request to the API server."""

    verb: str
    resource: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def is_read(self) -> bool:
        return self.method == "GET"


def create(resource: Resource, manifest: Manifest, subresource: str = "") -> Request:
    namespace, name = resource.key_of(manifest)
    path = (
        resource.path(name, namespace, subresource)
        if subresource
        else resource.collection_path(namespace)
    )
    return Request("create", _named(resource, subresource), "POST", path, body=_encode(manifest))


def get(resource: Resource, name: str, namespace: str, subresource: str) -> Request:
    path = resource.path(name, namespace, subresource)
    return Request("get", _named(resource, subresource), "GET", path)


def page(resource: Resource, namespace: str, selector: Selector, limit: int, token: str) -> Request:
    query = _given({**_selecting(selector), "limit": str(limit), "continue": token})
    return Request("list", str(resource), "GET", resource.collection_path(namespace), query)


def watch(resource: Resource, namespace: str, options: WatchOptions) -> Request:
    query = _given(
        {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": options.resource_version,
            **_selecting(options),
            "sendInitialEvents": _flag(options.initial_events),
            "resourceVersionMatch": "NotOlderThan" if options.initial_events else "",
            "timeoutSeconds": (
                str(max(1, round(options.timeout))) if options.timeout is not None else ""
            ),
        }
    )
    return Request("watch", str(resource), "GET", resource.collection_path(namespace), query)


def replace(resource: Resource, manifest: Manifest, subresource: str) -> Request:
    namespace, name = resource.key_of(manifest)
    path = resource.path(name, namespace, subresource)
    return Request("update", _named(resource, subresource), "PUT", path, body=_encode(manifest))


def patch(
    resource: Resource, name: str, change: Manifest, namespace: str, subresource: str
) -> Request:
    return Request(
        "patch",
        _named(resource, subresource),
        "PATCH",
        resource.path(name, namespace, subresource),
        body=_encode(change),
        content_type=_MERGE_PATCH,
    )


class ApplyOptions(NamedTuple):
    """Who applies, whether against other managers, and whether the server stores the result."""

    manager: str
    force: bool = False
    is_dry_run: bool = False


def apply(
    resource: Resource, manifest: Manifest, options: ApplyOptions, subresource: str
) -> Request:
    namespace, name = resource.key_of(manifest)
    query = {
        "fieldManager": options.manager,
        "force": _flag(options.force),
        "dryRun": "All" if options.is_dry_run else "",
    }
    return Request(
        "apply",
        _named(resource, subresource),
        "PATCH",
        resource.path(name, namespace, subresource),
        _given(query),
        body=_encode(manifest),
        content_type=_APPLY_PATCH,
    )


def delete(resource: Resource, name: str, namespace: str, options: DeleteOptions) -> Request:
    body: Manifest = {"propagationPolicy": options.propagation}
    conditions = _given({"uid": options.uid, "resourceVersion": options.resource_version})
    if conditions:
        body["preconditions"] = conditions
    if options.grace_period_seconds is not None:
        body["gracePeriodSeconds"] = options.grace_period_seconds
    path = resource.path(name, namespace)
    return Request("delete", str(resource), "DELETE", path, body=_encode(body))


def delete_collection(
    resource: Resource, namespace: str, selector: Selector, propagation: Propagation
) -> Request:
    return Request(
        "deletecollection",
        str(resource),
        "DELETE",
        resource.collection_path(namespace),
        _given(_selecting(selector)),
        body=_encode({"propagationPolicy": propagation}),
    )


def log(name: str, namespace: str, options: LogOptions) -> Request:
    query = _given(
        {
            "container": options.container,
            "follow": _flag(options.follow),
            "previous": _flag(options.previous),
            "timestamps": _flag(options.timestamps),
            "tailLines": _number(options.tail_lines),
            "sinceSeconds": _number(options.since_seconds),
            "limitBytes": _number(options.limit_bytes),
        }
    )
    return Request("get", "pods/log", "GET", PODS.path(name, namespace, "log"), query)


def raw(path: str) -> Request:
    """Anything that is not an object: versions, discovery, health."""
    return Request("get", "raw", "GET", path)


def _named(resource: Resource, subresource: str) -> str:
    return f"{resource}/{subresource}" if subresource else str(resource)


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}


def _selecting(selector: Selector) -> dict[str, str]:
    return {"labelSelector": selector.labels, "fieldSelector": selector.fields}


def _flag(value: bool) -> str:
    return "true" if value else ""


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
