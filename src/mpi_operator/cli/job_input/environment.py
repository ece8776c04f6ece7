"""Variables of the command line in the containers of a job (`--env`)."""

import copy
from collections.abc import Iterable

from mpi_operator.api import annotations
from mpi_operator.api.types import ReplicaType
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.manifests.manifest_values import get
from mpi_operator.kube.resources import Manifest


def with_environment(job: Manifest, variables: Iterable[str]) -> Manifest:
    """A copy whose main containers have these variables, each given as `NAME=VALUE`."""
    added = [_variable(each) for each in variables]
    changed = copy.deepcopy(job)
    for role in ReplicaType:
        container = main_container(changed, role)
        if container is not None and added:
            names = {each["name"] for each in added}
            listed = container.get("env") or []
            if isinstance(listed, list):  # if not, the decoder says so
                kept = [each for each in listed if get(each, "name") not in names]
                container["env"] = [*kept, *added]
    return changed


def _variable(text: str) -> dict[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput(f"invalid --env {text}: expected NAME=VALUE")
    return {"name": name, "value": value}


def main_container(job: Manifest, role: ReplicaType) -> Manifest | None:
    """The main container of a role in a job that may be invalid; see `api.main_container`."""
    name = get(job, "metadata", "annotations", annotations.MAIN_CONTAINER)
    found = get(job, "spec", "mpiReplicaSpecs", role.value, "template", "spec", "containers")
    containers = (
        [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    )
    named = (each for each in containers if name and each.get("name") == name)
    return next(named, containers[0] if containers else None)
