"""The profile and the transport of a job are pinned: what it does must not change while it runs.

The annotations of a job can be edited. So the first reconcile stores what matters with the job's
ConfigMap, and from then on that wins. A ConfigMap with our labels that stores nothing belongs to a
job of v2beta1 that uses ssh: our operator writes both together, also when it adopts a ConfigMap.
One without our labels is another operator's, and does not say what version it is about.
"""

from msgspec.structs import replace

from mpi_operator.api import annotations, labels
from mpi_operator.api.launcher_transport import transport
from mpi_operator.api.profiles import PROFILES, profile
from mpi_operator.api.types import VERSION, MPIJob

from .cached_types import StoredConfigMap


def pins(job: MPIJob) -> dict[str, str]:
    """The annotations of the ConfigMap: where the job is not as v2beta1, or not as its profile."""
    version = job.metadata.annotations.get(annotations.WRITTEN_IN, VERSION)
    is_other = version in PROFILES and version != VERSION
    way = transport(job).value
    return {
        **({annotations.PROFILE: version} if is_other else {}),
        **({annotations.TRANSPORT: way} if way != profile(job).transport else {}),
    }


def pinned(job: MPIJob, config_map: StoredConfigMap | None) -> MPIJob:
    """The job as its ConfigMap says that it began."""
    if config_map is None:
        return job
    stored = config_map.metadata.annotations
    version = _stored_version(job, config_map)
    if version in PROFILES:
        job = _annotated(job, annotations.WRITTEN_IN, version, default=VERSION)
    way = annotations.transport(stored) or profile(job).transport
    return job if transport(job) == way else _annotated(job, annotations.TRANSPORT, way)


def _stored_version(job: MPIJob, config_map: StoredConfigMap) -> str:
    found = config_map.metadata
    is_ours = labels.object_labels(job).items() <= found.labels.items()
    return found.annotations.get(annotations.PROFILE, VERSION if is_ours else "")


def _annotated(job: MPIJob, name: str, value: str, default: str = "") -> MPIJob:
    given = job.metadata.annotations
    if given.get(name, default) == value:
        return job
    return replace(job, metadata=replace(job.metadata, annotations=given | {name: value}))
