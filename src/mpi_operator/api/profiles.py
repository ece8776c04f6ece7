"""What differs between jobs by the API version that they were written in.

Only what neither the spec of v2beta1 nor an annotation can express: the conversion has put the rest
there. Everything else reads the profile of a job, never its version.
"""

from collections.abc import Mapping

import msgspec

from . import annotations
from .types import VERSION, MPIJob


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one API version."""

    version: str

    launcher_role: str = "launcher"
    """The value of the label `job-role` of launchers."""

    ttl_deletes_job: bool = False
    """Whether `ttlSecondsAfterFinished` deletes the MPIJob, and not only its launcher."""

    cleans_launcher: bool = False
    """Whether `cleanPodPolicy` is about the launcher as well."""

    failed_worker_fails_job: bool = False
    """Whether a failed worker ends the job instead of being replaced."""

    reports_restarts: bool = False
    """Whether a launcher that is retried is reported as `Restarting`."""

    oversubscribes: bool = False
    """Whether `mpirun` may start more ranks than there are slots."""

    transport: str = annotations.SSH
    """How launchers reach their workers, unless the job says it."""


_V2BETA1 = Profile(VERSION)
PROFILES: Mapping[str, Profile] = {
    each.version: each
    for each in (
        _V2BETA1,
        Profile(
            "v1",
            launcher_role="master",  # TrainingClient looks for it
            ttl_deletes_job=True,
            cleans_launcher=True,
            failed_worker_fails_job=True,
            reports_restarts=True,
            oversubscribes=True,  # Flyte asks for the ranks of all slots, and for one slot only
            transport=annotations.EXEC,
        ),
        Profile("v1alpha2", reports_restarts=True, transport=annotations.EXEC),
        Profile("v1alpha1", transport=annotations.EXEC),
    )
}


def profile(job: MPIJob) -> Profile:
    """The profile of a job; that of v2beta1 if its annotation names no known version."""
    return PROFILES.get(job.metadata.annotations.get(annotations.WRITTEN_IN, ""), _V2BETA1)
