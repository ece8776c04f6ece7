"""The operator as a Deployment: two processes, one of which leads, under the strictest rules.

`make generate` writes it to `deploy/mpi-operator.yaml`, with all that it needs.
"""

from devcluster.image_builds.catalog import IMAGES
from scripts.manifests import LABELS, NAME, NAMESPACE, Manifest, named

HEALTH_PORT = 8080
# What people who patch or select by hand know from the Go operator's manifests.
_SELECTOR = {"app": NAME, **LABELS}


def namespace() -> Manifest:
    """Where the operator lives. What else comes there has to be as harmless as it is."""
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    return named("v1", "Namespace", NAMESPACE, labels=enforced)


def deployment() -> Manifest:
    """Two processes: while one is replaced or its node is lost, the other has warm caches."""
    return named("apps/v1", "Deployment", NAME, NAMESPACE, {"app": NAME}) | {
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": _SELECTOR},
            "template": {
                "metadata": {
                    "labels": _SELECTOR,
                    "annotations": {
                        "kubectl.kubernetes.io/default-container": NAME,
                        # A mesh's proxy would have to be up before the API server can be asked.
                        "sidecar.istio.io/inject": "false",
                    },
                },
                "spec": _pod(),
            },
        }
    }


def disruption_budget() -> Manifest:
    """A drained node takes one of the two at a time."""
    return named("policy/v1", "PodDisruptionBudget", NAME, NAMESPACE) | {
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _SELECTOR}}
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
        # On two nodes where there are two.
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _SELECTOR},
                "matchLabelKeys": ["pod-template-hash"],  # those of before, which end, do not count
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
        "ports": [{"name": "http", "containerPort": HEALTH_PORT}],
        # It renews its lease within seconds or stops, so it gets no limit of CPU that could make
        # it miss that; ten thousand pods fit into a fraction of this memory.
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
        # So that its last sentence is in the status of the pod.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
