"""The state of a pod in one word, as kubectl's STATUS column has it."""

from mpi_operator.kube.resources import Manifest

ENDED = "Ended"
_OVER = ("Succeeded", "Failed")
_CRASH_LOOP = "CrashLoopBackOff"


def state_of(pod: Manifest, *, is_over: bool = False) -> str:
    """The state of a pod; `is_over` if the run of its job has ended, and all its processes."""
    status = pod.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    if failed_init_container(pod) is not None:
        is_waiting = not is_over and phase == "Pending" and not is_ending(pod)
        return f"Init:{_CRASH_LOOP if is_waiting and _is_waiting(pod) else 'Error'}"
    if phase in _OVER:
        return phase
    if is_over:
        return "Failed" if _has_crashed(status) else ENDED
    return "Terminating" if is_ending(pod) else phase


def is_ending(pod: Manifest) -> bool:
    """Whether a pod was deleted and its processes are terminating."""
    return "deletionTimestamp" in (pod.get("metadata") or {})


def failed_init_container(pod: Manifest) -> tuple[str, int] | None:
    """The init container that a pod could not get past, and its exit code."""
    for each in (pod.get("status") or {}).get("initContainerStatuses") or ():
        state = each.get("state") or {}
        ended = state.get("terminated") or (each.get("lastState") or {}).get("terminated") or {}
        if "running" not in state and ended.get("exitCode"):
            return each["name"], int(ended["exitCode"])
    return None


def _has_crashed(status: Manifest) -> bool:
    """Whether a container failed and its pod was ended instead of restarting it."""
    return any(
        "waiting" in (each.get("state") or {})
        and ((each.get("lastState") or {}).get("terminated") or {}).get("exitCode")
        for each in status.get("containerStatuses") or ()
    )


def _is_waiting(pod: Manifest) -> bool:
    return any(
        "waiting" in (each.get("state") or {}) and (each.get("lastState") or {})
        for each in pod["status"]["initContainerStatuses"]
    )
