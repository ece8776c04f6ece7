"""The content of a Lease, and what a candidate does about it. Pure: no I/O, no clock.

The fields are those of client-go's leader election, so an operator written in Go and this one
exclude each other when they share a Lease. Like client-go we never compare the clocks of two
machines. A lease expires when its record has not changed for as long as its holder asked for,
counted on our own clock from when we saw the last change.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any, TypeAlias

from mpi_operator.kube.resources import LEASES, Key, Manifest


@dataclass(frozen=True)
class Timing:
    """How long a lease lasts and how hard its holder tries to keep it, in seconds.

    `lease_seconds`: how long others wait after the last renewal. The API wants an integer.
    `renew_seconds`: how long the holder keeps writing after its last successful renewal. The
    difference between the two is the time for a write that was sent to arrive or to get lost.
    `retry_seconds`: how long to wait before a retry.
    """

    lease_seconds: int = 15
    renew_seconds: float = 5.0
    retry_seconds: float = 3.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise ValueError(
                "the lease must be longer than the renew deadline, and that longer than the retry"
                f" period: got {self.lease_seconds}, {self.renew_seconds}"
                f" and {self.retry_seconds} seconds"
            )

    @property
    def renew_interval(self) -> float:
        """Seconds between renewals: short enough that one slow answer does not lose the lease."""
        return min(self.retry_seconds, self.renew_seconds / 3)


@dataclass(frozen=True)
class Record:
    """The part of a Lease that elections use; any of it may be missing."""

    holder: str = ""
    seconds: int = 0
    acquired_at: str | None = None
    renewed_at: str | None = None
    transitions: int = 0


@dataclass(frozen=True)
class Observation:
    """A Lease as it was last seen.

    `manifest` is None while there is no such object. `since` is when the record was first seen as
    it is now, on our clock.
    """

    since: float
    record: Record = field(default_factory=Record)
    manifest: Manifest | None = None

    @property
    def resource_version(self) -> str:
        """Where to start a watch."""
        return str(self.manifest["metadata"]["resourceVersion"]) if self.manifest else ""


class Claim(Enum):
    """Ways to write our name into a Lease."""

    CREATE = auto()
    TAKE = auto()
    RENEW = auto()


@dataclass(frozen=True)
class Wait:
    """Another process holds the lease, at least until then."""

    until: float


Step: TypeAlias = Claim | Wait


def record_of(lease: Manifest) -> Record:
    """The record in a Lease. Other programs write Leases too, so any field may be missing."""
    spec: dict[str, Any] = lease.get("spec") or {}
    return Record(
        holder=spec.get("holderIdentity") or "",
        seconds=spec.get("leaseDurationSeconds") or 0,
        acquired_at=spec.get("acquireTime"),
        renewed_at=spec.get("renewTime"),
        transitions=spec.get("leaseTransitions") or 0,
    )


def observe(before: Observation | None, lease: Manifest | None, now: float) -> Observation:
    """The new observation: only a changed record restarts the holder's time.

    Deleting a Lease does not release it: its holder may not have noticed, and may keep writing.
    """
    if lease is None:
        return replace(before, manifest=None) if before else Observation(since=now)
    record = record_of(lease)
    unchanged = before is not None and before.record == record
    return Observation(before.since if before and unchanged else now, record, lease)


def next_step(seen: Observation, now: float, identity: str, timing: Timing) -> Step:
    """What a candidate should do now."""
    if seen.record.holder != identity and now < expiry(seen, timing):
        return Wait(expiry(seen, timing))
    if seen.manifest is None:
        return Claim.CREATE
    return Claim.RENEW if seen.record.holder == identity else Claim.TAKE


def expiry(seen: Observation, timing: Timing) -> float:
    """When the lease expires. If the holder set no duration, ours counts."""
    if not seen.record.holder:
        return float("-inf")
    return seen.since + (seen.record.seconds if seen.record.seconds > 0 else timing.lease_seconds)


def claimed(
    claim: Claim, seen: Observation, key: Key, identity: str, timing: Timing, at: datetime
) -> Manifest:
    """The Lease with our name in it. Fields that we do not know stay as they are."""
    record = seen.record
    acquired_at = record.acquired_at if claim is Claim.RENEW else None
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": timing.lease_seconds,
        "acquireTime": acquired_at or micro_time(at),
        "renewTime": micro_time(at),
        "leaseTransitions": record.transitions + (claim is Claim.TAKE),
    }
    return _with_spec(seen.manifest or _new(key), spec)


def released(lease: Manifest, at: datetime) -> Manifest:
    """The Lease without a holder and with the shortest duration allowed, like client-go's.

    The number of transitions stays: the next leader increases it.
    """
    spec = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": micro_time(at),
        "renewTime": micro_time(at),
        "leaseTransitions": record_of(lease).transitions,
    }
    return _with_spec(lease, spec)


def micro_time(at: datetime) -> str:
    """A time as Go writes a MicroTime, with all six digits even when they are zeros."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _new(key: Key) -> Manifest:
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
    }


def _with_spec(lease: Manifest, spec: Manifest) -> Manifest:
    return {**lease, "spec": {**(lease.get("spec") or {}), **spec}}
