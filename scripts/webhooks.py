"""What the API server needs to call the operator's webhooks: a Service and two configurations.

`make generate` writes it to `deploy/mpi-operator.yaml`, and for other installations to
`deploy/webhooks.yaml`. No `caBundle`: the operator adds its own.
"""

from mpi_operator.api.conversion import VERSIONS
from mpi_operator.api.crd import WEBHOOK_PORT, WEBHOOK_SERVICE
from mpi_operator.api.types import GROUP, PLURAL
from scripts.deployment import SELECTOR, WEBHOOKS
from scripts.manifests import NAME, NAMESPACE, Manifest, named

_CONFIGURATION = "admissionregistration.k8s.io/v1"


def everything() -> list[Manifest]:
    """All objects, in the order in which they are needed."""
    return [
        service(),
        _configuration("MutatingWebhookConfiguration", "mutate"),
        _configuration("ValidatingWebhookConfiguration", "validate"),
    ]


def service() -> Manifest:
    """The Service of all replicas.

    Also of those that are not ready: they convert before they can read jobs, because without the
    conversion nobody can read those of older versions.
    """
    return named("v1", "Service", WEBHOOK_SERVICE, NAMESPACE) | {
        "spec": {
            "selector": SELECTOR,
            "publishNotReadyAddresses": True,
            "ports": [{"name": "https", "port": WEBHOOK_PORT, "targetPort": WEBHOOKS}],
        }
    }


def _configuration(kind: str, verb: str) -> Manifest:
    return named(_CONFIGURATION, kind, NAME) | {"webhooks": [_webhook(verb)]}


def _webhook(verb: str) -> Manifest:
    service = {
        "namespace": NAMESPACE,
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
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced",
            }
        ],
        "matchPolicy": "Exact",  # each job in the version that it is written in
        "failurePolicy": "Ignore",  # the operator validates again
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
    }
