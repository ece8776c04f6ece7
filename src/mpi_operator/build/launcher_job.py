"""The launcher: a Job whose pod runs mpirun. Kubernetes retries it until it succeeds."""

from collections.abc import Mapping

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.api.labels import Role
from mpi_operator.api.launcher_transport import uses_exec
from mpi_operator.kube.resources import JOBS, Manifest

from . import exec_shell, remote_shell
from .config_map import HOSTFILE_PATH, launcher_volume
from .implementations import launcher_environment
from .ownership import metadata
from .pod import Additions, dns_config, pod_metadata, pod_spec
from .restart_policies import pod_failure_policy
from .settings import Settings
from .ssh_secret import ssh_volume

# NVIDIA's container runtime gives all GPUs of the node to a container unless it opts out.
_NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}

_LIMITS = ("activeDeadlineSeconds", "backoffLimit")

# Kueue sets these while a job is suspended; Kubernetes allows changing them in a suspended Job.
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
_SCHEDULING_METADATA = ("labels", "annotations")


def launcher_job(job: MPIJob, settings: Settings, *, suspend: bool) -> Manifest:
    """The launcher of a job.

    It has no TTL: if it disappeared before the result is recorded, the operator would create and
    run it again.
    """
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": metadata(job, names.launcher(job), labels.object_labels(job)),
        "spec": {
            **_limits(job),
            # Two launchers would do the work twice, so replace a pod only after it has ended.
            "podReplacementPolicy": "Failed",
            **pod_failure_policy(job),
            **({"suspend": True} if suspend else {}),
            "template": _template(job, settings),
        },
    }


def resumed(stored: Manifest, job: MPIJob, settings: Settings) -> Manifest:
    """A stored launcher, resumed with the scheduling directives of the job's current template.

    Its limits are those of the job again: it may have been a retry, which had less of them. The
    rest stays as stored, because Kubernetes allows no other changes.
    """
    spec = {name: value for name, value in stored["spec"].items() if name not in _LIMITS}
    template = spec["template"]
    wanted = _template(job, settings)
    return {
        **stored,
        "spec": {
            **spec,
            **_limits(job),
            "suspend": False,
            "template": {
                **template,
                "metadata": _relabelled(template.get("metadata") or {}, wanted["metadata"]),
                "spec": _rescheduled(template["spec"], wanted["spec"]),
            },
        },
    }


def _limits(job: MPIJob) -> Manifest:
    policy = job.spec.run_policy
    limits = (policy.active_deadline_seconds, policy.backoff_limit)
    return {name: limit for name, limit in zip(_LIMITS, limits, strict=True) if limit is not None}


def _template(job: MPIJob, settings: Settings) -> Manifest:
    launcher = job.spec.launcher
    return {
        "metadata": pod_metadata(job, launcher, labels.launcher_labels(job), settings),
        "spec": {**_pod_spec(job, settings), "hostname": names.launcher(job)},
    }


def _pod_spec(job: MPIJob, settings: Settings) -> Manifest:
    launcher = job.spec.launcher
    if not uses_exec(job):
        return pod_spec(job, launcher, _additions(job, settings), settings)
    spec = pod_spec(job, launcher, _exec_additions(job, settings), settings)
    searches = {"dnsConfig": dns_config(job, launcher, settings)}
    return exec_shell.with_client(job, spec | searches, settings)


def _exec_additions(job: MPIJob, settings: Settings) -> Additions:
    return Additions(
        environment={
            "K_MPI_JOB_ROLE": Role.LAUNCHER.value,
            **launcher_environment(job, HOSTFILE_PATH),
            **exec_shell.launcher_environment(job),
            **({} if job.spec.run_launcher_as_worker else _NO_GPUS),
        },
        volumes=(exec_shell.CLIENT_VOLUME, launcher_volume(job, settings)),
    )


def _additions(job: MPIJob, settings: Settings) -> Additions:
    return Additions(
        environment={
            "K_MPI_JOB_ROLE": Role.LAUNCHER.value,
            **launcher_environment(job, HOSTFILE_PATH),
            **remote_shell.launcher_environment(job, settings),
            **({} if job.spec.run_launcher_as_worker else _NO_GPUS),
        },
        volumes=(ssh_volume(job), launcher_volume(job, settings)),
    )


def _relabelled(stored: Manifest, wanted: Manifest) -> Manifest:
    """The stored metadata with exactly the wanted labels and annotations, and Kubernetes' labels.

    Kueue takes its own labels and annotations off the job when it suspends it.
    """
    others = {name: value for name, value in stored.items() if name not in _SCHEDULING_METADATA}
    labels = (stored.get("labels") or {}).items()
    kept = {name: value for name, value in labels if _is_of_job_controller(name)}
    return {**others, **wanted, "labels": {**kept, **wanted["labels"]}}


def _is_of_job_controller(label: str) -> bool:
    return label.startswith("batch.kubernetes.io/") or label in ("controller-uid", "job-name")


def _rescheduled(stored: Manifest, wanted: Mapping[str, object]) -> Manifest:
    """The stored pod spec with exactly the wanted scheduling directives."""
    kept = {name: value for name, value in stored.items() if name not in _SCHEDULING_DIRECTIVES}
    return kept | {name: wanted[name] for name in _SCHEDULING_DIRECTIVES if wanted.get(name)}
