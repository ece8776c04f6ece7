"""Annotations of a job."""

from datetime import timedelta

import pytest

from mpi_operator.api import annotations
from mpi_operator.api.decode import decode_job, warnings
from tests.support.mpijobs import mpijob


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("600", 600),
        (" 45 ", 45),
        ("45s", 45),
        ("10m", 600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1500ms", 2),
        pytest.param("1ms", 1, id="a time that is shorter than a second counts as one"),
        pytest.param("999999999h", 365 * 86400, id="the maximum"),
        ("0", None),
        ("0s", None),
        ("", None),
        ("-5", None),
        ("10 m", None),
        ("ten", None),
        ("10m!", None),
        ("1d", None),
        ("٣", None),
        pytest.param("9" * 5000, None, id="a huge number"),
        pytest.param("999999999h" * 5000, 365 * 86400, id="many parts"),
        ("٣s", None),
    ],
)
def test_how_long_a_start_may_take(text, seconds):
    found = annotations.init_timeout({annotations.INIT_TIMEOUT: text})
    assert found == (timedelta(seconds=seconds) if seconds else None)


@pytest.mark.parametrize(("text", "is_warned"), [("10m", False), ("10 minutes", True), ("", True)])
def test_an_invalid_duration_causes_a_warning(text, is_warned):
    manifest = mpijob()
    manifest["metadata"]["annotations"] = {annotations.INIT_TIMEOUT: text}
    assert decode_job(manifest)  # it can still run
    messages = [str(each) for each in warnings(manifest)]
    assert any("init-timeout" in each and '"10m"' in each for each in messages) == is_warned
