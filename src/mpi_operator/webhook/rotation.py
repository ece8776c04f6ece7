"""When certificates change: the steps of a rotation. Pure: no I/O, no clock.

    one authority ──► two, the next one only trusted ──► the next one signs ──► the old one expires

Two rules keep every replica trusted at every moment, however late it learns of a step:

- The next authority signs nothing before it was seen in every bundle that the API server uses, and
  a while longer: API servers do not notice a change all at once.
- An authority stays in the bundle until it expires, and no certificate outlives its authority. Only
  its key is dropped when the next one takes over.

So a replica that cannot read the Secret for a month still serves a certificate that is trusted.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from .certificates import Pair

_DAY = 86_400.0
_SKEW = 60.0  # by which clocks may differ, beyond what certificates allow for


@dataclass(frozen=True)
class Times:
    """How long things last, in seconds."""

    authority: float = 2 * 365 * _DAY
    serving: float = 90 * _DAY
    trust_delay: float = 900.0
    """From when the next authority is in every bundle until it signs: longer than API servers take
    to notice, plus the difference between the clocks of two replicas."""
    reread: float = 60.0
    """Between two readings of the Secret."""

    def __post_init__(self) -> None:
        if not self.authority > 3 * self.serving > 3 * self.trust_delay >= 0:
            raise ValueError("an authority must last longer than three certificates that it signs")

    @property
    def renewal(self) -> float:
        """How long before it expires a serving certificate is replaced."""
        return self.serving / 3

    @property
    def succession(self) -> float:
        """How long before an authority expires the next one is made."""
        return 2 * self.serving


@dataclass(frozen=True)
class Retired:
    """An authority that no longer signs: its certificate, without a key."""

    certificate: str
    expires_at: float


@dataclass(frozen=True)
class State:
    """The certificates of all replicas, as the Secret has them."""

    current: Pair
    """The authority that has signed `serving`."""
    serving: Pair
    upcoming: Pair | None = None
    trusted_since: float | None = None
    """When the upcoming authority was first seen in every bundle."""
    retired: tuple[Retired, ...] = ()

    @property
    def authorities(self) -> tuple[str, ...]:
        """The certificates that the API server has to trust."""
        upcoming = (self.upcoming.certificate,) if self.upcoming else ()
        return (self.current.certificate, *upcoming, *(each.certificate for each in self.retired))


@dataclass(frozen=True)
class Issuer:
    """Makes certificates; the random part of a rotation."""

    authority: Callable[[float], Pair]
    serving: Callable[[Pair, Sequence[str], float], Pair]


def first_state(issuer: Issuer, names: Sequence[str], now: float) -> State:
    """The state of a new installation."""
    authority = issuer.authority(now)
    return State(authority, issuer.serving(authority, names, now))


def next_state(
    state: State,
    now: float,
    *,
    times: Times,
    issuer: Issuer,
    names: Sequence[str],
    trusted: Collection[str] | None,
) -> State:
    """The state after every step that is due now; the same state if none is.

    `trusted` are the authorities that are in every bundle the API server uses; None if that is not
    known.
    """
    if state.current.expires_at <= now:
        return first_state(issuer, names, now)  # the operator was away for years
    if _is_from_the_future(state.current, now):
        return _begun_again(state, now, issuer, names)
    state = _without_expired(state, now - times.trust_delay)  # clocks differ
    state = _without_future(state, now, times)
    state = _with_upcoming(state, now, times, issuer)
    state = _with_trust(state, now, trusted)
    if _may_take_over(state, now, times):
        state = _taken_over(state, now, issuer, names)
    if _needs_serving(state, now, times, names):
        state = replace(state, serving=issuer.serving(state.current, names, now))
    return state


def next_change(state: State, times: Times) -> float:
    """When the next step is due, if nothing else happens."""
    due = [state.serving.expires_at - times.renewal, state.current.expires_at - times.succession]
    if state.upcoming:
        due = [state.serving.expires_at - times.renewal]
        if state.trusted_since is not None:
            due.append(state.trusted_since + times.trust_delay)
    return min(due)


def _is_from_the_future(pair: Pair, now: float) -> bool:
    """Whether a clock that was ahead has made a certificate that is not valid yet."""
    return pair.valid_from > now + _SKEW


def _begun_again(state: State, now: float, issuer: Issuer, names: Sequence[str]) -> State:
    """A new authority at once. The one before stays trusted: perhaps only our clock is wrong."""
    before = Retired(state.current.certificate, state.current.expires_at)
    return replace(first_state(issuer, names, now), retired=(before, *state.retired))


def _without_future(state: State, now: float, times: Times) -> State:
    """Without a next authority that is not valid yet, and without a trust that is still to come."""
    if state.upcoming and _is_from_the_future(state.upcoming, now):
        return replace(state, upcoming=None, trusted_since=None)
    since = state.trusted_since
    is_known = since is None or since <= now + times.trust_delay  # false for NaN
    return state if is_known else replace(state, trusted_since=None)


def _without_expired(state: State, now: float) -> State:
    kept = tuple(each for each in state.retired if each.expires_at > now)
    return state if kept == state.retired else replace(state, retired=kept)


def _with_upcoming(state: State, now: float, times: Times, issuer: Issuer) -> State:
    if state.upcoming or state.current.expires_at - times.succession > now:
        return state
    return replace(state, upcoming=issuer.authority(now), trusted_since=None)


def _with_trust(state: State, now: float, trusted: Collection[str] | None) -> State:
    """Remember when the upcoming authority was trusted; forget it if it no longer is."""
    if not state.upcoming or trusted is None:
        return state
    if state.upcoming.certificate not in trusted:
        return state if state.trusted_since is None else replace(state, trusted_since=None)
    return state if state.trusted_since is not None else replace(state, trusted_since=now)


def _may_take_over(state: State, now: float, times: Times) -> bool:
    since = state.trusted_since
    return since is not None and since + times.trust_delay <= now


def _taken_over(state: State, now: float, issuer: Issuer, names: Sequence[str]) -> State:
    assert state.upcoming is not None
    before = Retired(state.current.certificate, state.current.expires_at)
    serving = issuer.serving(state.upcoming, names, now)
    return State(state.upcoming, serving, retired=(before, *state.retired))


def _needs_serving(state: State, now: float, times: Times, names: Sequence[str]) -> bool:
    """Whether it lacks a name, is not valid yet, or ends soon and a new one would last longer."""
    is_for_us = set(names) <= set(state.serving.names)
    if not is_for_us or _is_from_the_future(state.serving, now):
        return True
    is_old = state.serving.expires_at - times.renewal <= now
    return is_old and state.serving.expires_at < state.current.expires_at
