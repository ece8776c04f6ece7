import json

import pytest

from benchmarks.operators import requests
from benchmarks.operators.requests import Missing
from devcluster import audit
from devcluster.audit import Record


def line(verb="create", resource="pods", *, subresource="", code=201, user="us", second=0):
    return json.dumps(
        {
            "verb": verb,
            "stage": "ResponseComplete",
            "user": {"username": user},
            "objectRef": {"resource": resource, "namespace": "n", "subresource": subresource},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": f"2026-01-31T12:00:{second:02}.000000Z",
            "stageTimestamp": f"2026-01-31T12:00:{second:02}.250000Z",
        }
    ).encode()


def request(*arguments, **options) -> Record:
    return audit.parse(line(*arguments, **options))


def test_a_line_of_the_log_is_a_request_with_its_times():
    found = request("update", "mpijobs", subresource="status", code=200, second=7)
    assert (found.kind, found.user, found.namespace) == ("update mpijobs/status", "us", "n")
    assert found.answered - found.received == 0.25


def test_a_request_for_no_resource_is_read_too():
    text = {
        "verb": "get",
        "stage": "ResponseComplete",
        "requestReceivedTimestamp": "2026-01-31T12:00:00.0Z",
        "stageTimestamp": "2026-01-31T12:00:00.1Z",
    }
    assert audit.parse(json.dumps(text).encode()).resource == ""


def test_writes_are_those_of_a_user_and_not_about_leases():
    log = [
        request(),
        request(user="somebody else"),
        request("get", code=200),
        request("update", "leases", code=200),
        request("patch", "mpijobs", subresource="status", code=200),
    ]
    assert audit.counted(audit.writes(log, "us")) == {
        "create pods": 1,
        "patch mpijobs/status": 1,
    }


@pytest.mark.parametrize(
    ("written", "counts"),
    [
        pytest.param(request(), False, id="an object is made"),
        pytest.param(request("delete", code=200), False, id="an object is removed"),
        pytest.param(request(code=409), True, id="an attempt that was refused"),
        pytest.param(request("create", "events"), True, id="an event"),
        pytest.param(request("patch", "events", code=200), True, id="an event again"),
        pytest.param(request("update", "configmaps", code=200), True, id="a change"),
        pytest.param(request("update", "mpijobs", subresource="status"), True, id="a status"),
    ],
)
def test_what_a_job_costs_beyond_its_objects(written, counts):
    assert requests.beyond_objects([written]) == ([written] if counts else [])


def test_refusals_are_counted_apart():
    assert audit.counted([request(), request(code=409)]) == {
        "create pods": 1,
        "create pods (409)": 1,
    }


def test_a_span_reaches_from_the_first_request_to_the_last_answer():
    assert requests.span([request(second=3), request(second=1)]) == 2.25


def test_nothing_is_missing_once_everything_was_created():
    missing = Missing("us", "n", {"pods": 2, "jobs": 1})
    assert not missing.is_nothing_after([request(), request(code=409), request(user="them")])
    assert not missing.is_nothing_after([request()])
    assert missing.is_nothing_after([request("create", "jobs")])


def test_a_log_is_read_on_from_where_it_was_left(tmp_path):
    path = tmp_path / "audit.log"
    path.write_bytes(line(second=1) + b"\n" + line(second=2)[:20])
    log = audit.Log(path)
    assert len(log.new()) == 1
    path.write_bytes(line(second=1) + b"\n" + line(second=2) + b"\n")
    assert [each.received % 60 for each in log.new()] == [2]
    assert log.new() == []


def test_what_was_skipped_is_not_read(tmp_path):
    path = tmp_path / "audit.log"
    path.write_bytes(line() + b"\n")
    log = audit.Log(path)
    log.skip()
    assert log.new() == []
