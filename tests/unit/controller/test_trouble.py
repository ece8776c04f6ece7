"""What a refusal of the server means for a job."""

import pytest

from mpi_operator.controller.trouble import Trouble, most_important, refusal
from mpi_operator.kube.errors import Status, from_status

DENIED = 'admission webhook "policy.example.com" denied the request: no'


def error(code, message, reason=""):
    return from_status(Status(message, reason, code))


@pytest.mark.parametrize(
    ("said", "reason", "is_fatal"),
    [
        pytest.param(error(422, "spec: Invalid value"), "InvalidPodTemplate", True, id="invalid"),
        pytest.param(error(400, "unknown field"), "InvalidPodTemplate", True, id="bad request"),
        pytest.param(error(403, "exceeded quota: q"), "QuotaExceeded", False, id="quota"),
        pytest.param(error(403, "may not"), "Forbidden", False, id="forbidden"),
        pytest.param(error(403, DENIED), "AdmissionDenied", False, id="a webhook's 403"),
        pytest.param(error(400, DENIED), "AdmissionDenied", False, id="a webhook's 400"),
        pytest.param(error(422, DENIED), "AdmissionDenied", False, id="a webhook's 422"),
        pytest.param(
            error(422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
            "AdmissionDenied",
            False,
            id="a policy",
        ),
        pytest.param(error(413, "too large"), "Rejected", False, id="too large"),
    ],
)
def test_what_it_means_that_a_pod_was_refused(said, reason, is_fatal):
    trouble = refusal(said, "Pod pi-worker-0 was not created", is_template=True)
    assert trouble == Trouble(reason, f"Pod pi-worker-0 was not created: {said}", is_fatal)


def test_what_is_no_template_of_the_user_is_never_fatal():
    trouble = refusal(error(422, "immutable"), "Job pi-launcher was not changed")
    assert (trouble.reason, trouble.is_fatal) == ("Rejected", False)


def test_no_trouble():
    assert most_important([]) is None


def test_the_worst_stands_for_all_and_the_others_are_told_beside_it():
    small, bad = Trouble("Small", "a bit"), Trouble("Bad", "much", is_fatal=True)
    assert most_important([small, bad]) == Trouble("Bad", "much; a bit", is_fatal=True)


def test_the_first_of_equals_stands_for_all():
    assert most_important([Trouble("A", "a"), Trouble("B", "b"), Trouble("C", "a")]) == Trouble(
        "A", "a; b"
    )


def test_what_is_too_long_for_a_condition_is_cut():
    found = most_important([Trouble("A", "a" * 800), Trouble("B", "b" * 800)])
    assert found is not None
    assert len(found.message) == 1024
    assert found.message.endswith("...")
