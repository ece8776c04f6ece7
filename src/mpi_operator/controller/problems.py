"""What keeps a job from progressing: a reason, a message, and whether it fails the job."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from mpi_operator.kube import errors


class ProblemReason(StrEnum):
    """Why a job does not progress. Pods have more reasons (`pod_state.diagnosis`)."""

    INVALID_JOB = "ValidationError"
    NAME_TAKEN = "ErrResourceExists"
    QUOTA = "QuotaExceeded"
    FORBIDDEN = "Forbidden"
    ADMISSION = "AdmissionDenied"
    REJECTED = "Rejected"
    UNREADABLE = "MalformedObject"
    INVALID_TEMPLATE = "InvalidPodTemplate"
    WORKER_FAILED = "WorkerFailed"
    WORKER_EVICTED = "MPIJobEvicted"
    WORKER_LOST = "WorkerLost"
    LAUNCHER_WAITS = "LauncherWaits"
    HOST_BLACKLISTED = "HostBlacklisted"
    LAUNCHER_POD_MISSING = "LauncherPodMissing"
    INIT_TIMEOUT = "InitTimeout"
    # As Kubernetes calls them.
    BACKOFF_LIMIT = "BackoffLimitExceeded"
    DEADLINE = "DeadlineExceeded"


LONGEST_MESSAGE = 1024  # the API server rejects events with longer ones
_FEW = 2  # problems of one reason are listed one by one
_NUMBERS = re.compile(r"(\d+)")
# A webhook; a policy; a webhook that does not answer, where that counts as a no.
_ADMISSION = ("denied the request", "denied request", "failed calling webhook")


@dataclass(frozen=True)
class Problem:
    """A reason and a message. A fatal one never passes: the job fails, unless it runs already."""

    reason: str
    message: str
    is_fatal: bool = False
    ends_launcher: bool = False  # the job fails even where its launcher is under way
    is_retried: bool = False  # the launcher is tried again because of it


def refusal(error: errors.ApiError, what: str, *, is_template: bool = False) -> Problem:
    """The problem that the server refused a request, with the server's message."""
    if is_template and _is_invalid(error):
        return Problem(ProblemReason.INVALID_TEMPLATE, f"{what}: {error}", is_fatal=True)
    return Problem(_reason(error), f"{what}: {error}")


def condensed(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, where the first of many that are alike stands for all.

    The order does not depend on what was refused first, or each try would look like a change.
    """
    alike: dict[tuple[str, bool], list[Problem]] = defaultdict(list)
    for problem in sorted(problems, key=lambda each: (_natural(each), each.reason)):
        alike[problem.reason, problem.is_fatal].append(problem)
    return [each for group in alike.values() for each in _represented(group)]


def _represented(group: list[Problem]) -> list[Problem]:
    if len(group) <= _FEW:
        return group
    first, *others = group
    return [replace(first, message=f"{first.message} (and {len(others)} more)")]


def _natural(problem: Problem) -> list[tuple[int, str]]:
    """An order in which worker 10 comes after worker 2.

    A number counts by its length first: the server quotes what people wrote, which may be a number
    that is too long to be read as one.
    """
    return [
        (len(each.lstrip("0")), each) if each.isdecimal() else (-1, each)
        for each in _NUMBERS.split(problem.message)
    ]


def most_important(problems: Iterable[Problem]) -> Problem | None:
    """One problem that stands for all: the worst, with the messages of the others."""
    ranked = sorted(problems, key=lambda each: (not each.is_fatal, not each.ends_launcher))
    if not ranked:
        return None
    first = ranked[0]
    messages = dict.fromkeys(each.message for each in ranked)
    return replace(first, message=shortened("; ".join(messages)))


def lost_worker(problems: Iterable[Problem]) -> Problem | None:
    """The problem with workers that a job reports at its end, whatever else there was."""
    return next((each for each in problems if each.reason == ProblemReason.WORKER_LOST), None)


def _reason(error: errors.ApiError) -> ProblemReason:
    if isinstance(error, errors.QuotaExceeded):
        return ProblemReason.QUOTA
    if is_admission(error):
        return ProblemReason.ADMISSION
    return (
        ProblemReason.FORBIDDEN if isinstance(error, errors.Forbidden) else ProblemReason.REJECTED
    )


def _is_invalid(error: errors.ApiError) -> bool:
    return isinstance(error, errors.Invalid | errors.BadRequest) and not is_admission(error)


def is_admission(error: errors.ApiError) -> bool:
    """Whether a webhook or a policy denied the request, or could not be asked.

    They use any status code, so only the message shows it. Their rules may change, so unlike an
    invalid object this is not final.
    """
    text = str(error)
    return any(words in text for words in _ADMISSION)


def shortened(text: str) -> str:
    """A text as long as events and conditions take it."""
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."
