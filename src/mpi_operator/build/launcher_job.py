"""The launcher: a Job whose pod runs mpirun, tried again by Kubernetes until it succeeds."""

from collections.abc import Mapping

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.labels import Role
from mpi_operator.kube.resources import JOBS, Manifest

from . import remote_shell
from .config_map import HOSTFILE_PATH, launcher_volume
from .implementations import launcher_environment
from .ownership import metadata
from .pod import Equipment, pod_metadata, pod_spec
from .settings import Settings
from .ssh_secret import ssh_volume

# NVIDIA's container runtime gives every GPU of the node to a container that does not refuse.
_NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}

# What Kueue decides about a job while it is suspended; Kubernetes lets a suspended Job take it.
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


def launcher_job(job: MPIJob, settings: Settings, *, suspend: bool) -> Manifest:
    """The launcher of a job.

    It has no time to live: one that vanished before the end of its job was recorded would be
    created, and run, again.
    """
    policy = job.spec.run_policy
    limits = {
        "activeDeadlineSeconds": policy.active_deadline_seconds,
        "backoffLimit": policy.backoff_limit,
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": metadata(job, names.launcher(job), labels.object_labels(job)),
        "spec": {
            **{name: limit for name, limit in limits.items() if limit is not None},
            # Not while the old pod still ends: two launchers would do the work twice.
            "podReplacementPolicy": "Failed",
            **({"suspend": True} if suspend else {}),
            "template": _template(job, settings),
        },
    }


def resumed(stored: Manifest, job: MPIJob, settings: Settings) -> Manifest:
    """A stored launcher that goes on, where today's template of the job wants it to.

    The rest stays as stored, for Kubernetes allows no more to change.
    """
    spec, template = stored["spec"], stored["spec"]["template"]
    wanted = _template(job, settings)
    return {
        **stored,
        "spec": {
            **spec,
            "suspend": False,
            "template": {
                **template,
                "metadata": _merged(template.get("metadata") or {}, wanted["metadata"]),
                "spec": _redirected(template["spec"], wanted["spec"]),
            },
        },
    }


def _template(job: MPIJob, settings: Settings) -> Manifest:
    launcher = job.spec.launcher
    return {
        "metadata": pod_metadata(job, launcher, labels.launcher_labels(job), settings),
        "spec": {
            **pod_spec(job, launcher, _equipment(job, settings), settings),
            "hostname": names.launcher(job),
        },
    }


def _equipment(job: MPIJob, settings: Settings) -> Equipment:
    return Equipment(
        environment={
            "K_MPI_JOB_ROLE": Role.LAUNCHER.value,
            **launcher_environment(job, HOSTFILE_PATH),
            **remote_shell.launcher_environment(job, settings),
            **({} if job.spec.run_launcher_as_worker else _NO_GPUS),
        },
        volumes=(ssh_volume(job), launcher_volume(job, settings)),
    )


def _merged(stored: Manifest, wanted: Manifest) -> Manifest:
    """Metadata with what is wanted added. What is there stays: Kubernetes' own labels are too."""
    return stored | {
        field: {**(stored.get(field) or {}), **values} for field, values in wanted.items()
    }


def _redirected(stored: Manifest, wanted: Mapping[str, object]) -> Manifest:
    """A pod that is scheduled as another one; what that one does not ask for is gone."""
    kept = {field: value for field, value in stored.items() if field not in _DIRECTIVES}
    return kept | {field: wanted[field] for field in _DIRECTIVES if wanted.get(field)}
