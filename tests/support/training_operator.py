"""What training-operator leaves behind: its objects of a job, with its few labels.

After its release 1.9. `tests/peers` has the real one.
"""

from collections.abc import Iterator

from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Manifest,
    Resource,
)

KUBEXEC = (
    '#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'
)
_PREFIX = "training.kubeflow.org/"


def children(job: Manifest, workers: int) -> Iterator[tuple[Resource, Manifest]]:
    """The objects of a job once it was synced; all pods are pending."""
    name, launcher = job["metadata"]["name"], f"{job['metadata']['name']}-launcher"
    pods = [f"{name}-worker-{index}" for index in range(workers)]
    yield CONFIG_MAPS, _object(job, f"{name}-config", data=_data(pods))
    yield SERVICE_ACCOUNTS, _object(job, launcher)
    yield ROLES, _object(job, launcher, rules=rules(pods))
    subject = {"kind": "ServiceAccount", "name": launcher, "namespace": _namespace(job)}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": launcher}
    yield ROLE_BINDINGS, _object(job, launcher, subjects=[subject], roleRef=reference)
    for index, pod in enumerate(pods):
        labels = {f"{_PREFIX}replica-index": str(index)}
        yield PODS, _pod(job, pod, {f"{_PREFIX}replica-type": "worker", **labels})
    labels = {f"{_PREFIX}replica-type": "launcher", f"{_PREFIX}job-role": "master"}
    yield PODS, _pod(job, launcher, labels)


def rules(pods: list[str]) -> list[Manifest]:
    """What its launchers may do."""
    exec_rule = {
        "verbs": ["create"],
        "apiGroups": [""],
        "resources": ["pods/exec"],
        "resourceNames": pods,
    }
    reading = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]}
    return [reading, exec_rule]


def _data(pods: list[str]) -> dict[str, str]:
    return {
        "hostfile": "".join(f"{pod} slots=1\n" for pod in pods),
        "kubexec.sh": KUBEXEC,
        "discover_hosts.sh": "#!/bin/sh",
    }


def _pod(job: Manifest, name: str, labels: dict[str, str]) -> Manifest:
    identity = {
        f"{_PREFIX}operator-name": "mpijob-controller",
        f"{_PREFIX}job-name": job["metadata"]["name"],
    }
    spec = {
        "containers": [{"name": "mpi", "image": "example.com/mpi:1"}],
        "restartPolicy": "Never",
    }
    return _object(job, name, labels=identity | labels, spec=spec)


def _object(
    job: Manifest, name: str, labels: dict[str, str] | None = None, **content: object
) -> Manifest:
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": name,
        "namespace": _namespace(job),
        "labels": labels or {"app": job["metadata"]["name"]},
        "ownerReferences": [owner],
    }
    return {"metadata": metadata, **content}


def _namespace(job: Manifest) -> str:
    return str(job["metadata"]["namespace"])
