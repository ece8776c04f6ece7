"""How many tries of a launcher are used up, and where that is counted.

Kubernetes counts the tries within one Job. A launcher that lost a worker and exited with 0 leaves a
complete Job, so its next try is another Job. What the Jobs before the current one have used up is
an annotation of the job's ConfigMap. It is written before the last of them is deleted, and has the
uid of that one: after a restart the uid shows that this Job only has to be deleted.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from mpi_operator.api import annotations
from mpi_operator.api.types import MPIJob, Time

from .cached_types import StoredConfigMap, stored_note

USUAL_LIMIT = 6  # that of Jobs

_Number = Annotated[int, Meta(ge=0)]


class LauncherRetries(msgspec.Struct, frozen=True, array_like=True):
    """What the launchers before the current one have used up."""

    used: _Number = 0  # tries
    failed: _Number = 0  # pods that failed
    uid: str = ""  # of the last of these launchers
    since: Time | None = None  # when the first of them was started


NO_RETRIES = LauncherRetries()

_decode = msgspec.json.Decoder(LauncherRetries).decode
_encode = msgspec.json.Encoder().encode


def stored_retries(config_map: StoredConfigMap | None) -> LauncherRetries:
    """The stored count; none if the annotation is not valid."""
    return stored_note(config_map, annotations.LAUNCHER_RETRIES, _decode, NO_RETRIES)


def retries_annotation(retries: LauncherRetries) -> dict[str, str]:
    """The count as it is stored; no annotation where the first launcher is the current one."""
    if retries == NO_RETRIES:
        return {}
    return {annotations.LAUNCHER_RETRIES: _encode(retries).decode()}


def restart_limit(job: MPIJob) -> int:
    """How often a launcher may be restarted."""
    limit = job.spec.run_policy.backoff_limit
    return USUAL_LIMIT if limit is None else limit


def restarts_left(job: MPIJob, retries: LauncherRetries) -> int:
    """How often the current launcher may be restarted: the others had the rest."""
    return max(restart_limit(job) - retries.used, 0)
