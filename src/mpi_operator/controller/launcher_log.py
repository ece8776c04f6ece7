"""What the log and the termination message of a launcher say about its workers.

Only the launcher knows whether names resolve and which workers answer in the network of a job. Its
remote shell prints that to the log every 30s while it waits, so the operator reads the log: first
after 30s, then less and less often, and every 30s while the launcher waits.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mpi_operator.api import conditions, names
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.build import remote_shell
from mpi_operator.build.implementations import chooses_remote_shell
from mpi_operator.build.scripts import GAVE_UP, LOST, WAITING, WENT_ON
from mpi_operator.build.settings import Settings
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, LogOptions

from . import pod_state
from .cached_types import Pod
from .clock import Clock, utc_now
from .job_state import JobStates
from .observed import LogReading, Observed
from .problems import Problem, ProblemReason


@dataclass(frozen=True)
class LostContact:
    """That a worker could not be reached, or that a session in it broke off."""

    worker: str
    sentence: str


def gave_up(words: str) -> LostContact | None:
    """The first worker that was given up."""
    lines = (line.partition(GAVE_UP) for line in words.splitlines())
    found = (rest.strip() for _, told, rest in lines if told)
    return next((_contact("The launcher gave up on", rest) for rest in found), None)


def lost_contacts(words: str) -> tuple[LostContact, ...]:
    """The workers that were lost last. What a launcher went on after is its own affair."""
    lost: list[LostContact] = []
    for line in words.splitlines():
        if line.startswith(WENT_ON):
            lost.clear()
        elif line.startswith(LOST):
            lost.append(_contact("The launcher lost", line.removeprefix(LOST).strip()))
    return tuple(lost)


def _contact(what: str, rest: str) -> LostContact:
    return LostContact(rest.partition(" ")[0], f"{what} {rest}")


def given_up(seen: Observed, words: str) -> str:
    """A sentence, from the last words of a launcher; empty where it did not give up.

    "Connection refused" is all that a launcher can say of a worker whose image is missing.
    """
    contact = gave_up(words)
    if contact is None:
        return ""
    workers = (pod for pod in seen.workers.values() if pod.metadata.name == contact.worker)
    validation_errors = (pod_state.diagnosis(pod, seen.probed_container) for pod in workers)
    reason, message = next(validation_errors, None) or ("", "")
    return f"{contact.sentence}; {reason}: {message}" if reason else contact.sentence


# The remote shell repeats itself every half minute, and later where name servers are slow.
FRESH = timedelta(minutes=2)
_FIRST = timedelta(seconds=30)
_WHILE_IT_WAITS = timedelta(seconds=30)
_SENTENCE = "The launcher waits for "
_LONGEST_CAUSE = 200
_WAITING = WAITING.encode()


@dataclass(frozen=True)
class LogRequest:
    """Whom to listen to, and in how long."""

    pod: str
    uid: str
    container: str
    wait: timedelta

    @property
    def is_due(self) -> bool:
        return self.wait <= timedelta(0)


def next_log_request(seen: Observed, settings: Settings, now: datetime) -> LogRequest | None:
    """When the launcher is to be listened to; None where it would have nothing to say."""
    pod = _speaker(seen, settings)
    if pod is None:
        return None
    container = seen.job.spec.launcher.template["spec"]["containers"][0]["name"]
    wait = _next_time(seen, pod, now) - now
    return LogRequest(pod.metadata.name, pod.metadata.uid, container, wait)


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


def launcher_waits(seen: Observed) -> Problem | None:
    """What the launcher says about workers that run. Of the others it is known why they do not."""
    log_reading = seen.log_reading.waits if seen.log_reading else {}
    waits = {index: cause for index, cause in log_reading.items() if index in seen.running_hosts}
    if not waits:
        return None
    index = min(waits)
    name = names.worker(seen.job, index)
    whom = f"{len(waits)} workers, such as {name}" if len(waits) > 1 else name
    return Problem(ProblemReason.LAUNCHER_WAITS, f"{_SENTENCE}{whom}: {waits[index]}")


def known_reading(
    log_reading: LogReading | None, seen: Observed, now: datetime
) -> LogReading | None:
    """What was log_reading of the launcher that runs; nothing, of the first one that we see.

    It counts from its beginning. But if it has run for long, another process has listened to it; if
    it waited then, the job says so.
    """
    pod = _running(seen)
    if pod is None or (log_reading is not None and log_reading.uid == pod.metadata.uid):
        return log_reading if pod else None
    running = conditions.condition(seen.job.status.conditions, ConditionType.RUNNING)
    is_told = running is not None and _SENTENCE in running.message
    age = pod_state.running_time(pod, now)
    is_known = log_reading is None and age >= _FIRST and not is_told
    return LogReading(pod.metadata.uid, now if is_known else now - age)


def _running(seen: Observed) -> Pod | None:
    """The launcher's pod that is at work."""
    running = filter(pod_state.is_running, seen.launcher_pods)
    return max(running, key=pod_state.by_age, default=None)


def _speaker(seen: Observed, settings: Settings) -> Pod | None:
    """The pod that would say it, and can be log_reading."""
    job, pod = seen.job, _running(seen)
    has_remote_shell = remote_shell.is_used(job, settings) and not chooses_remote_shell(job)
    if pod is None or pod_state.silence(pod) or not job.spec.worker_count:
        return None
    return pod if has_remote_shell else None


def _next_time(seen: Observed, pod: Pod, now: datetime) -> datetime:
    began = now - pod_state.running_time(pod, now)
    log_reading = seen.log_reading
    if log_reading is None or log_reading.at <= began:
        return began + _FIRST
    if log_reading.waits:
        return log_reading.at + _WHILE_IT_WAITS
    return log_reading.at + max(log_reading.at - began, _FIRST)


_MOST_LINES, _MOST_BYTES = 2000, 256 * 1024  # people print what they like
_LONGEST = 3.0  # seconds: of a node that does not answer nothing is log_reading


class LogReader:
    """Remembers for which workers a launcher waits."""

    def __init__(self, client: Client, memories: JobStates, clock: Clock = utc_now) -> None:
        self._client = client
        self._memories = memories
        self._clock = clock

    async def listen(self, job: MPIJob, log_request: LogRequest) -> None:
        """Read the log. If that cannot be, what was log_reading before counts for a while."""
        memory, now = self._memories.of(job), self._clock()
        try:
            async with asyncio.timeout(_LONGEST):
                waits = waits_in(job, await self._words(job, log_request))
        except (errors.KubeError, TimeoutError):
            memory.log_reading = _remembered(memory.log_reading, log_request, now)
        else:
            memory.log_reading = LogReading(log_request.uid, now, waits, read_at=now)

    async def _words(self, job: MPIJob, log_request: LogRequest) -> list[bytes]:
        log = self._client.log(
            log_request.pod,
            job.metadata.namespace,
            LogOptions(
                container=log_request.container,
                tail_lines=_MOST_LINES,
                since_seconds=int(FRESH.total_seconds()),
                limit_bytes=_MOST_BYTES,
            ),
        )
        async with aclosing(log):
            return [line async for line in log]


def _remembered(
    log_reading: LogReading | None, log_request: LogRequest, now: datetime
) -> LogReading:
    if log_reading is None or log_reading.uid != log_request.uid or log_reading.read_at is None:
        return LogReading(log_request.uid, now)
    is_fresh = now - log_reading.read_at < FRESH
    return replace(log_reading, at=now, waits=log_reading.waits if is_fresh else {})
