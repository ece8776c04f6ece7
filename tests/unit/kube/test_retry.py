import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube import errors
from mpi_operator.kube.retry import delay_before_retry


def api_error(code, retry_after=None):
    return errors.from_status(errors.Status(code=code), retry_after=retry_after)


def delay(error, *, is_read=True, attempt=0, random=0.0):
    return delay_before_retry(error, is_read=is_read, attempt=attempt, random=lambda: random)


ALWAYS, READS, NEVER = (True, True), (True, False), (False, False)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        pytest.param(api_error(429), ALWAYS, id="refused for now: nothing happened"),
        pytest.param(errors.NotSent("refused"), ALWAYS, id="never left: nothing happened"),
        pytest.param(errors.ConnectionLost("reset"), READS, id="lost: a write may have happened"),
        pytest.param(errors.DeadlineExceeded("late"), READS, id="late: a write may have happened"),
        pytest.param(api_error(500), READS, id="the server failed"),
        pytest.param(api_error(503), READS, id="the server cannot serve"),
        pytest.param(errors.Untrusted("who?"), NEVER, id="a certificate does not become valid"),
        pytest.param(errors.NotLeader("over"), NEVER, id="not allowed to write any more"),
        pytest.param(errors.Undecodable("what?"), NEVER, id="no sense"),
        *(pytest.param(api_error(code), NEVER, id=str(code)) for code in (400, 401, 403, 404)),
        *(pytest.param(api_error(code), NEVER, id=str(code)) for code in (302, 409, 410, 422)),
    ],
)
def test_what_is_sent_again(error, again):
    assert tuple(delay(error, is_read=is_read) is not None for is_read in (True, False)) == again


def test_the_delay_doubles_up_to_a_cap():
    delays = [delay(errors.NotSent(), attempt=number) for number in (0, 1, 2, 5, 6, 7, 100)]
    assert delays == pytest.approx([0.1, 0.2, 0.4, 3.2, 5.0, 5.0, 5.0])


@pytest.mark.parametrize(
    ("asked", "random", "seconds"),
    [
        pytest.param(8, 0.0, 8, id="when the server asked for it"),
        pytest.param(8, 0.5, 9, id="or a bit later, not to come all at once"),
        pytest.param(1, 0.0, 1, id="a short one"),
        pytest.param(0, 0.0, 0.1, id="at once is not at once"),
        pytest.param(-5, 0.0, 0.1, id="in the past is not in the past"),
        pytest.param(float("inf"), 0.5, float("inf"), id="never"),
    ],
)
def test_the_server_says_when(asked, random, seconds):
    assert delay(api_error(429, asked), random=random) == pytest.approx(seconds)


def test_the_server_says_when_for_other_errors_too():
    assert delay(api_error(503, 8)) == 8


def test_a_server_that_always_says_at_once_is_asked_ever_less_often():
    delays = [delay(api_error(429, 0), attempt=number) for number in range(8)]
    assert delays == sorted(delays)
    assert delays[-1] == 5


@given(
    asked=st.none() | st.floats(-1e6, 1e6),
    attempt=st.integers(0, 10_000),
    random=st.floats(0, 1, exclude_max=True),
)
def test_no_delay_is_shorter_than_asked_for_or_none_at_all(asked, attempt, random):
    seconds = delay(api_error(429, asked), attempt=attempt, random=random)
    assert seconds is not None
    assert seconds >= max(0.05, asked or 0)
