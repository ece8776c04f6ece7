"""The profile of a job is pinned: what a job does must not change while it runs.

The annotation `written-in` of a job can be edited. So the first reconcile stores it with the job's
ConfigMap, and from then on that wins. A ConfigMap with our labels that stores none belongs to a job
of v2beta1: our operator writes both together, also when it adopts a ConfigMap. One without our
labels is another operator's, and says nothing.
"""

from msgspec.structs import replace

from mpi_operator.api import annotations, labels
from mpi_operator.api.profiles import PROFILES
from mpi_operator.api.types import VERSION, MPIJob

from .cached_types import StoredConfigMap


def profile_annotation(job: MPIJob) -> dict[str, str]:
    """The annotation of the ConfigMap; none where the job has the profile of v2beta1."""
    version = job.metadata.annotations.get(annotations.WRITTEN_IN, VERSION)
    return {annotations.PROFILE: version} if version in PROFILES and version != VERSION else {}


def pinned(job: MPIJob, config_map: StoredConfigMap | None) -> MPIJob:
    """The job as written in the version that its ConfigMap stores."""
    stored = _stored_version(job, config_map)
    given = job.metadata.annotations
    if stored not in PROFILES or given.get(annotations.WRITTEN_IN, VERSION) == stored:
        return job
    metadata = replace(job.metadata, annotations=given | {annotations.WRITTEN_IN: stored})
    return replace(job, metadata=metadata)


def _stored_version(job: MPIJob, config_map: StoredConfigMap | None) -> str | None:
    if config_map is None:
        return None
    found = config_map.metadata
    is_ours = labels.object_labels(job).items() <= found.labels.items()
    return found.annotations.get(annotations.PROFILE, VERSION if is_ours else None)
