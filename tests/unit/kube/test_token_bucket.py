from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator.kube.token_bucket import TokenBucket

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "taken"),
    [
        pytest.param([0, 0, 0], [True, True, False], id="a burst, then no more"),
        pytest.param([0, 0, 60], [True, True, True], id="one more after a while"),
        pytest.param([0, 0, 30, 60], [True, True, False, True], id="asking in vain costs nothing"),
        pytest.param([0, 999, 999, 999], [True, True, True, False], id="never more than the burst"),
        pytest.param([0, 0, -999, -939], [True, True, False, True], id="a clock set back"),
    ],
)
def test_a_burst_of_two_and_one_a_minute(times, taken):
    bucket = TokenBucket(2, timedelta(minutes=1), NOW)
    assert [bucket.take(NOW + timedelta(seconds=seconds)) for seconds in times] == taken
