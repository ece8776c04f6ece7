from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube.leader_election import lease
from mpi_operator.kube.leader_election.lease import Claim, Observation, Record, Timing, Wait
from mpi_operator.kube.resources import Key

NOW = 1000.0
AT = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
US, THEM = "us", "them"
KEY = Key("mpi-operator", "lock")


def make_lease(holder: str | None = THEM, **spec):
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "mpi-operator", "name": "lock", "resourceVersion": "7"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 3,
        }
        | spec,
    }


def seen(manifest, ago: float = 0.0):
    return lease.observe(None, manifest, NOW - ago)


@pytest.mark.parametrize(
    ("observation", "step"),
    [
        pytest.param(seen(None), Claim.CREATE, id="no lease is there, so we make one"),
        pytest.param(seen(make_lease(US)), Claim.RENEW, id="ours, so we renew it"),
        pytest.param(seen(make_lease(US), ago=99), Claim.RENEW, id="ours and old, still renewed"),
        pytest.param(seen(make_lease(THEM)), Wait(NOW + 15), id="theirs and fresh, so we wait"),
        pytest.param(seen(make_lease(THEM), ago=14.5), Wait(NOW + 0.5), id="a moment too early"),
        pytest.param(seen(make_lease(THEM), ago=15), Claim.TAKE, id="unchanged for too long"),
        pytest.param(seen(make_lease("")), Claim.TAKE, id="released, so it is taken at once"),
        pytest.param(seen(make_lease(None)), Claim.TAKE, id="null holds nothing"),
        pytest.param(
            seen(make_lease(leaseDurationSeconds=60), ago=30),
            Wait(NOW + 30),
            id="the holder's own duration counts, not ours",
        ),
        pytest.param(
            seen(make_lease(leaseDurationSeconds=None), ago=14),
            Wait(NOW + 1),
            id="a holder without a duration gets ours",
        ),
        pytest.param(
            seen(make_lease(leaseDurationSeconds=-1), ago=14),
            Wait(NOW + 1),
            id="so does one with a senseless duration",
        ),
        pytest.param(
            seen(make_lease(renewTime=None, acquireTime=None), ago=15),
            Claim.TAKE,
            id="missing times are no obstacle",
        ),
        pytest.param(seen({"metadata": {}}), Claim.TAKE, id="a lease without a spec is free"),
        pytest.param(seen({"metadata": {}, "spec": None}), Claim.TAKE, id="and with a null one"),
        pytest.param(
            lease.observe(seen(make_lease(THEM), ago=10), None, NOW),
            Wait(NOW + 5),
            id="deleted under its holder, it still runs its time",
        ),
        pytest.param(
            lease.observe(seen(make_lease(THEM), ago=15), None, NOW),
            Claim.CREATE,
            id="deleted and run out, we make a new one",
        ),
        pytest.param(
            lease.observe(seen(make_lease(US), ago=1), None, NOW),
            Claim.CREATE,
            id="deleted under us, we put it back",
        ),
        pytest.param(
            lease.observe(seen(make_lease("")), None, NOW),
            Claim.CREATE,
            id="deleted after a release, it is free",
        ),
    ],
)
def test_what_a_candidate_does_now(observation, step):
    assert lease.next_step(observation, NOW, US, Timing()) == step


def test_only_a_changed_record_starts_the_time_anew():
    first = lease.observe(None, make_lease(), 10.0)
    relabelled = make_lease() | {"metadata": {"resourceVersion": "8", "labels": {"a": "b"}}}
    same = lease.observe(first, relabelled, 20.0)
    renewed = lease.observe(same, make_lease(renewTime="2026-01-01T00:00:02.000000Z"), 30.0)
    assert (first.since, same.since, renewed.since) == (10.0, 10.0, 30.0)
    assert (first.resource_version, same.resource_version) == ("7", "8")


def test_without_an_object_a_watch_starts_at_the_present():
    assert seen(None).resource_version == ""


def test_taking_over_counts_a_transition_and_starts_a_term():
    spec = lease.claimed(Claim.TAKE, seen(make_lease()), KEY, US, Timing(), AT)["spec"]
    assert spec == {
        "holderIdentity": US,
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-03-04T05:06:07.000089Z",
        "renewTime": "2026-03-04T05:06:07.000089Z",
        "leaseTransitions": 4,
    }


def test_renewing_changes_nothing_but_the_time():
    before = make_lease(US)
    after = lease.claimed(Claim.RENEW, seen(before), KEY, US, Timing(), AT)
    assert after == before | {"spec": before["spec"] | {"renewTime": "2026-03-04T05:06:07.000089Z"}}


def test_a_new_lease_has_seen_no_transition():
    assert lease.claimed(Claim.CREATE, seen(None), KEY, US, Timing(lease_seconds=20), AT) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "mpi-operator", "name": "lock"},
        "spec": {
            "holderIdentity": US,
            "leaseDurationSeconds": 20,
            "acquireTime": "2026-03-04T05:06:07.000089Z",
            "renewTime": "2026-03-04T05:06:07.000089Z",
            "leaseTransitions": 0,
        },
    }


def test_a_released_lease_has_no_holder_and_the_shortest_duration():
    assert lease.released(make_lease(US), AT)["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2026-03-04T05:06:07.000089Z",
        "renewTime": "2026-03-04T05:06:07.000089Z",
        "leaseTransitions": 3,
    }


@pytest.mark.parametrize("claim", [Claim.TAKE, Claim.RENEW])
def test_a_write_carries_the_version_and_what_we_do_not_know(claim):
    before = make_lease(US, strategy="OldestEmulationVersion")
    before["metadata"]["labels"] = {"team": "hpc"}
    after = lease.claimed(claim, seen(before), KEY, US, Timing(), AT)
    assert after["metadata"] == before["metadata"]
    assert after["spec"]["strategy"] == "OldestEmulationVersion"
    assert lease.released(before, AT)["metadata"] == before["metadata"]


def test_what_was_seen_is_never_changed():
    before = make_lease(US)
    lease.claimed(Claim.RENEW, seen(before), KEY, US, Timing(), AT)
    lease.released(before, AT)
    assert before == make_lease(US)


@pytest.mark.parametrize(
    ("at", "written"),
    [
        pytest.param(
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            "2026-01-02T03:04:05.000000Z",
            id="zeros are written too",
        ),
        pytest.param(
            datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=-5))),
            "2026-01-02T08:04:05.678901Z",
            id="always in UTC",
        ),
    ],
)
def test_a_time_as_go_reads_it(at, written):
    assert lease.micro_time(at) == written


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param((5, 5.0, 3.0), id="no time between deadline and expiry"),
        pytest.param((15, 3.0, 3.0), id="no time for a second try"),
        pytest.param((15, 5.0, 0.0), id="no pause between tries"),
    ],
)
def test_a_timing_that_cannot_work_is_refused(seconds):
    with pytest.raises(ValueError, match="must be longer"):
        Timing(*seconds)


def test_renewing_starts_so_early_that_most_of_the_deadline_is_left():
    assert Timing().renew_interval == pytest.approx(5 / 3)
    assert Timing(retry_seconds=0.5).renew_interval == 0.5


junk = st.none() | st.integers(-5, 100)
records = st.builds(
    Record,
    holder=st.sampled_from(["", US, THEM]),
    seconds=st.integers(-5, 100),
    renewed_at=st.none() | st.text(),
    transitions=st.integers(0, 9),
)
observations = st.builds(
    Observation,
    since=st.floats(0, 2000),
    record=records,
    manifest=st.none() | st.just(make_lease()),
)


@given(observations, st.floats(0, 4000))
def test_waiting_ends_by_itself(observation, now):
    step = lease.next_step(observation, now, US, Timing())
    until = step.until if isinstance(step, Wait) else now
    assert now <= until <= max(now, observation.since + 100)
    assert isinstance(lease.next_step(observation, until, US, Timing()), Claim)


@given(observations, st.floats(0, 4000))
def test_no_candidate_takes_a_lease_that_has_not_expired(observation, now):
    held = Observation(observation.since, Record(holder=THEM, seconds=15), observation.manifest)
    step = lease.next_step(held, now, US, Timing())
    assert isinstance(step, Wait) == (now < held.since + 15)


@given(holder=st.none() | st.text(), duration=junk, transitions=junk, at=st.none() | st.text())
def test_anything_the_api_stores_can_be_read_and_taken(holder, duration, transitions, at):
    found = make_lease(
        holder, leaseDurationSeconds=duration, leaseTransitions=transitions, renewTime=at
    )
    spec = lease.claimed(Claim.TAKE, seen(found), KEY, US, Timing(), AT)["spec"]
    assert spec["holderIdentity"] == US
    assert spec["leaseTransitions"] == (transitions or 0) + 1
