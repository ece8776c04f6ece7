"""v1alpha1's status: the state of the launcher and the number of workers, in one word each."""

from collections.abc import Iterator, Mapping
from typing import Any

from mpi_operator.api.conditions import Reason
from mpi_operator.api.types import ConditionType, Manifest

from .places import ABSENT, get, value_at, with_value

_STATUS = ("status",)
_LAUNCHER_STATUS = (*_STATUS, "launcherStatus")
_WORKER_REPLICAS = (*_STATUS, "workerReplicas")
_CONDITIONS = (*_STATUS, "conditions")
_ROLES = (*_STATUS, "replicaStatuses")
_ACTIVE_WORKERS = (*_ROLES, "Worker", "active")

# By state, the first that applies: the condition, its reason and message, the launcher's count.
_STATES: Mapping[str, tuple[str, str, str, str]] = {
    "Succeeded": (
        ConditionType.SUCCEEDED.value,
        Reason.SUCCEEDED.value,
        "successfully completed.",
        "succeeded",
    ),
    "Failed": (ConditionType.FAILED.value, Reason.FAILED.value, "has failed", "failed"),
    "Active": (ConditionType.RUNNING.value, Reason.RUNNING.value, "is running.", "active"),
}


def down(job: Manifest) -> Manifest:
    """The job with v1alpha1's own status fields besides the hub's."""
    if not isinstance(job.get("status"), dict):
        return job
    true = set(_true_conditions(get(job, _CONDITIONS)))
    state = next((state for state, known in _STATES.items() if known[0] in true), None)
    if state is not None:
        job = with_value(job, _LAUNCHER_STATUS, state)
    workers = get(job, _ACTIVE_WORKERS)
    return with_value(job, _WORKER_REPLICAS, workers) if workers else job


def up(job: Manifest) -> Manifest:
    """The job with the conditions and counts that its own status fields stand for, if it has none.

    The own fields themselves are unknown to the hub and pruned.
    """
    state, workers = get(job, _LAUNCHER_STATUS), get(job, _WORKER_REPLICAS)
    known = _STATES.get(state) if isinstance(state, str) else None
    has_conditions = value_at(job, _CONDITIONS) is not ABSENT
    if known is not None and not has_conditions:
        job = with_value(job, _CONDITIONS, [_condition(job, known)])
        job = _with_counts(job, "Launcher", {known[3]: 1})
    if type(workers) is int and value_at(job, (*_ROLES, "Worker")) is ABSENT:
        job = _with_counts(job, "Worker", {"active": workers})
    return job


def _true_conditions(conditions: Any) -> Iterator[str]:
    for each in conditions if isinstance(conditions, list) else ():
        kind = get(each, ("type",))
        if isinstance(kind, str) and get(each, ("status",)) == "True":
            yield kind


def _condition(job: Manifest, known: tuple[str, str, str, str]) -> dict[str, Any]:
    kind, reason, message, _ = known
    namespace, name = (get(job, ("metadata", key)) for key in ("namespace", "name"))
    condition = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": f"MPIJob {namespace}/{name} {message}",
    }
    since = get(job, ("status", "completionTime")) or get(job, ("status", "startTime"))
    if isinstance(since, str):
        condition |= {"lastUpdateTime": since, "lastTransitionTime": since}
    return condition


def _with_counts(job: Manifest, role: str, counts: dict[str, Any]) -> Manifest:
    if value_at(job, (*_ROLES, role)) is not ABSENT:
        return job
    result: Manifest = with_value(job, (*_ROLES, role), counts)
    return result
