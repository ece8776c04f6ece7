"""Every verb as a request: what would be sent, as a value. No I/O here.

A `Request` also carries what to call it in the metrics, because a path says neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from .client import JsonPatch, Propagation
from .resources import PODS, Manifest, Resource

_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML too

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Request:
    """What to send."""

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
    namespace, name = _home(resource, manifest)
    path = (
        resource.path(name, namespace, subresource)
        if subresource
        else resource.collection_path(namespace)
    )
    return Request("create", _named(resource, subresource), "POST", path, body=_encode(manifest))


def get(resource: Resource, name: str, namespace: str, subresource: str) -> Request:
    path = resource.path(name, namespace, subresource)
    return Request("get", _named(resource, subresource), "GET", path)


def page(
    resource: Resource,
    namespace: str,
    *,
    label_selector: str,
    field_selector: str,
    limit: int,
    token: str,
) -> Request:
    query = _given(
        {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit),
            "continue": token,
        }
    )
    return Request("list", str(resource), "GET", resource.collection_path(namespace), query)


def watch(
    resource: Resource,
    namespace: str,
    *,
    resource_version: str,
    label_selector: str,
    field_selector: str,
    initial_events: bool,
    timeout: float | None,
) -> Request:
    query = _given(
        {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "sendInitialEvents": "true" if initial_events else "",
            "resourceVersionMatch": "NotOlderThan" if initial_events else "",
            "timeoutSeconds": str(max(1, round(timeout))) if timeout is not None else "",
        }
    )
    return Request("watch", str(resource), "GET", resource.collection_path(namespace), query)


def replace(resource: Resource, manifest: Manifest, subresource: str) -> Request:
    namespace, name = _home(resource, manifest)
    path = resource.path(name, namespace, subresource)
    return Request("update", _named(resource, subresource), "PUT", path, body=_encode(manifest))


def patch(
    resource: Resource,
    name: str,
    change: Manifest | JsonPatch,
    namespace: str,
    subresource: str,
) -> Request:
    return Request(
        "patch",
        _named(resource, subresource),
        "PATCH",
        resource.path(name, namespace, subresource),
        body=_encode(change),
        content_type=_MERGE_PATCH if isinstance(change, dict) else _JSON_PATCH,
    )


def apply(
    resource: Resource, manifest: Manifest, *, manager: str, force: bool, subresource: str
) -> Request:
    namespace, name = _home(resource, manifest)
    return Request(
        "apply",
        _named(resource, subresource),
        "PATCH",
        resource.path(name, namespace, subresource),
        _given({"fieldManager": manager, "force": "true" if force else ""}),
        body=_encode(manifest),
        content_type=_APPLY_PATCH,
    )


def delete(
    resource: Resource,
    name: str,
    namespace: str,
    *,
    uid: str,
    resource_version: str,
    grace_period_seconds: int | None,
    propagation: Propagation,
) -> Request:
    options: Manifest = {"propagationPolicy": propagation}
    if preconditions := _given({"uid": uid, "resourceVersion": resource_version}):
        options["preconditions"] = preconditions
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    path = resource.path(name, namespace)
    return Request("delete", str(resource), "DELETE", path, body=_encode(options))


def delete_collection(
    resource: Resource,
    namespace: str,
    *,
    label_selector: str,
    field_selector: str,
    propagation: Propagation,
) -> Request:
    return Request(
        "deletecollection",
        str(resource),
        "DELETE",
        resource.collection_path(namespace),
        _given({"labelSelector": label_selector, "fieldSelector": field_selector}),
        body=_encode({"propagationPolicy": propagation}),
    )


def log(
    name: str,
    namespace: str,
    *,
    container: str,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail_lines: int | None,
    since_seconds: int | None,
    limit_bytes: int | None,
) -> Request:
    query = _given(
        {
            "container": container,
            "follow": "true" if follow else "",
            "previous": "true" if previous else "",
            "timestamps": "true" if timestamps else "",
            "tailLines": "" if tail_lines is None else str(tail_lines),
            "sinceSeconds": "" if since_seconds is None else str(since_seconds),
            "limitBytes": "" if limit_bytes is None else str(limit_bytes),
        }
    )
    return Request("get", "pods/log", "GET", PODS.path(name, namespace, "log"), query)


def raw(path: str) -> Request:
    """Something that is no object: versions, discovery, health."""
    return Request("get", "raw", "GET", path)


def _home(resource: Resource, manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    namespace: str = metadata.get("namespace", "")
    name: str = metadata.get("name", "")  # absent where the server is to make one up
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} {name!r}: metadata.namespace is missing")
    return namespace, name


def _named(resource: Resource, subresource: str) -> str:
    return f"{resource}/{subresource}" if subresource else str(resource)


def _given(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}
