"""Rotation: a table of steps, and what holds at every moment of any sequence of them."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.webhook.certificates import Pair
from mpi_operator.webhook.rotation import (
    Issuer,
    Retired,
    State,
    Times,
    first_state,
    next_change,
    next_state,
)

TIMES = Times(authority=1000, serving=100, trust_delay=10, reread=1)
NAMES = ("webhook.example.svc",)


class CountingIssuer:
    """Numbers what it makes; a serving certificate names its authority."""

    def __init__(self):
        self.count = 0

    def authority(self, now):
        self.count += 1
        return Pair(f"ca{self.count}", "key", now + TIMES.authority)

    def serving(self, authority, names, now):
        self.count += 1
        end = min(now + TIMES.serving, authority.expires_at)
        return Pair(f"{authority.certificate}/leaf{self.count}", "key", end, tuple(names))

    @property
    def issuer(self):
        return Issuer(self.authority, self.serving)


def ca(name, end):
    return Pair(name, "key", end)


def leaf(authority, end, names=NAMES):
    return Pair(f"{authority}/leaf", "key", end, names)


def after(state, now, trusted=None):
    return next_state(
        state, now, times=TIMES, issuer=CountingIssuer().issuer, names=NAMES, trusted=trusted
    )


STEADY = State(ca("old", 1000), leaf("old", 100))
LATE = State(ca("old", 1000), leaf("old", 880))
BOTH = replace(LATE, upcoming=ca("new", 1800))
TRUSTED = replace(BOTH, trusted_since=800.0)


@pytest.mark.parametrize(
    ("state", "now", "trusted", "expected"),
    [
        pytest.param(STEADY, 50, None, STEADY, id="nothing is due"),
        pytest.param(
            STEADY,
            70,
            None,
            State(ca("old", 1000), Pair("old/leaf1", "key", 170, NAMES)),
            id="a certificate is renewed when a third of its life is left",
        ),
        pytest.param(
            replace(STEADY, serving=leaf("old", 100, ("another.svc",))),
            1,
            None,
            State(ca("old", 1000), Pair("old/leaf1", "key", 101, NAMES)),
            id="a certificate without our name is replaced at once",
        ),
        pytest.param(
            LATE,
            800,
            None,
            replace(LATE, upcoming=ca("ca1", 1800)),
            id="the next authority is made, and signs nothing",
        ),
        pytest.param(BOTH, 810, None, BOTH, id="bundles are not known, so nothing changes"),
        pytest.param(BOTH, 810, {"old"}, BOTH, id="one bundle lacks the next authority"),
        pytest.param(
            BOTH,
            810,
            {"old", "new"},
            replace(BOTH, trusted_since=810),
            id="the moment when all bundles have it is remembered",
        ),
        pytest.param(
            TRUSTED,
            809,
            {"old"},
            replace(BOTH, trusted_since=None),
            id="and forgotten when one loses it",
        ),
        pytest.param(TRUSTED, 809, {"old", "new"}, TRUSTED, id="API servers need time to notice"),
        pytest.param(
            TRUSTED,
            810,
            {"old", "new"},
            State(
                ca("new", 1800),
                Pair("new/leaf1", "key", 910, NAMES),
                retired=(Retired("old", 1000),),
            ),
            id="then it signs, and the key of the old one is dropped",
        ),
        pytest.param(
            replace(STEADY, retired=(Retired("older", 50), Retired("oldest", 49))),
            59,
            None,
            replace(STEADY, retired=(Retired("older", 50),)),
            id="an old authority is trusted until it has expired by every clock",
        ),
        pytest.param(
            LATE,
            1000,
            {"old"},
            State(ca("ca1", 2000), Pair("ca1/leaf2", "key", 1100, NAMES)),
            id="after years without an operator everything is new",
        ),
        pytest.param(
            replace(BOTH, trusted_since=821.0),
            810,
            {"old", "new"},
            replace(BOTH, trusted_since=810),
            id="a trust that begins later than any clock says is measured again",
        ),
        pytest.param(
            replace(BOTH, trusted_since=float("nan")),
            810,
            None,
            BOTH,
            id="and so is one that begins at no time",
        ),
        pytest.param(
            replace(STEADY, serving=replace(leaf("old", 100), valid_from=62.0)),
            1,
            None,
            State(ca("old", 1000), Pair("old/leaf1", "key", 101, NAMES)),
            id="a certificate that is not valid yet is replaced at once",
        ),
        pytest.param(
            replace(STEADY, serving=replace(leaf("old", 100), valid_from=61.0)),
            1,
            None,
            replace(STEADY, serving=replace(leaf("old", 100), valid_from=61.0)),
            id="but not if clocks differ a little",
        ),
        pytest.param(
            replace(STEADY, current=replace(ca("old", 1000), valid_from=62.0)),
            1,
            None,
            State(
                ca("ca1", 1001),
                Pair("ca1/leaf2", "key", 101, NAMES),
                retired=(Retired("old", 1000),),
            ),
            id="an authority that is not valid yet is replaced, and stays trusted",
        ),
        pytest.param(
            replace(TRUSTED, upcoming=replace(ca("new", 1800), valid_from=900.0)),
            810,
            {"old", "new"},
            replace(LATE, upcoming=ca("ca1", 1810)),
            id="a next authority that is not valid yet is replaced",
        ),
    ],
)
def test_steps(state, now, trusted, expected):
    assert after(state, now, trusted) == expected


@pytest.mark.parametrize("now", [0, 70, 801, 950])
@pytest.mark.parametrize("trusted", [None, {"old"}, {"old", "new"}])
@pytest.mark.parametrize("state", [STEADY, LATE, BOTH, TRUSTED])
def test_a_step_is_taken_once(state, now, trusted):
    once = after(state, now, trusted)
    assert after(once, now, trusted) == once


@pytest.mark.parametrize(
    ("state", "when"),
    [
        pytest.param(STEADY, 100 - 100 / 3, id="the certificate"),
        pytest.param(LATE, 800, id="the next authority"),
        pytest.param(TRUSTED, 810, id="taking over"),
    ],
)
def test_when_the_next_step_is_due(state, when):
    assert next_change(state, TIMES) == pytest.approx(when)


@pytest.mark.parametrize(
    "times",
    [
        pytest.param({"authority": 100, "serving": 50}, id="authorities that end too early"),
        pytest.param({"serving": 5, "trust_delay": 10}, id="certificates that end too early"),
    ],
)
def test_times_that_could_break_trust_are_refused(times):
    with pytest.raises(ValueError, match="must last longer"):
        replace(TIMES, **times)


@dataclass
class Installation:
    """A Secret, a bundle with its history, and replicas with clocks that differ."""

    skews: list[float]
    now: float = 0.0
    issuer: CountingIssuer = field(default_factory=CountingIssuer)
    # Authorities that began when no other was valid, and are not known to API servers yet.
    sudden: set[str] = field(default_factory=set)

    def __post_init__(self):
        self.secret = first_state(self.issuer.issuer, NAMES, 0)
        self.served = [self.secret.serving for _ in self.skews]
        self.known = [self.secret.authorities for _ in self.skews]
        self.bundles = [(0.0, self.secret.authorities)]  # since when, which

    def step(self, replica):
        """A replica reads the Secret, takes what is due, writes it, and serves the result."""
        before = self.secret
        self.secret = next_state(
            before,
            self.now + self.skews[replica],
            times=TIMES,
            issuer=self.issuer.issuer,
            names=NAMES,
            trusted=set(self.bundles[-1][1]),
        )
        if before.current.expires_at <= self.now + self.skews[replica]:
            self.sudden.add(self.secret.current.certificate)
        self.served[replica] = self.secret.serving
        self.known[replica] = self.secret.authorities

    def publish(self, replica):
        """A replica finds another bundle than it expects, reads the Secret, and writes."""
        if self.bundles[-1][1] != self.known[replica]:
            self.step(replica)
            self.bundles.append((self.now, self.secret.authorities))

    def views(self, lag):
        """Every bundle that some API server may still use."""
        for (_, bundle), (until, _) in zip(
            self.bundles, [*self.bundles[1:], (float("inf"), ())], strict=True
        ):
            if until > self.now - lag:
                yield bundle

    def check(self, lag):
        self.sudden -= set.intersection(*(set(each) for each in self.views(lag)))
        for certificate in self.served:
            authority = certificate.certificate.partition("/")[0]
            if certificate.expires_at > self.now and authority not in self.sudden:
                assert all(authority in bundle for bundle in self.views(lag))


LAG, SKEW = 6.0, 4.0  # together no more than the trust delay
actions = st.tuples(st.sampled_from(["step", "publish"]), st.integers(0, 1))
moves = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 5.0, 10.0, 40.0, 120.0, 800.0]), st.lists(actions, max_size=4)
    ),
    max_size=40,
)


@given(moves, st.lists(st.floats(0, SKEW), min_size=2, max_size=2))
@settings(max_examples=300, deadline=None)
def test_what_is_served_is_trusted_at_every_moment(moves, skews):
    installation = Installation(skews)
    for seconds, actions in moves:
        installation.now += seconds
        installation.check(LAG)
        for action, replica in actions:
            getattr(installation, action)(replica)
            installation.check(LAG)


@given(st.floats(1, 9))
@settings(max_examples=20, deadline=None)
def test_replicas_that_work_never_serve_what_is_about_to_expire(pause):
    installation = Installation([0.0, 0.0])
    authorities = set()
    while installation.now < 3000:
        installation.now += pause
        for replica in (0, 1):
            installation.step(replica)
            installation.publish(replica)
            authorities.add(installation.served[replica].certificate.partition("/")[0])
        assert all(each.expires_at > installation.now + 20 for each in installation.served)
        assert len(installation.secret.authorities) <= 3
    assert len(authorities) >= 3, "authorities were rotated"
