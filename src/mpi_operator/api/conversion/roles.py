"""The roles of a job in the versions that have `mpiReplicaSpecs`."""

from collections.abc import Mapping

from mpi_operator.api.types import Manifest

from .fields import LAUNCHER, WORKER, with_implied
from .places import Place, given, value_at, without

LAUNCHER_POLICY, WORKER_POLICY = (*LAUNCHER, "restartPolicy"), (*WORKER, "restartPolicy")
POLICIES = (LAUNCHER_POLICY, WORKER_POLICY)

_FIRST_CONTAINER = ("template", "spec", "containers", "0")
WORKER_COMMAND = (*WORKER, *_FIRST_CONTAINER, "command")
WORKER_ARGS = (*WORKER, *_FIRST_CONTAINER, "args")

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
    return job if given(job, WORKER_COMMAND) else without(job, WORKER_ARGS)
