"""CEL rules of the older versions.

The server applies only the rules of the version that a job is written in, so each version has its
own. They accept whatever a job of another version may look like in theirs.
"""

from mpi_operator.api.cel import (
    JOB,
    ROLES,
    SAME_MANAGER,
    SOME_WORKERS,
    Rule,
    containers,
    name_rules,
    some_workers,
    unless_stored,
)

from . import v1, v1alpha1, v1alpha2

# Only for changes: the launcher of a new job may run ranks because it has a GPU limit, which rules
# cannot see.
_SOME_WORKERS_V1 = {
    "rule": f"{some_workers('self')} || !('Worker' in oldSelf.mpiReplicaSpecs) "
    "|| (has(oldSelf.mpiReplicaSpecs['Worker'].replicas) "
    "&& oldSelf.mpiReplicaSpecs['Worker'].replicas == 0)",
    "message": SOME_WORKERS["message"],
    "fieldPath": SOME_WORKERS["fieldPath"],
}


def _one_total(spec: str) -> str:
    totals = ", ".join(f"has({spec}.{name})" for name in ("gpus", "processingUnits", "replicas"))
    return f"[{totals}].filter(is_set, is_set).size() <= 1"


# None is right for a job of another version that has no workers. Admission refuses it otherwise.
_ONE_TOTAL = unless_stored(_one_total) | {
    "message": "only one of gpus, processingUnits and replicas may be set; a job with gpus or "
    "processingUnits cannot be scaled: change that field instead",
    "fieldPath": ".replicas",
}
# Only for changes: a job of another version may have no workers.
_SOME_REPLICAS = {
    "rule": "!has(self.replicas) || !has(oldSelf.replicas) || self.replicas > 0 "
    "|| oldSelf.replicas == 0 || (has(self.runLauncherAsWorker) && self.runLauncherAsWorker)",
    "message": "must be at least 1 unless runLauncherAsWorker is true",
    "fieldPath": ".replicas",
}


def _replicas(job: str) -> str:
    return f"(has({job}.spec.replicas) ? {job}.spec.replicas : 0)"


RULES: dict[type, list[Rule]] = {
    v1.MPIJob: JOB,
    v1.MPIJobSpec: [_SOME_WORKERS_V1, SAME_MANAGER],
    v1.ReplicaSpecs: ROLES,
    v1alpha2.MPIJob: JOB,
    v1alpha2.MPIJobSpec: [SOME_WORKERS, SAME_MANAGER],
    v1alpha2.ReplicaSpecs: ROLES,
    v1alpha1.MPIJob: name_rules(_replicas),
    v1alpha1.MPIJobSpec: [_ONE_TOTAL, _SOME_REPLICAS, SAME_MANAGER, containers("")],
}
