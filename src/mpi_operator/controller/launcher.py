"""When the launcher is created, started and stopped."""

from collections.abc import Iterator
from datetime import datetime

from mpi_operator.api.types import MPIJob
from mpi_operator.build import launcher_job
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import JOBS, PODS

from . import pod_state
from .actions import Action, AdoptLauncher, Create, Resume, delete, patch
from .events import JobEvent, warning
from .launcher_retry import may_try_again, retiring_actions, with_limits_left
from .launcher_status import has_ended
from .observed import Observed


def starting_actions(seen: Observed, settings: Settings, now: datetime) -> Iterator[Action]:
    """Start the launcher as soon as it may."""
    if seen.retired is not None:
        yield from retiring_actions(seen)
        return
    if seen.job.spec.launcher_waits and not seen.are_workers_ready:
        return
    launcher = seen.launcher
    if launcher is None:
        if not seen.retries.used or may_try_again(seen, now):
            yield _creation(seen, with_limits_left(seen, now), settings, suspend=False)
    elif launcher.spec.suspend and launcher.status.active == 0:
        # While pods of the last run are ending, Kubernetes refuses to change their template.
        yield Resume(launcher.metadata.key, launcher.metadata.uid, seen.job)


def adopting_actions(seen: Observed) -> Iterator[Action]:
    """Adopt a launcher that the Go operator created: only labelled objects are watched."""
    strays = seen.stray_launcher_pods
    if seen.is_finished:  # a pod that ends anyway needs no stopping
        strays = tuple(
            pod for pod in strays if not (pod_state.has_ended(pod) or pod_state.is_terminating(pod))
        )
    if strays:
        yield AdoptLauncher(seen.job)


def suspended_creation(seen: Observed, settings: Settings) -> Iterator[Action]:
    """Create the launcher so that it does not start."""
    if seen.retired is not None:
        yield from retiring_actions(seen)
    elif seen.launcher is None:
        yield _creation(seen, seen.job, settings, suspend=True)


def stopping_actions(seen: Observed) -> Iterator[Action]:
    """Stop the launcher's pods and keep its Job. To stop a bare pod is to delete it."""
    launcher, bare = seen.launcher, seen.bare_launcher
    if bare is not None:
        if not (pod_state.has_ended(bare) or pod_state.is_terminating(bare)):
            yield delete(PODS, bare)
    elif launcher is not None and not launcher.spec.suspend and not has_ended(seen):
        yield patch(JOBS, launcher, {"spec": {"suspend": True}})


def _creation(seen: Observed, job: MPIJob, settings: Settings, *, suspend: bool) -> Create:
    manifest = launcher_job.launcher_job(job, settings, suspend=suspend)
    return Create(JOBS, manifest, _restart_policy_events(seen))


def _restart_policy_events(seen: Observed) -> tuple[JobEvent, ...]:
    template = seen.job.spec.launcher.template.get("spec") or {}
    if not template.get("restartPolicy"):
        return ()
    message = "Restart policy in pod template overridden by restart policy in replica spec"
    return (warning("SetPodTemplateRestartPolicy", message),)
