"""Strategies for MPIJobs of each API version: realistic, partial and odd ones."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from mpi_operator.api import annotations as names
from mpi_operator.api.conversion import OURS, VERSIONS
from mpi_operator.api.types import GROUP, KIND

OLD = VERSIONS[1:]

Json = st.SearchStrategy[Any]

SCALARS: Json = (
    st.none()
    | st.booleans()
    | st.integers(-3, 20)
    | st.sampled_from(["", "Never", "8", "1Gi", "OpenMPI", "é"])
    | st.sampled_from([0.5, 1.0, 2**40, "2026-01-31T12:00:00Z"])
)
GARBAGE: Json = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "b/c", "~", "0", "name", "spec"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def odd(values: Json) -> Json:
    """Mostly these values, sometimes null or garbage."""
    return st.one_of(values, values, values, values, st.none(), GARBAGE)


def objects(fields: Mapping[str, Json]) -> Json:
    """Objects with any subset of these fields, and sometimes an unknown one."""
    unknown = {"unknownField": GARBAGE}
    return st.fixed_dictionaries({}, optional={**fields, **unknown})


def _items(item: Json) -> Json:
    return st.lists(item, max_size=2)


WORDS = _items(st.sampled_from(["mpirun", "-np", "2", "sleep"]))
AMOUNTS: Json = st.integers(0, 16) | st.sampled_from(["1", "8", "500m", "2Gi"])
RESOURCES = objects(
    {
        "limits": odd(
            st.dictionaries(
                st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu"]), AMOUNTS
            )
        ),
        "requests": objects({"cpu": AMOUNTS}),
    }
)
CONTAINERS = objects(
    {
        "name": st.sampled_from(["mpi", "sidecar"]),
        "image": st.sampled_from(["example.com/a:1", "example.com/b:1"]),
        "command": odd(WORDS),
        "args": odd(WORDS),
        "resources": odd(RESOURCES),
        "ports": odd(_items(objects({"containerPort": st.just(22), "protocol": st.none()}))),
        "env": _items(objects({"name": st.just("A"), "value": st.just("b")})),
        "volumeMounts": st.just([{"name": "data", "mountPath": "/data"}]),
    }
)
_MASTER = {"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}
TEMPLATES = objects(
    {
        "metadata": odd(objects({"labels": st.just({"app": "a"}), "name": st.just("n")})),
        "spec": odd(
            objects(
                {
                    "containers": odd(st.lists(odd(CONTAINERS), min_size=1, max_size=2)),
                    "restartPolicy": odd(st.sampled_from(["Always", "Never", "OnFailure"])),
                    "imagePullSecrets": _items(st.sampled_from([{}, {"name": "a"}])),
                    "nodeSelector": st.just({"disk": "ssd"}),
                    "tolerations": st.just([_MASTER]),
                    "volumes": st.just([{"name": "data", "emptyDir": {}}]),
                    "schedulingGates": st.just([{"name": "kueue.x-k8s.io/admission"}]),
                }
            )
        ),
    }
)
POLICIES: Json = st.sampled_from(["Never", "OnFailure", "Always", "ExitCode", ""])
CLEAN_POD_POLICIES: Json = st.sampled_from(["None", "All", "Running", ""])
MAIN_CONTAINERS: Json = st.sampled_from(["mpi", "sidecar", "a", ""])
COUNTS: Json = st.integers(0, 8)
ROLES = objects(
    {
        "replicas": odd(COUNTS),
        "restartPolicy": odd(POLICIES),
        "template": odd(TEMPLATES),
    }
)
REPLICA_SPECS = objects({"Launcher": odd(ROLES), "Worker": odd(ROLES)})
RUN_POLICIES = objects(
    {
        "cleanPodPolicy": odd(CLEAN_POD_POLICIES),
        "backoffLimit": odd(COUNTS),
        "activeDeadlineSeconds": odd(COUNTS),
        "ttlSecondsAfterFinished": COUNTS,
        "suspend": odd(st.booleans()),
        "schedulingPolicy": odd(objects({"queue": st.just("a"), "minAvailable": COUNTS})),
        "managedBy": st.sampled_from(
            [
                "kubeflow.org/training-operator",
                "kubeflow.org/mpi-operator",
                "kueue.x-k8s.io/multikueue",
                "",
            ]
        ),
    }
)
_SHARED: Mapping[str, Json] = {
    "runPolicy": odd(RUN_POLICIES),
    "mpiReplicaSpecs": odd(REPLICA_SPECS),
    "slotsPerWorker": odd(COUNTS),
    "runLauncherAsWorker": odd(st.booleans()),
    "sshAuthMountPath": st.sampled_from(["/root/.ssh", "/home/a/.ssh"]),
    "launcherCreationPolicy": st.sampled_from(["AtStartup", "WaitForWorkersReady"]),
    "mpiImplementation": odd(st.sampled_from(["OpenMPI", "Intel", "MPICH"])),
}
_V1 = {"cleanPodPolicy": odd(CLEAN_POD_POLICIES), "mainContainer": odd(MAIN_CONTAINERS)}
_V1ALPHA2 = {
    "backoffLimit": odd(COUNTS),
    "activeDeadlineSeconds": odd(COUNTS),
    "mpiDistribution": odd(st.sampled_from(["OpenMPI", "IntelMPI", "MPICH", ""])),
}
_V1ALPHA1 = {
    "gpus": odd(COUNTS),
    "gpusPerNode": odd(COUNTS),
    "processingUnits": odd(COUNTS),
    "processingUnitsPerNode": odd(COUNTS),
    "processingResourceType": odd(st.sampled_from(["cpu", "nvidia.com/gpu", "tpu"])),
    "replicas": odd(COUNTS),
    "launcherOnMaster": odd(st.booleans()),
    "template": odd(TEMPLATES),
    "mainContainer": odd(MAIN_CONTAINERS),
    "backoffLimit": odd(COUNTS),
    "activeDeadlineSeconds": odd(COUNTS),
}
SPECS: Mapping[str, Json] = {
    "v2beta1": objects(_SHARED),
    "v1": objects({**_SHARED, **_V1}),
    "v1alpha2": objects({**_SHARED, **_V1, **_V1ALPHA2}),
    "v1alpha1": objects({**_SHARED, **_V1ALPHA1}),
}
CONDITIONS = objects(
    {
        "type": st.sampled_from(["Created", "Running", "Succeeded", "Failed"]),
        "status": st.sampled_from(["True", "False"]),
        "lastUpdateTime": odd(st.just("2026-01-31T12:00:00Z")),
    }
)
STATUSES = objects(
    {
        "conditions": odd(_items(odd(CONDITIONS))),
        "replicaStatuses": odd(
            st.dictionaries(
                st.sampled_from(["Launcher", "Worker"]),
                odd(objects({"active": odd(COUNTS), "succeeded": COUNTS, "failed": COUNTS})),
            )
        ),
        "startTime": odd(st.just("2026-01-31T12:00:00Z")),
        "completionTime": odd(st.just("2026-01-31T12:30:00Z")),
        "lastReconcileTime": st.none(),
        "observedGeneration": COUNTS,
        "selector": st.just("a=b"),
        "launcherStatus": odd(st.sampled_from(["Active", "Succeeded", "Failed"])),
        "workerReplicas": odd(COUNTS),
    }
)
# Settings that authors of jobs make; the conversion's own books are not theirs.
SETTINGS: Json = st.fixed_dictionaries(
    {},
    optional={
        "example.com/note": st.just("a"),
        names.MAIN_CONTAINER: MAIN_CONTAINERS,
        names.LAUNCHER_RESTART_POLICY: POLICIES,
        names.WORKER_RESTART_POLICY: POLICIES,
        names.WRITTEN_IN: st.sampled_from([*VERSIONS, "v7"]),
        names.UNITS_PER_NODE: st.sampled_from(["1", "8", "many"]),
    },
)


def jobs(version: str, annotations: Json = SETTINGS) -> Json:
    """Jobs of one version, many of them partial or malformed below `spec` and `status`."""
    metadata = st.fixed_dictionaries(
        {"name": st.just("pi")},
        optional={"annotations": annotations, "labels": st.just({"queue": "a"})},
    )
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just(f"{GROUP}/{version}"),
            "kind": st.just(KIND),
            "metadata": metadata,
        },
        optional={"spec": odd(SPECS[version]), "status": odd(STATUSES)},
    )


def without_ours(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job without the annotations of the conversion."""
    metadata = dict(job.get("metadata") or {})
    annotations = metadata.pop("annotations", None) or {}
    kept = {name: value for name, value in annotations.items() if name not in OURS}
    return {**job, "metadata": metadata | ({"annotations": kept} if kept else {})}
