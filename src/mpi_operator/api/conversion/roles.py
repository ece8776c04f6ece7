"""The roles of a job in the versions that have `mpiReplicaSpecs`."""

from collections.abc import Mapping

from mpi_operator.api.types import Manifest

from .fields import LAUNCHER, WORKER, main_container, with_implied
from .lossless import ANY
from .places import Place, get, value_at, without

LAUNCHER_POLICY, WORKER_POLICY = (*LAUNCHER, "restartPolicy"), (*WORKER, "restartPolicy")
POLICIES = (LAUNCHER_POLICY, WORKER_POLICY)

_WORKER_CONTAINERS = (*WORKER, "template", "spec", "containers")
IDLE_ARGS = ((*_WORKER_CONTAINERS, ANY, "command"), (*_WORKER_CONTAINERS, ANY, "args"))

_HUB_POLICY: Mapping[Place, str] = {LAUNCHER_POLICY: "OnFailure", WORKER_POLICY: "Never"}


def implied_policies(job: Manifest, policy: str) -> dict[Place, object]:
    """This restart policy for each role that the job has."""
    return {place: policy for place in POLICIES if isinstance(value_at(job, place[:-1]), dict)}


def with_hub_policies(job: Manifest) -> Manifest:
    """The job with the hub's default policies spelled out, for versions that have others."""
    roles = implied_policies(job, "")
    return with_implied(job, {place: _HUB_POLICY[place] for place in roles})


def without_idle_args(job: Manifest) -> Manifest:
    """The job without the arguments of workers that have no command.

    The old operators replaced both; Flyte puts the launcher's line there.
    """
    container = worker_container(job)
    return job if get(job, (*container, "command")) else without(job, (*container, "args"))


def worker_container(job: Manifest) -> Place:
    """The main container of workers: the one that the job names, if they have it, or the first."""
    containers, name = get(job, _WORKER_CONTAINERS), main_container(job)
    found = containers if name and isinstance(containers, list) else []
    named = (str(index) for index, each in enumerate(found) if get(each, ("name",)) == name)
    return (*_WORKER_CONTAINERS, next(named, "0"))
