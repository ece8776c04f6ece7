"""What keeps a job from going on, in words for people, and what it means for the job."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from mpi_operator.kube import errors

from .news import shortened


class Reason(StrEnum):
    """Why a job does not go on, in one word. Pods bring reasons of their own (`pods.complaint`)."""

    INVALID_JOB = "ValidationError"
    NAME_TAKEN = "ErrResourceExists"
    QUOTA = "QuotaExceeded"
    FORBIDDEN = "Forbidden"
    ADMISSION = "AdmissionDenied"
    REJECTED = "Rejected"
    INVALID_TEMPLATE = "InvalidPodTemplate"
    WORKER_FAILED = "WorkerFailed"
    WORKER_EVICTED = "MPIJobEvicted"
    WORKER_LOST = "WorkerLost"


@dataclass(frozen=True)
class Trouble:
    """A reason and a sentence. A fatal one never passes: the job fails, unless it runs already."""

    reason: str
    message: str
    is_fatal: bool = False


def refusal(error: errors.ApiError, what: str, *, is_template: bool = False) -> Trouble:
    """What it means that the server did not take `what`, in the server's own words."""
    if is_template and _is_invalid(error):
        return Trouble(Reason.INVALID_TEMPLATE, f"{what}: {error}", is_fatal=True)
    return Trouble(_reason(error), f"{what}: {error}")


def most_important(troubles: Iterable[Trouble]) -> Trouble | None:
    """One trouble that stands for all: the worst, with what others say beside it."""
    ranked = sorted(troubles, key=lambda trouble: not trouble.is_fatal)
    if not ranked:
        return None
    first = ranked[0]
    messages = dict.fromkeys(each.message for each in ranked)
    return Trouble(first.reason, shortened("; ".join(messages)), first.is_fatal)


def _reason(error: errors.ApiError) -> Reason:
    if isinstance(error, errors.QuotaExceeded):
        return Reason.QUOTA
    if _is_admission(error):
        return Reason.ADMISSION
    return Reason.FORBIDDEN if isinstance(error, errors.Forbidden) else Reason.REJECTED


def _is_invalid(error: errors.ApiError) -> bool:
    return isinstance(error, errors.Invalid | errors.BadRequest) and not _is_admission(error)


def _is_admission(error: errors.ApiError) -> bool:
    """Whether a webhook or a policy said no: with any code it likes, so only the words tell.

    Those who wrote it may change it, so unlike the API's own rules it is not final.
    """
    text = str(error)
    return "denied the request" in text or "denied request" in text
