"""The fields that all older versions have in common: most of them are v2beta1's.

They are keyword-only, so they come after the fields that a version has of its own.
"""

from mpi_operator.api.types import (
    Implementation,
    Part,
    SchedulingPolicy,
)


class SharedRunPolicy(Part, frozen=True, kw_only=True):
    """Scheduling and suspension of a job."""

    scheduling_policy: SchedulingPolicy | None = None
    """How a gang scheduler schedules the pods. Has no effect without gang scheduling."""

    suspend: bool | None = None
    """Whether the job is suspended. Suspending a running job deletes its pods; resuming it starts
    it from the beginning."""


class SharedSpec(Part, frozen=True, kw_only=True):
    """Containers and images of a job."""

    main_container: str | None = None
    """Name of the container that runs MPI. Defaults to the first container."""

    ssh_auth_mount_path: str | None = None
    """Where the SSH keys are mounted: the `.ssh` directory of the user that the containers run as.
    Defaults to `/root/.ssh`."""

    mpi_implementation: Implementation | None = None
    """MPI implementation in the images. Defaults to `OpenMPI`."""
