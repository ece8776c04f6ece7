"""The conditions of a job. Spec 3.1, and what clients rely on."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.api.conditions import (
    TERMINAL,
    Conditions,
    Reason,
    condition,
    describing,
    is_finished,
    is_true,
    true_since,
    with_condition,
)
from mpi_operator.api.types import Condition, ConditionStatus, ConditionType

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
CREATED, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED = (
    ConditionType.CREATED,
    ConditionType.RUNNING,
    ConditionType.RESTARTING,
    ConditionType.SUSPENDED,
    ConditionType.SUCCEEDED,
    ConditionType.FAILED,
)
TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def after_story(*story: tuple[ConditionType, ConditionStatus, float]) -> Conditions:
    """The list after these things happened, each some seconds after the beginning."""
    conditions: Conditions = ()
    for kind, status, seconds in story:
        conditions = with_condition(
            conditions, kind, status, f"{kind}{status}", "…", now=after(seconds)
        )
    return conditions


def shown(conditions: Conditions) -> list[str]:
    return [f"{each.type}={each.status}" for each in conditions]


def test_the_first_condition():
    (created,) = with_condition((), CREATED, TRUE, Reason.CREATED, "It is created.", now=NOW)
    assert created == Condition(
        type="Created",
        status=TRUE,
        reason="MPIJobCreated",
        message="It is created.",
        last_update_time=NOW,
        last_transition_time=NOW,
    )


@pytest.mark.parametrize(
    ("story", "list_"),
    [
        pytest.param(
            [(CREATED, TRUE, 0), (RUNNING, TRUE, 5)], ["Created=True", "Running=True"], id="running"
        ),
        pytest.param(
            [(CREATED, TRUE, 0), (SUSPENDED, TRUE, 5), (RUNNING, FALSE, 5)],
            ["Created=True", "Running=False", "Suspended=True"],
            id="suspended, which says more than that it does not run",
        ),
        pytest.param(
            [(CREATED, TRUE, 0), (SUSPENDED, TRUE, 5), (SUSPENDED, FALSE, 9)],
            ["Suspended=False", "Created=True"],
            id="resumed, and nothing runs yet",
        ),
        pytest.param(
            [(CREATED, TRUE, 0), (RUNNING, TRUE, 5), (SUCCEEDED, TRUE, 9)],
            ["Created=True", "Running=False", "Succeeded=True"],
            id="succeeded, so it does not run",
        ),
        pytest.param(
            [(CREATED, TRUE, 0), (RUNNING, TRUE, 5), (FAILED, TRUE, 9)],
            ["Created=True", "Running=False", "Failed=True"],
            id="failed, so it does not run",
        ),
        pytest.param(
            [(RUNNING, TRUE, 0), (RESTARTING, TRUE, 5)],
            ["Restarting=True"],
            id="restarting, instead of running",
        ),
        pytest.param(
            [(RESTARTING, TRUE, 0), (RUNNING, TRUE, 5)],
            ["Running=True"],
            id="running, instead of restarting",
        ),
        pytest.param(
            [(CREATED, TRUE, 0), (RESTARTING, TRUE, 5), (FAILED, TRUE, 9)],
            ["Created=True", "Failed=True"],
            id="failed, so it does not restart",
        ),
        pytest.param(
            [(CREATED, TRUE, 0), (RUNNING, TRUE, 0)],
            ["Created=True", "Running=True"],
            id="within a second, the one set last describes it",
        ),
        pytest.param(
            [(SUCCEEDED, TRUE, 0), (RUNNING, TRUE, 5), (FAILED, TRUE, 6)],
            ["Succeeded=True"],
            id="nothing changes after the end",
        ),
    ],
)
def test_the_list_after_a_story(story, list_):
    assert shown(after_story(*story)) == list_


def test_setting_the_same_condition_again_changes_nothing():
    conditions = after_story((CREATED, TRUE, 0))
    again = with_condition(conditions, CREATED, TRUE, "CreatedTrue", "…", now=after(60))
    assert again is conditions


def test_another_reason_is_an_update_and_no_transition():
    conditions = after_story((RUNNING, FALSE, 0))
    (running,) = with_condition(conditions, RUNNING, FALSE, "Quota", "…", now=after(60))
    assert (running.reason, running.last_update_time) == ("Quota", after(60))
    assert running.last_transition_time == NOW


def test_another_message_is_an_update_too():
    conditions = after_story((RUNNING, FALSE, 0))
    (running,) = with_condition(conditions, RUNNING, FALSE, "RunningFalse", "!", now=after(60))
    assert (running.message, running.last_transition_time) == ("!", NOW)


def test_the_end_keeps_the_times_at_which_the_job_ran():
    before = after_story((RUNNING, TRUE, 5))
    running, _ = with_condition(before, FAILED, TRUE, "Why", "…", now=after(60))
    assert running == Condition(
        type="Running",
        status=FALSE,
        reason="RunningTrue",
        message="…",
        last_update_time=after(5),
        last_transition_time=after(5),
    )


def test_of_one_second_the_newer_one_has_the_later_time():
    conditions = after_story((CREATED, TRUE, 0), (RUNNING, TRUE, 0.3), (SUCCEEDED, TRUE, 0.6))
    assert [each.last_transition_time for each in conditions] == [NOW, after(1), after(2)]


def test_the_end_is_newer_than_what_is_false_in_the_same_second():
    _, end = after_story((RUNNING, FALSE, 0), (FAILED, TRUE, 0.3))
    assert end.last_transition_time == after(1)


@pytest.mark.parametrize(
    ("status", "seconds", "since"),
    [
        pytest.param(TRUE, 0.9, 0, id="its time was moved"),
        pytest.param(TRUE, 5, 5, id="its time is the real one"),
        pytest.param(FALSE, 5, None, id="it is not true"),
    ],
)
def test_since_when_a_condition_is_true_at_the_earliest(status, seconds, since):
    conditions = after_story((CREATED, TRUE, 0), (RUNNING, status, seconds))
    assert true_since(conditions, RUNNING) == (None if since is None else after(since))
    assert true_since(conditions, FAILED) is None


def test_only_what_becomes_true_needs_a_later_time():
    running, _ = after_story((CREATED, TRUE, 0), (RUNNING, FALSE, 0.3))
    assert running.last_transition_time == NOW


def test_times_are_whole_seconds_of_universal_time():
    elsewhere = NOW.astimezone().replace(microsecond=123456)
    (created,) = with_condition((), CREATED, TRUE, "R", "…", now=elsewhere)
    assert (created.last_transition_time, created.last_update_time) == (NOW, NOW)


@pytest.mark.parametrize("kind", sorted(TERMINAL))
def test_a_terminal_condition_is_never_false(kind):
    with pytest.raises(ValueError, match="for the end of the job"):
        with_condition((), kind, FALSE, "R", "…", now=NOW)


def test_the_end_describes_a_job_even_if_something_else_is_newer():
    conditions = (
        Condition(type="Failed", status=TRUE, last_transition_time=NOW),
        Condition(type="Running", status=TRUE, last_transition_time=after(5)),
    )
    assert describing(conditions) is conditions[0]


def test_conditions_without_times_count_as_old():
    conditions = (Condition(type="Created", status=TRUE),)
    _, end = with_condition(conditions, FAILED, TRUE, "R", "…", now=NOW)
    assert end.last_transition_time == NOW


def test_nothing_describes_a_job_about_which_nothing_is_true():
    assert describing(after_story((RUNNING, FALSE, 0))) is None


def test_looking_up_conditions():
    conditions = after_story((CREATED, TRUE, 0), (RUNNING, FALSE, 1))
    assert is_true(conditions, CREATED)
    assert not is_true(conditions, RUNNING)
    assert not is_true(conditions, FAILED)
    assert condition(conditions, SUSPENDED) is None


def as_flyte_does(conditions):
    """The newest condition that is true, and of two of the same second the first."""
    newest_first = sorted(conditions, key=lambda each: each.last_transition_time, reverse=True)
    return next(each for each in newest_first if each.is_true)


STORIES = st.lists(
    st.tuples(
        st.sampled_from(ConditionType), st.sampled_from([TRUE, FALSE]), st.floats(0, 3)
    ).filter(lambda step: step[0] not in TERMINAL or step[1] is TRUE),
    max_size=12,
)


@given(STORIES)
def test_clients_can_rely_on_the_list_after_any_story(story):
    conditions = after_story(*sorted(story, key=lambda step: step[2]))
    kinds = [each.type for each in conditions]
    assert len(kinds) == len(set(kinds))
    assert all(each.is_true for each in conditions if each.type in TERMINAL)
    if (last := describing(conditions)) is not None:
        assert conditions[-1] is last
        assert as_flyte_does(conditions) is last
    if is_finished(conditions):
        *others, end = conditions
        assert end.type in TERMINAL
        assert not is_true(conditions, RUNNING)
        assert all(
            each.last_transition_time
            and end.last_transition_time
            and end.last_transition_time - each.last_transition_time >= timedelta(seconds=1)
            for each in others
        )
