"""The resources that must be free in the cluster before a gang starts."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from mpi_operator.api import MPIJob
from mpi_operator.kube.resources import Manifest

from .pod import Replica
from .quantity import ZERO, Quantity, parse_quantity


def min_resources(
    job: MPIJob, members: int, priorities: Mapping[str, int], *, with_launcher: bool
) -> dict[str, str]:
    """The sum of the requests of `members` pods of the job."""
    total: dict[str, Quantity] = {}
    for role in _reduced(_roles(job, priorities, with_launcher=with_launcher), members):
        for name, amount in _requests(role.replica).items():
            total[name] = total.get(name, ZERO) + amount * role.pods
    return {name: str(amount) for name, amount in total.items()}


class _Role(NamedTuple):
    """The number and priority of the pods of one role."""

    replica: Replica
    pods: int
    priority: int


def _roles(job: MPIJob, priorities: Mapping[str, int], *, with_launcher: bool) -> Iterator[_Role]:
    """The roles of a job; of equal priority, the first is left out first."""
    if worker := job.spec.worker:
        yield _Role(worker, worker.replicas, _priority(worker, priorities))
    if with_launcher:
        yield _Role(job.spec.launcher, 1, _priority(job.spec.launcher, priorities))


def _reduced(roles: Iterator[_Role], members: int) -> Iterator[_Role]:
    """The roles with `members` pods in total, leaving out pods of low priority first."""
    in_order = sorted(roles, key=lambda role: role.priority)
    surplus = max(sum(role.pods for role in in_order) - members, 0)
    for role in in_order:
        left_out = min(surplus, role.pods)
        surplus -= left_out
        if role.pods > left_out:
            yield role._replace(pods=role.pods - left_out)


def _priority(replica: Replica, priorities: Mapping[str, int]) -> int:
    return priorities.get(replica.template["spec"].get("priorityClassName") or "", 0)


def _requests(replica: Replica) -> dict[str, Quantity]:
    """The requests of one pod."""
    total: dict[str, Quantity] = {}
    for container in replica.template["spec"]["containers"]:
        for name, amount in _container_requests(container).items():
            total[name] = total.get(name, ZERO) + amount
    return total


def _container_requests(container: Manifest) -> dict[str, Quantity]:
    resources = container.get("resources") or {}
    # A limit is the default of a request.
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    parsed = {}
    for name, amount in requests.items():
        # The API server rejects a pod with an invalid quantity, and names the field.
        with suppress(ValueError):
            parsed[name] = parse_quantity(amount)
    return parsed
