"""Empty choices: clients in Go may write the zero value of a field that they do not set."""

from mpi_operator.api.types import Manifest

from .fields import CLEAN_POD_POLICY, LAUNCHER, RUN_POLICY, WORKER
from .places import Place, value_at, without

_CHOICES: tuple[Place, ...] = (
    *(
        ("spec", name)
        for name in (
            "cleanPodPolicy",
            "mpiDistribution",
            "mpiImplementation",
            "launcherCreationPolicy",
            "processingResourceType",
        )
    ),
    ("spec", "template", "spec", "restartPolicy"),
    (*LAUNCHER, "restartPolicy"),
    (*WORKER, "restartPolicy"),
    (*RUN_POLICY, "managedBy"),
    CLEAN_POD_POLICY,
)


def without_empty_choices(job: Manifest) -> Manifest:
    """The job of an older version without the choices that it leaves empty."""
    for place in _CHOICES:
        if value_at(job, place) == "":
            job = without(job, place)
    return job
