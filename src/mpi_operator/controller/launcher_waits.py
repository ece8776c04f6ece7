"""For which workers a launcher waits, in its own words.

Whether names resolve and who answers in the network of a job only its launcher knows. Its remote
shell says so in the log, every half minute while it waits. So the log is listened to: when the
launcher has run for half a minute, then less and less often, and often while it waits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpi_operator.api import conditions, names
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.build import remote_shell
from mpi_operator.build.implementations import chooses_remote_shell
from mpi_operator.build.scripts import WAITING
from mpi_operator.build.settings import Settings

from . import pod_state, problems
from .cached_types import Pod
from .observed import Heard, Observed
from .problems import Trouble

# The remote shell repeats itself every half minute, and later where name servers are slow.
FRESH = timedelta(minutes=2)
_FIRST = timedelta(seconds=30)
_WHILE_IT_WAITS = timedelta(seconds=30)
_SENTENCE = "The launcher waits for "
_LONGEST_CAUSE = 200
_WAITING = WAITING.encode()


@dataclass(frozen=True)
class Hearing:
    """Whom to listen to, and in how long."""

    pod: str
    uid: str
    container: str
    wait: timedelta

    @property
    def is_due(self) -> bool:
        return self.wait <= timedelta(0)


def next_hearing(seen: Observed, settings: Settings, now: datetime) -> Hearing | None:
    """When the launcher is to be listened to; None where it would have nothing to say."""
    pod = _speaker(seen, settings)
    if pod is None:
        return None
    container = seen.job.spec.launcher.template["spec"]["containers"][0]["name"]
    wait = _next_time(seen, pod, now) - now
    return Hearing(pod.metadata.name, pod.metadata.uid, container, wait)


def waits_in(job: MPIJob, lines: Iterable[bytes]) -> Mapping[int, str]:
    """The workers that are waited for, and why."""
    waits = {}
    for line in lines:
        _, _, told = line.partition(_WAITING)
        worker, _, rest = told.decode(errors="replace").partition(",")
        index = names.worker_index(job, worker)
        if index is not None:
            waits[index] = rest.partition(": ")[2].strip()[:_LONGEST_CAUSE]
    return waits


def launcher_waits(seen: Observed) -> Trouble | None:
    """What the launcher says about workers that run. Of the others it is known why they do not."""
    heard = seen.heard.waits if seen.heard else {}
    waits = {index: cause for index, cause in heard.items() if index in seen.running_hosts}
    if not waits:
        return None
    index = min(waits)
    name = names.worker(seen.job, index)
    whom = f"{len(waits)} workers, such as {name}" if len(waits) > 1 else name
    return Trouble(problems.Reason.LAUNCHER_WAITS, f"{_SENTENCE}{whom}: {waits[index]}")


def still_heard(heard: Heard | None, seen: Observed, now: datetime) -> Heard | None:
    """What was heard of the launcher that runs; nothing, of the first one that we see.

    It counts from its beginning. But if it has run for long, another process has listened to it; if
    it waited then, the job says so.
    """
    pod = _running(seen)
    if pod is None or (heard is not None and heard.uid == pod.metadata.uid):
        return heard if pod else None
    running = conditions.condition(seen.job.status.conditions, ConditionType.RUNNING)
    is_told = running is not None and _SENTENCE in running.message
    age = pod_state.running_time(pod, now)
    is_known = heard is None and age >= _FIRST and not is_told
    return Heard(pod.metadata.uid, now if is_known else now - age)


def _running(seen: Observed) -> Pod | None:
    """The launcher's pod that is at work."""
    running = filter(pod_state.is_running, seen.launcher_pods)
    return max(running, key=pod_state.by_age, default=None)


def _speaker(seen: Observed, settings: Settings) -> Pod | None:
    """The pod that would say it, and can be heard."""
    job, pod = seen.job, _running(seen)
    has_remote_shell = remote_shell.is_used(job, settings) and not chooses_remote_shell(job)
    if pod is None or pod_state.silence(pod) or not job.spec.worker_count:
        return None
    return pod if has_remote_shell else None


def _next_time(seen: Observed, pod: Pod, now: datetime) -> datetime:
    began = now - pod_state.running_time(pod, now)
    heard = seen.heard
    if heard is None or heard.at <= began:
        return began + _FIRST
    if heard.waits:
        return heard.at + _WHILE_IT_WAITS
    return heard.at + max(heard.at - began, _FIRST)
