import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube.backoff import Backoff

BACKOFF = Backoff(base=0.5, cap=60.0)


@pytest.mark.parametrize(
    ("failures", "random", "seconds"),
    [
        pytest.param(1, 0.0, 0.5, id="the first delay is the base"),
        pytest.param(2, 0.0, 1.0, id="each one doubles"),
        pytest.param(5, 0.0, 8.0, id="and doubles"),
        pytest.param(8, 0.0, 60.0, id="until the cap"),
        pytest.param(5, 0.5, 6.0, id="chance cuts some of it"),
        pytest.param(100_000, 0.0, 60.0, id="failing for ever overflows nothing"),
    ],
)
def test_how_long_to_wait(failures, random, seconds):
    assert BACKOFF.delay(failures, random) == seconds


@given(failures=st.integers(1, 2000), random=st.floats(0, 1, exclude_max=True))
def test_no_delay_is_longer_than_the_cap_or_shorter_than_half_the_base(failures, random):
    assert BACKOFF.base / 2 <= BACKOFF.delay(failures, random) <= BACKOFF.cap
