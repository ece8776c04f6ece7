"""The Deployment of the operator: two replicas, one of which leads, under restricted Pod Security.

`make generate` writes it to `deploy/mpi-operator.yaml`, with everything that it needs.
"""

from devcluster.image_builds.catalog import IMAGES
from scripts.manifests import LABELS, NAME, NAMESPACE, Manifest, named

HEALTH_PORT = 8080
WEBHOOK_PORT = 9443
WEBHOOKS = "webhooks"  # the name of that port
# The Go operator's manifests have the label `app`, and people select and patch by it.
SELECTOR = {"app": NAME, **LABELS}


def namespace() -> Manifest:
    """The namespace of the operator. Pod Security holds all of its pods to the same rules."""
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    return named("v1", "Namespace", NAMESPACE, labels=enforced)


def deployment() -> Manifest:
    """Two replicas: while one is replaced or its node is lost, the other has warm caches."""
    return named("apps/v1", "Deployment", NAME, NAMESPACE, {"app": NAME}) | {
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": SELECTOR},
            "template": {
                "metadata": {
                    "labels": SELECTOR,
                    "annotations": {
                        "kubectl.kubernetes.io/default-container": NAME,
                        # A mesh's proxy would delay the first request to the API server.
                        "sidecar.istio.io/inject": "false",
                    },
                },
                "spec": _pod(),
            },
        }
    }


def disruption_budget() -> Manifest:
    """Draining nodes evicts one of the two replicas at a time."""
    return named("policy/v1", "PodDisruptionBudget", NAME, NAMESPACE) | {
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": SELECTOR}}
    }


def _pod() -> Manifest:
    return {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # On different nodes if possible.
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": SELECTOR},
                "matchLabelKeys": ["pod-template-hash"],  # do not count pods of older versions
            }
        ],
        "containers": [_container()],
    }


def _container() -> Manifest:
    return {
        "name": NAME,
        "image": IMAGES["mpi-operator"].tags[0],
        "imagePullPolicy": "IfNotPresent",
        "args": [f"--lock-namespace={NAMESPACE}"],
        "ports": [
            {"name": "http", "containerPort": HEALTH_PORT},
            {"name": WEBHOOKS, "containerPort": WEBHOOK_PORT},
        ],
        # No CPU limit: throttling could make it miss the renewal of its lease. Ten thousand pods
        # need a fraction of this memory.
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "livenessProbe": _probe("/healthz", period=20, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=2),
        # So that the status of the pod has the last log line.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
