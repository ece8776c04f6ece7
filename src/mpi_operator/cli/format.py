"""Facts about jobs in few words."""

from collections.abc import Sequence
from datetime import datetime

from mpi_operator.api import conditions
from mpi_operator.api.types import MPIJob

_RULES = " \t-=*#"  # programs frame what they say
_GIST = 160


def state(job: MPIJob) -> str:
    """The state of a job: what became true last."""
    last = conditions.describing(job.status.conditions)
    return last.type if last else "New"


def workers(job: MPIJob) -> str:
    """How many workers run, of how many."""
    status = job.status.replica_statuses.worker
    return f"{status.active if status else 0}/{job.spec.worker_count}"


def age(since: datetime | None, now: datetime) -> str:
    """How long ago something was."""
    if since is None:
        return "-"
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Rows in columns that are as wide as they have to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(indent + line for line in lines)


def gist(message: str) -> str:
    """One line of a message that may be many: the first that says something."""
    lines = [line.strip(_RULES) for line in message.splitlines()]
    said = [line for line in lines if any(map(str.isalnum, line))]
    first = said[0] if said else message.strip()
    if first.endswith(":") and len(said) > 1:  # it announces what comes
        first = f"{first} {said[1]}"
    first = first.rstrip(",;:")
    return first if len(first) <= _GIST else f"{first[: _GIST - 1]}…"
