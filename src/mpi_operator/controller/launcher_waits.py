"""For which workers a launcher waits, in its own words.

Whether names resolve and who answers in the network of a job only its launcher knows. Its remote
shell says so in the log, every half minute while it waits. So the log is listened to: when the
launcher has run for half a minute, then less and less often, and often while it waits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpi_operator.api import conditions, names
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.build import remote_shell
from mpi_operator.build.implementations import chooses_remote_shell
from mpi_operator.build.scripts import WAITING
from mpi_operator.build.settings import Settings

from . import pods, trouble
from .clock import ahead
from .kinds import Pod
from .observed import Heard, Observed, Speaker
from .trouble import Trouble

# The remote shell repeats itself within a minute, however slow the name servers are.
FRESH = timedelta(minutes=1)
_FIRST = timedelta(seconds=30)
_WHILE_IT_WAITS = timedelta(seconds=30)
_SENTENCE = "The launcher waits for "


@dataclass(frozen=True)
class _Wait:
    index: int
    cause: str


def speaker_to_hear(seen: Observed, settings: Settings, now: datetime) -> Speaker | None:
    """The launcher, when it is time to listen to it."""
    pod = _speaker(seen, settings)
    if pod is None or _next_time(seen, pod, now) > now:
        return None
    container = seen.job.spec.launcher.template["spec"]["containers"][0]["name"]
    return Speaker(pod.metadata.name, pod.metadata.uid, container)


def time_to_listen(seen: Observed, settings: Settings, now: datetime) -> timedelta | None:
    """In how long that is."""
    pod = _speaker(seen, settings)
    return ahead(_next_time(seen, pod, now) - now) if pod is not None else None


def launcher_waits(seen: Observed) -> Trouble | None:
    """What the launcher says about workers that run. Of the others it is known why they do not."""
    waits = {
        wait.index: wait.cause
        for wait in _waits(seen.job, _words(seen))
        if wait.index in seen.running_hosts
    }
    if not waits:
        return None
    index = min(waits)
    name = names.worker(seen.job, index)
    whom = f"{len(waits)} workers, such as {name}" if len(waits) > 1 else name
    return Trouble(trouble.Reason.LAUNCHER_WAITS, f"{_SENTENCE}{whom}: {waits[index]}")


def first_heard(seen: Observed, now: datetime) -> Heard | None:
    """Nothing, from the first launcher that this process sees: it counts from there.

    One that has run for longer has been listened to by another process. If it waited then, the job
    says so.
    """
    pod = _running(seen)
    if pod is None:
        return None
    running = conditions.condition(seen.job.status.conditions, ConditionType.RUNNING)
    is_told = running is not None and _SENTENCE in running.message
    age = pods.running_time(pod, now)
    return Heard(pod.metadata.uid, now - age if is_told or age < _FIRST else now)


def _speaker(seen: Observed, settings: Settings) -> Pod | None:
    job = seen.job
    has_remote_shell = remote_shell.is_used(job, settings) and not chooses_remote_shell(job)
    return _running(seen) if has_remote_shell and job.spec.worker_count else None


def _running(seen: Observed) -> Pod | None:
    return max(filter(pods.is_running, seen.launcher_pods), key=pods.by_age, default=None)


def _words(seen: Observed) -> str:
    pod, heard = _running(seen), seen.heard
    return heard.words if pod and heard and heard.uid == pod.metadata.uid else ""


def _next_time(seen: Observed, pod: Pod, now: datetime) -> datetime:
    began = now - pods.running_time(pod, now)
    heard = seen.heard
    if heard is None or heard.uid != pod.metadata.uid or heard.at < began:
        return began + _FIRST
    if any(_waits(seen.job, heard.words)):
        return heard.at + _WHILE_IT_WAITS
    return heard.at + max(heard.at - began, _FIRST)


def _waits(job: MPIJob, words: str) -> Iterator[_Wait]:
    for line in words.splitlines():
        _, _, told = line.partition(WAITING)
        worker, _, rest = told.partition(",")
        index = names.worker_index(job, worker)
        if index is not None:
            yield _Wait(index, rest.partition(": ")[2].strip())
