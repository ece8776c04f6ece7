"""What is known about a launcher that fails, for `api.failure_cause`."""

import re
from collections import deque
from collections.abc import Iterable
from itertools import chain

from mpi_operator.api import conditions, labels, names
from mpi_operator.api.failure_cause import Failure, failure_cause
from mpi_operator.api.main_container import main_container
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.local import oom_kills

from .job_stream import Line, RankFailed, Update
from .rank_tags import has_rank_tags, without_tags
from .whole_lines import WholeLines

_MAX_LINES = 300
_MAX_LINE_BYTES = 4096
# Reasons of a failure that is the launcher's own. Others, such as a deadline, say it themselves.
_OWN_REASONS = ("BackoffLimitExceeded", "PodFailurePolicy", conditions.Reason.FAILED.value)
# Options of any mpirun after which the order of the hostfile is not the order of the ranks.
_PLACEMENT = re.compile(
    r"(?<![\w-])--?(map-by|rank-by|rankfile|rf|host|hosts|H|hostfile|machinefile|f|ppn|rr|pernode"
    r"|npernode|ppr|perhost|bynode|N|grr)\b"
)


class LastLines:
    """The last lines of the last launcher, and what the kernel has killed since the beginning."""

    def __init__(self) -> None:
        self._pod = ""
        self._lines: deque[bytes] = deque(maxlen=_MAX_LINES)
        self._rank = ""  # the first one that failed, if that was reported
        self._whole = WholeLines()
        self._oom_kills = oom_kills.count()

    def note(self, update: Update) -> None:
        if isinstance(update, RankFailed):
            self._begin(update.pod)
            self._rank = self._rank or update.rank
        elif isinstance(update, Line) and update.role == labels.Role.LAUNCHER:
            self._begin(update.pod)
            if line := self._whole.feed(update):
                self._lines.append(line.printed[:_MAX_LINE_BYTES])

    def _begin(self, pod: str) -> None:
        """Forget what another launcher has printed."""
        if pod != self._pod:
            self._pod, self._rank = pod, ""
            self._lines.clear()

    def cause(self, job: MPIJob, exit_code: int, worker: str = "") -> str:
        """Why a job has failed; "" if its launcher is not the reason.

        A worker that had failed is the reason why the launcher could not reach it.
        """
        failed = conditions.condition(job.status.conditions, ConditionType.FAILED)
        self._lines.extend(line.printed[:_MAX_LINE_BYTES] for line in self._whole.rest())
        if failed is None or not failed.reason.startswith(_OWN_REASONS):
            return ""
        slots = _hosts(job)
        hosts = slots if _is_in_order(job) else ()
        kills = self._oom_kills_since()
        return failure_cause(
            Failure(self._text(job), exit_code, len(slots), hosts, kills, self._rank, worker)
        )

    def _oom_kills_since(self) -> int | None:
        before, now = self._oom_kills, oom_kills.count()
        return None if before is None or now is None else now - before

    def _text(self, job: MPIJob) -> list[str]:
        lines: Iterable[bytes] = self._lines
        if has_rank_tags(_command(job)):
            lines = chain.from_iterable(map(without_tags, lines))
        return [line.decode(errors="replace") for line in lines]


def _hosts(job: MPIJob) -> list[str]:
    """The host of each slot."""
    hosts = (host.partition(".")[0] for host in names.hosts(job))
    return [host for host in hosts for _ in range(job.spec.slots_per_worker)]


def _is_in_order(job: MPIJob) -> bool:
    return not _PLACEMENT.search(" ".join(_command(job)))


def _command(job: MPIJob) -> list[str]:
    container = main_container(job, job.spec.launcher)
    return [*map(str, (*(container.get("command") or ()), *(container.get("args") or ())))]
