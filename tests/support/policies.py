"""What administrators restrict a namespace with: quotas, policies and webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mpi_operator.kube import errors
from mpi_operator.kube.client import DeleteOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, Manifest, Resource
from tests.support.mpijobs import template
from tests.support.waiting import until

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
_GROUP = "admissionregistration.k8s.io"
_POLICIES = Resource(
    _GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
_BINDINGS = Resource(
    _GROUP,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
_WEBHOOKS = Resource(
    _GROUP,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
_PROBE = "probe"


async def limit(client: HttpClient, namespace: str, **hard: str) -> str:
    """Put a quota on a namespace, and wait until it counts; its name."""
    amounts = {name.replace("__", "/").replace("_", "."): value for name, value in hard.items()}
    quota = {"metadata": {"name": "tight", "namespace": namespace}, "spec": {"hard": amounts}}
    await client.create(QUOTAS, quota)

    async def counts() -> bool:
        found = await client.get(QUOTAS, "tight", namespace)
        return bool(found.get("status", {}).get("hard") == amounts)

    await until(counts)
    return "tight"


@asynccontextmanager
async def denied(
    client: HttpClient,
    namespace: str,
    resource: Resource,
    why: str,
    *,
    operation: str = "CREATE",
    subresource: str = "",
    reason: str = "Forbidden",
) -> AsyncIterator[None]:
    """A policy that denies writes of one kind in a namespace."""
    name = f"{namespace}-no-{resource.plural}"
    rule = _rule(resource, operation, subresource)
    await client.create(_POLICIES, _policy(name, rule, resource.kind, why, reason))
    await client.create(_BINDINGS, _binding(name, namespace))
    try:
        await until(lambda: _is_in_force(client, namespace))
        yield
    finally:
        await client.delete(_BINDINGS, name)
        await client.delete(_POLICIES, name)


@asynccontextmanager
async def unreachable_webhook(client: HttpClient, namespace: str) -> AsyncIterator[None]:
    """A webhook that is called for each new pod, and does not answer."""
    name = f"{namespace}-down"
    webhook = {
        "name": "down.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:1/unreachable"},
        "namespaceSelector": _only(namespace),
        "rules": [_rule(PODS, "CREATE")],
    }
    await client.create(_WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
    try:
        await until(lambda: _is_asked(client, namespace))
        yield
    finally:
        await client.delete(_WEBHOOKS, name)


def _policy(name: str, rule: Manifest, kind: str, why: str, reason: str) -> Manifest:
    """Also against a ConfigMap by which we find out whether the policy is in force."""
    rules = [rule, _rule(CONFIG_MAPS, "CREATE")]
    is_about_others = f"object.kind != '{kind}' && object.metadata.name != '{_PROBE}'"
    return {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": is_about_others, "message": why, "reason": reason}],
        },
    }


def _rule(kind: Resource, operation: str, subresource: str = "") -> Manifest:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [f"{kind.plural}/{subresource}" if subresource else kind.plural],
        "operations": [operation],
    }


def _binding(name: str, namespace: str) -> Manifest:
    return {
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": _only(namespace)},
        },
    }


def _only(namespace: str) -> Manifest:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


async def _is_in_force(client: HttpClient, namespace: str) -> bool:
    """Policies take effect a moment after they are stored."""
    try:
        await client.create(CONFIG_MAPS, {"metadata": {"name": _PROBE, "namespace": namespace}})
    except (errors.Forbidden, errors.Invalid):
        return True
    await client.delete(CONFIG_MAPS, _PROBE, namespace)
    return False


async def _is_asked(client: HttpClient, namespace: str) -> bool:
    """Webhooks are called a moment after they are stored."""
    try:
        await client.create(
            PODS, {"metadata": {"name": _PROBE, "namespace": namespace}, **template()}
        )
    except errors.ServerError:
        return True
    await client.delete(PODS, _PROBE, namespace, DeleteOptions(grace_period_seconds=0))
    return False
