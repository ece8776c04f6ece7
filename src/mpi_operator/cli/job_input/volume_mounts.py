"""Mounts of volumes that their pod does not have: the API server refuses such a pod."""

from collections.abc import Iterator

from mpi_operator.api.field_errors import FieldError, Path, shown
from mpi_operator.api.types import MPIJob, ReplicaType
from mpi_operator.api.validation import role_path
from mpi_operator.build.volumes import ADDED_NAMES
from mpi_operator.kube.resources import Manifest


def errors(job: MPIJob) -> Iterator[FieldError]:
    """Each mount of a valid job whose volume is missing."""
    roles = {ReplicaType.LAUNCHER: job.spec.launcher, ReplicaType.WORKER: job.spec.worker}
    for role, replica in roles.items():
        if replica is not None:
            path = role_path(role).field("template").field("spec")
            yield from _of_pod(replica.template.get("spec") or {}, path)


def _of_pod(pod: Manifest, path: Path) -> Iterator[FieldError]:
    known = {*ADDED_NAMES, *(each["name"] for each in pod.get("volumes") or ())}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or ()):
            mounts = path.field(field).entry(index).field("volumeMounts")
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if mount["name"] not in known:
                    message = f"Not found: {shown(mount['name'])}: the pod has no such volume"
                    yield FieldError(mounts.entry(number).field("name"), message)
