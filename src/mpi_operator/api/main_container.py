"""The main container of a pod: the one that runs the program, or in a worker the ranks.

It is the first one, unless the job names another. Templates without that container (a worker whose
only container has another name) keep the first one.
"""

from . import annotations
from .types import Manifest, MPIJob, ReplicaSpec


def main_container(job: MPIJob, replica: ReplicaSpec) -> Manifest:
    """The main container of a role."""
    containers: list[Manifest] = replica.template["spec"]["containers"]
    return _named(job, containers) or containers[0]


def launcher_command_line(job: MPIJob) -> str:
    """What the launcher runs, as far as its template shows: a script hides what is in it."""
    container = main_container(job, job.spec.launcher)
    return " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))


def chosen_container(job: MPIJob, replica: ReplicaSpec) -> str:
    """The name of the main container, where the job names one that the role has; else empty."""
    found = _named(job, replica.template["spec"]["containers"])
    return str(found["name"]) if found else ""


def _named(job: MPIJob, containers: list[Manifest]) -> Manifest | None:
    name = job.metadata.annotations.get(annotations.MAIN_CONTAINER)
    return next((each for each in containers if name and each.get("name") == name), None)
