"""What the log and the termination message of a launcher say about its workers.

Only the launcher knows whether names resolve and which workers answer in the network of a job. Its
remote shell prints that (`remote_shell_events`), in the log every 30s while it waits. So the
operator reads the log: first after 30s, then less and less often, and every 30s while it waits.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mpi_operator.api import names
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import MPIJob
from mpi_operator.build import exec_shell, remote_shell
from mpi_operator.build.implementations import chooses_remote_shell
from mpi_operator.build.scripts import EVENT, Event
from mpi_operator.build.settings import Settings
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, LogOptions

from . import pod_state
from .cached_types import Pod
from .job_state import LogReading
from .observed import Observed
from .problems import Problem, ProblemReason
from .remote_shell_events import RemoteShellEvent, remote_shell_event, remote_shell_events

# The remote shell repeats itself every 30s, and less often where name servers are slow.
_FRESH = timedelta(minutes=2)
_FIRST = timedelta(seconds=30)
_WHILE_IT_WAITS = timedelta(seconds=30)
_LONGEST_CAUSE = 200
_MOST_LINES, _MOST_BYTES = 2000, 256 * 1024  # programs print what they like
_TIMEOUT = 3.0  # seconds, for a node that does not answer

_MARK = EVENT.encode()

log = logging.getLogger(__name__)


def lost_contacts(words: str) -> tuple[RemoteShellEvent, ...]:
    """The workers that a launcher lost, and after which it started nothing."""
    lost: list[RemoteShellEvent] = []
    for event in remote_shell_events(words):
        if event.is_whole_line and event.event == Event.CONTINUED:
            lost.clear()
        elif event.is_whole_line and event.event == Event.LOST:
            lost.append(event)
    return tuple(lost)


def unreachable_worker(seen: Observed, words: str) -> str:
    """The worker that a launcher gave up on, from its termination message; "" if there is none.

    "Connection refused" is all that a launcher can say about a worker whose image is missing, so
    the sentence has the diagnosis of that pod, too.
    """
    given_up = next(
        (event for event in remote_shell_events(words) if event.event == Event.GAVE_UP), None
    )
    if given_up is None:
        return ""
    workers = (pod for pod in seen.workers.values() if pod.metadata.name == given_up.worker)
    diagnoses = (pod_state.diagnosis(pod, seen.probed_container) for pod in workers)
    reason, message = next(diagnoses, None) or ("", "")
    return f"{given_up.sentence}; {reason}: {message}" if reason else given_up.sentence


def waits_in(job: MPIJob, lines: Iterable[bytes]) -> Mapping[int, str]:
    """The workers that a launcher waits for, and why."""
    waits = {}
    for line in lines:
        event = remote_shell_event(line.decode(errors="replace")) if _MARK in line else None
        if event is not None and event.event == Event.WAITING:
            index = names.worker_index(job, event.worker)
            if index is not None:
                waits[index] = event.cause[:_LONGEST_CAUSE]
    return waits


@dataclass(frozen=True)
class LogRequest:
    """Whose log to read, and in how long."""

    pod: str
    uid: str
    container: str
    wait: timedelta
    is_assumed: bool = False  # this process has not read it yet

    @property
    def is_due(self) -> bool:
        return self.wait <= timedelta(0)


@dataclass(frozen=True)
class LogDecision:
    """What the log says is wrong, and when to read it again."""

    problems: tuple[Problem, ...] = ()
    request: LogRequest | None = None  # None where the launcher would have nothing to say


def check_log(seen: Observed, settings: Settings, now: datetime) -> LogDecision:
    """Report the workers that the launcher waits for, and read its log in time."""
    pod, reading = _reporting_pod(seen, settings), seen.state.log_reading
    request = None
    if pod is not None:
        container = main_container(seen.job, seen.job.spec.launcher)["name"]
        wait = _next_time(reading, pod, now) - now
        is_assumed = reading is not None and reading.is_assumed
        request = LogRequest(pod.metadata.name, pod.metadata.uid, container, wait, is_assumed)
    return LogDecision(_waits(seen, reading), request)


def current_reading(reading: LogReading | None, seen: Observed, now: datetime) -> LogReading | None:
    """The reading of the launcher that runs. A new launcher counts from its beginning.

    The first launcher that this process sees may have run for long: then another process has read
    its log, and to read those of all jobs at once would make each restart expensive.
    """
    pod = _running(seen)
    if pod is None or (reading is not None and reading.uid == pod.metadata.uid):
        return reading if pod else None
    age = pod_state.running_time(pod, now)
    is_assumed = reading is None and age >= _FIRST
    return LogReading(pod.metadata.uid, now if is_assumed else now - age, is_assumed=is_assumed)


def _waits(seen: Observed, reading: LogReading | None) -> tuple[Problem, ...]:
    """The workers that run and do not answer. For the others it is known why they do not."""
    known = reading.waits if reading else {}
    waits = {index: cause for index, cause in known.items() if index in seen.running_hosts}
    if not waits:
        return ()
    index = min(waits)
    name = names.worker(seen.job, index)
    which = f"{len(waits)} workers, for example {name}" if len(waits) > 1 else name
    message = f"Launcher is waiting for {which}: {waits[index]}"
    return (Problem(ProblemReason.LAUNCHER_WAITS, message),)


def _running(seen: Observed) -> Pod | None:
    running = filter(pod_state.is_running, seen.launcher_pods)
    return max(running, key=pod_state.by_age, default=None)


def _reporting_pod(seen: Observed, settings: Settings) -> Pod | None:
    """The pod whose log has lines of our remote shell, if its node can be asked."""
    job, pod = seen.job, _running(seen)
    is_used = exec_shell.is_used(job, settings) or remote_shell.is_used(job, settings)
    has_remote_shell = is_used and not chooses_remote_shell(job)
    if pod is None or pod_state.silence(pod) or not job.spec.worker_count:
        return None
    return pod if has_remote_shell else None


def _next_time(reading: LogReading | None, pod: Pod, now: datetime) -> datetime:
    began = now - pod_state.running_time(pod, now)
    if reading is None or reading.at <= began:
        return began + _FIRST
    if reading.waits:
        return reading.at + _WHILE_IT_WAITS
    return reading.at + max(reading.at - began, _FIRST)


class LogReader:
    """Reads the logs of launchers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._is_forbidden = False

    async def read(
        self, job: MPIJob, request: LogRequest, known: LogReading | None, now: datetime
    ) -> LogReading:
        """Read a log. If that fails, what is known counts for a while."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                waits = waits_in(job, await self._lines(job, request))
        except (errors.KubeError, TimeoutError) as error:
            self._log_failure(job, error)
            return _kept(known, request, now)
        return LogReading(request.uid, now, waits, read_at=now)

    async def _lines(self, job: MPIJob, request: LogRequest) -> list[bytes]:
        lines = self._client.log(
            request.pod,
            job.metadata.namespace,
            LogOptions(
                container=request.container,
                tail_lines=_MOST_LINES,
                since_seconds=int(_FRESH.total_seconds()),
                limit_bytes=_MOST_BYTES,
            ),
        )
        async with aclosing(lines):
            return [line async for line in lines]

    def _log_failure(self, job: MPIJob, error: Exception) -> None:
        """Log a missing permission as a warning, once, because an administrator has to grant it."""
        details = {
            "job": f"{job.metadata.namespace}/{job.metadata.name}",
            "error": str(error) or type(error).__name__,
        }
        if not isinstance(error, errors.Forbidden):
            log.info("Cannot read the log of a launcher", extra=details)
        elif not self._is_forbidden:
            self._is_forbidden = True
            log.warning(
                "The operator is not allowed to get pods/log, so jobs cannot report which workers "
                "their launcher waits for",
                extra=details,
            )


def _kept(known: LogReading | None, request: LogRequest, now: datetime) -> LogReading:
    if known is None or known.uid != request.uid or known.read_at is None:
        return LogReading(request.uid, now)
    is_fresh = now - known.read_at < _FRESH
    return replace(known, at=now, waits=known.waits if is_fresh else {})
