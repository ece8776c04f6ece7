import json

from devcluster import audit

EVENT = {
    "stage": "ResponseComplete",
    "requestURI": "/apis/batch/v1/namespaces/default/jobs/pi/status",
    "verb": "patch",
    "user": {"username": "alice"},
    "userAgent": "kubectl",
    "objectRef": {
        "resource": "jobs",
        "namespace": "default",
        "name": "pi",
        "subresource": "status",
    },
    "responseStatus": {"code": 409},
}


def test_a_line_becomes_a_record(tmp_path):
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(EVENT) + "\n")
    assert list(audit.read(log)) == [
        audit.Record(
            user="alice",
            verb="patch",
            resource="jobs",
            subresource="status",
            namespace="default",
            name="pi",
            code=409,
            stage="ResponseComplete",
            user_agent="kubectl",
            uri="/apis/batch/v1/namespaces/default/jobs/pi/status",
        )
    ]


def test_a_line_that_is_still_being_written_is_left_out(tmp_path):
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(EVENT) + "\n" + json.dumps(EVENT)[:20])
    assert len(list(audit.read(log))) == 1


def test_no_log_has_no_records(tmp_path):
    assert list(audit.read(tmp_path / "audit.log")) == []
