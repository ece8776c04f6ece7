"""What the API server needs to call the operator's webhooks: a Service and two configurations.

No `caBundle`: the operator adds its own.
"""

from mpi_operator.api import annotations, types
from mpi_operator.api.conversion import VERSIONS
from mpi_operator.api.crd import WEBHOOK_PORT, WEBHOOK_SERVICE
from mpi_operator.api.types import GROUP, PLURAL

from .deployment import WEBHOOKS
from .installation import NAME, SELECTOR, Installation, Manifest, named

_CONFIGURATION = "admissionregistration.k8s.io/v1"


_WRITTEN_IN = (
    f"(has({{0}}.metadata.annotations) && '{annotations.WRITTEN_IN}' in {{0}}.metadata.annotations "
    f"? {{0}}.metadata.annotations['{annotations.WRITTEN_IN}'] : '')"
)
_TEMPLATE = "object.spec.mpiReplicaSpecs[role].template"


def everything(chosen: Installation) -> list[Manifest]:
    """All objects, in the order in which they are needed."""
    mutating = _webhook(chosen, "mutate", ["UPDATE"], _is_rewritten())
    validating = _webhook(chosen, "validate", ["CREATE", "UPDATE"], _may_have_warnings())
    return [
        service(chosen),
        _configuration("MutatingWebhookConfiguration", mutating),
        _configuration("ValidatingWebhookConfiguration", validating),
    ]


def _is_rewritten() -> Manifest:
    """Whether an update changes the version that a job was written in; the webhook restores it."""
    before, after = (_WRITTEN_IN.format(each) for each in ("oldObject", "object"))
    return {"name": "written-in-changes", "expression": f"{before} != {after}"}


def _may_have_warnings() -> Manifest:
    """Whether the webhook may have something to say about a job.

    The API server enforces all rules of v2beta1 itself. What is left are warnings, and a call costs
    as much as half a creation.
    """
    reasons = [
        f"object.apiVersion != '{types.API_VERSION}'",
        "(has(object.metadata.annotations) && object.metadata.annotations.exists(name, "
        f"name.startsWith('{annotations.PREFIX}')))",
        "(has(object.spec.slotsPerWorker) && object.spec.slotsPerWorker == 0)",
        "object.spec.mpiReplicaSpecs.exists(role, !(role in ['Launcher', 'Worker']) "
        f"|| (has({_TEMPLATE}) && ({_has_ignored_fields()})))",
    ]
    return {"name": "may-have-warnings", "expression": " || ".join(reasons)}


def _has_ignored_fields() -> str:
    """Whether a template has fields that pods do not take from it."""
    metadata = f"{_TEMPLATE}.metadata"
    names = " || ".join(f"has({metadata}.{each})" for each in ("name", "namespace", "finalizers"))
    policy = f"(has({_TEMPLATE}.spec) && has({_TEMPLATE}.spec.restartPolicy))"
    return f"{policy} || (has({metadata}) && ({names}))"


def service(chosen: Installation) -> Manifest:
    """The Service of all replicas.

    Also of those that are not ready: they convert before they can read jobs, because an API server
    cannot read stored jobs of older versions without the conversion.
    """
    return named("v1", "Service", WEBHOOK_SERVICE, chosen.namespace) | {
        "spec": {
            "selector": SELECTOR,
            "publishNotReadyAddresses": True,
            "ports": [{"name": "https", "port": WEBHOOK_PORT, "targetPort": WEBHOOKS}],
        }
    }


def _configuration(kind: str, webhook: Manifest) -> Manifest:
    return named(_CONFIGURATION, kind, NAME) | {"webhooks": [webhook]}


def _webhook(
    chosen: Installation, verb: str, operations: list[str], condition: Manifest
) -> Manifest:
    service = {
        "namespace": chosen.namespace,
        "name": WEBHOOK_SERVICE,
        "path": f"/{verb}",
        "port": WEBHOOK_PORT,
    }
    return {
        "name": f"{verb}.{PLURAL}.{GROUP}",
        "clientConfig": {"service": service},
        # Not subresources: the operator's own writes of statuses need no admission.
        "rules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": list(VERSIONS),
                "resources": [PLURAL],
                "operations": operations,
                "scope": "Namespaced",
            }
        ],
        "matchConditions": [condition],
        "matchPolicy": "Exact",  # each job in the version that it is written in
        "failurePolicy": "Ignore",  # the operator validates again
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
    }
