"""The AdmissionReview that answers a request."""

import base64
import json

import pytest

from mpi_operator.webhook.admission_response import Admission, accepted_warnings, review


def response(admission):
    answer = review("some-uid", admission)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return answer["response"]


def test_an_object_that_may_be_stored():
    assert response(Admission(allowed=True)) == {"uid": "some-uid", "allowed": True}


def test_an_object_that_may_not_be_stored_with_the_reason():
    assert response(Admission(allowed=False, message="spec.gpus: must be positive")) == {
        "uid": "some-uid",
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "spec.gpus: must be positive"},
    }


def test_changes_are_a_json_patch():
    operation = {"op": "add", "path": "/metadata/annotations/a~1b", "value": "é"}
    answer = response(Admission(allowed=True, patch=(operation,)))
    assert answer["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(answer["patch"])) == [operation]


def test_nothing_is_changed_in_an_object_that_is_not_stored():
    patch = ({"op": "remove", "path": "/spec"},)
    answer = response(Admission(allowed=False, message="no", patch=patch))
    assert "patch" not in answer


@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        pytest.param((), [], id="none"),
        pytest.param(("a", "b", "a"), ["a", "b"], id="each once"),
        pytest.param(("line\none\t\x00",), ["line one"], id="no control characters"),
        pytest.param(("x" * 256,), ["x" * 256], id="as long as allowed"),
        pytest.param(("x" * 257,), ["x" * 255 + "…"], id="cut to what is allowed"),
        pytest.param(
            tuple(f"{n:0256}" for n in range(20)),
            [f"{n:0256}" for n in range(16)],
            id="as many as allowed",
        ),
    ],
)
def test_warnings_are_such_as_the_api_server_passes_on(given, accepted):
    assert accepted_warnings(given) == accepted
    assert response(Admission(allowed=True, warnings=given)).get("warnings", []) == accepted
