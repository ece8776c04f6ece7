"""The Deployment of the operator: two replicas, one of which leads, with restricted rights."""

from .installation import NAME, SELECTOR, Installation, Manifest, default_image, named

HEALTH_PORT = 8080
WEBHOOK_PORT = 9443
WEBHOOKS = "webhooks"  # the name of that port
OWN_NAMESPACE = "--namespace=$(NAMESPACE)"
_NAMESPACE = "metadata.namespace"


def namespace(chosen: Installation) -> Manifest:
    """The namespace of the operator. Pod Security holds all of its pods to the same rules."""
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    return named("v1", "Namespace", chosen.namespace, labels=enforced)


def deployment(chosen: Installation) -> Manifest:
    """Two replicas: while one is replaced or its node is lost, the other has warm caches."""
    return named("apps/v1", "Deployment", NAME, chosen.namespace, {"app": NAME}) | {
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
                "spec": _pod(chosen),
            },
        }
    }


def disruption_budget(chosen: Installation) -> Manifest:
    """Draining nodes evicts one of the two replicas at a time."""
    return named("policy/v1", "PodDisruptionBudget", NAME, chosen.namespace) | {
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": SELECTOR}}
    }


def _pod(chosen: Installation) -> Manifest:
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
        "containers": [_container(chosen)],
    }


def _container(chosen: Installation) -> Manifest:
    return {
        "name": NAME,
        "image": chosen.image or default_image(),
        "imagePullPolicy": "IfNotPresent",
        "args": _flags(chosen),
        # Not as text, so that kustomize can move everything to another namespace.
        "env": [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": _NAMESPACE}}}],
        "ports": _ports(chosen),
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


def _flags(chosen: Installation) -> list[str]:
    own = [OWN_NAMESPACE, "--webhooks=off"] if chosen.is_namespaced else []
    return ["--lock-namespace=$(NAMESPACE)", *own, *chosen.flags]


def _ports(chosen: Installation) -> list[Manifest]:
    webhooks = [{"name": WEBHOOKS, "containerPort": WEBHOOK_PORT}] if chosen.has_webhooks else []
    return [{"name": "http", "containerPort": HEALTH_PORT}, *webhooks]


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
