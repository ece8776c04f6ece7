"""The profile of a job is pinned: what a job does must not change while it runs.

The annotation `written-in` of a job can be edited. So the first reconcile stores it with the job's
ConfigMap, and from then on that wins. A job of v2beta1 has no such annotation, and needs none.
"""

from msgspec.structs import replace

from mpi_operator.api import annotations
from mpi_operator.api.profiles import PROFILES
from mpi_operator.api.types import VERSION, MPIJob

from .cached_types import StoredConfigMap


def profile_annotation(job: MPIJob) -> dict[str, str]:
    """The annotation of the ConfigMap; none where the job has the profile of v2beta1."""
    version = job.metadata.annotations.get(annotations.WRITTEN_IN, VERSION)
    return {annotations.PROFILE: version} if version in PROFILES and version != VERSION else {}


def pinned(job: MPIJob, config_map: StoredConfigMap | None) -> MPIJob:
    """The job as written in the version that its ConfigMap stores."""
    stored = config_map.metadata.annotations.get(annotations.PROFILE) if config_map else None
    given = job.metadata.annotations
    if stored not in PROFILES or given.get(annotations.WRITTEN_IN) == stored:
        return job
    metadata = replace(job.metadata, annotations=given | {annotations.WRITTEN_IN: stored})
    return replace(job, metadata=metadata)
