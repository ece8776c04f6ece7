"""Whether a launcher has ended.

Its pod is completed when its containers have ended well, is called succeeded a second later, and
its Job is complete a second or two after that. A Job of one pod can only complete once that has
succeeded, so success is taken from the pod. Whether a failure is the last one, the Job decides.
What success is worth where workers were lost is another question (`lost_workers`).
"""

from datetime import datetime

from . import pod_state
from .cached_types import moment
from .observed import Observed


def has_ended(seen: Observed) -> bool:
    return has_succeeded(seen) or (seen.launcher is not None and seen.launcher.is_done)


def has_succeeded(seen: Observed) -> bool:
    launcher, pod = seen.launcher, seen.successful_launcher
    if launcher is None or launcher.is_done:
        return launcher is not None and launcher.condition("Complete") is not None
    # What becomes of one that is deleted, the Job decides: it may have ended well because of that.
    return pod is not None and not pod_state.is_terminating(pod)


def success_time(seen: Observed) -> datetime | None:
    """When a launcher that succeeded had done its work, as far as anybody says."""
    launcher, pod = seen.launcher, seen.successful_launcher
    complete = launcher.condition("Complete") if launcher else None
    if launcher is not None and complete is not None:
        return moment(launcher.status.completion_time) or moment(complete.last_transition_time)
    ends = [status.state.terminated for status in pod.status.container_statuses] if pod else []
    times = (moment(end.finished_at or "") for end in ends if end)
    return max((time for time in times if time), default=None)
