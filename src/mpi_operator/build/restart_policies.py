"""Restart policies that pods do not have: `Always` for workers, `ExitCode` for both roles.

With `ExitCode` the pod is never restarted, and its exit code decides: low ones are final, because
they mean that the program failed; higher ones are signals, and retried.
"""

from mpi_operator.api import MPIJob, annotations
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import LauncherSpec, RestartPolicy, WorkerSpec
from mpi_operator.kube.resources import Manifest


def uses_exit_codes(job: MPIJob, replica: LauncherSpec | WorkerSpec) -> bool:
    """Whether the exit code of a pod decides if it is retried."""
    return _policy(job, replica) == annotations.EXIT_CODE


def pod_restart_policy(job: MPIJob, replica: LauncherSpec | WorkerSpec) -> str:
    """The restart policy of the pods of a role."""
    match _policy(job, replica):
        case annotations.EXIT_CODE:
            return RestartPolicy.NEVER.value
        case annotations.ALWAYS:
            return annotations.ALWAYS
        case _:
            return replica.restart_policy.value


def pod_failure_policy(job: MPIJob) -> Manifest:
    """The rules by which the Job controller judges a failed launcher; empty for its own rules."""
    launcher = job.spec.launcher
    if not uses_exit_codes(job, launcher):
        return {}
    disruption = {"type": "DisruptionTarget", "status": "True"}
    final = {
        "containerName": main_container(job, launcher)["name"],
        "operator": "In",
        "values": list(range(1, annotations.FIRST_RETRYABLE)),
    }
    rules = [
        # First, because a program may end with any code when its pod is evicted.
        {"action": "Ignore", "onPodConditions": [disruption]},
        {"action": "FailJob", "onExitCodes": final},
    ]
    return {"podFailurePolicy": {"rules": rules}}


def _policy(job: MPIJob, replica: LauncherSpec | WorkerSpec) -> str:
    is_launcher = isinstance(replica, LauncherSpec)
    name = annotations.LAUNCHER_RESTART_POLICY if is_launcher else annotations.WORKER_RESTART_POLICY
    return annotations.restart_policy(job.metadata.annotations, name)
