"""Which problem a refusal of the server becomes, and how problems are summarized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.controller.problems import (
    Problem,
    condensed,
    is_admission,
    most_important,
    refusal,
)
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
def test_how_a_refused_pod_is_classified(said, reason, is_fatal):
    problem = refusal(said, "Pod pi-worker-0 was not created", is_template=True)
    assert problem == Problem(reason, f"Pod pi-worker-0 was not created: {said}", is_fatal)


def test_a_refused_object_without_a_user_template_is_never_fatal():
    problem = refusal(error(422, "immutable"), "Job pi-launcher was not changed")
    assert (problem.reason, problem.is_fatal) == ("Rejected", False)


@pytest.mark.parametrize(
    ("said", "is_asked"),
    [
        pytest.param(error(403, DENIED), True, id="a webhook that denies"),
        pytest.param(error(418, DENIED), True, id="with a code of its own"),
        pytest.param(
            error(422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
            True,
            id="a policy that denies",
        ),
        pytest.param(
            error(500, 'Internal error occurred: failed calling webhook "w": connection refused'),
            True,
            id="a webhook that is down",
        ),
        pytest.param(error(500, "etcdserver: request timed out"), False, id="a server that is"),
        pytest.param(error(403, "pods is forbidden"), False, id="a missing permission"),
        pytest.param(error(422, "spec: Invalid value"), False, id="the API's own rules"),
    ],
)
def test_whether_admission_refused(said, is_asked):
    assert is_admission(said) == is_asked


# --- many problems ----------------------------------------------------------------------------


def about(number, reason="QuotaExceeded", *, is_fatal=False):
    return Problem(reason, f"Pod pi-worker-{number} was not created: no", is_fatal)


@pytest.mark.parametrize("numbers", [(), (1,), (1, 2)], ids=["none", "one", "two"])
def test_a_few_problems_are_listed_one_by_one(numbers):
    problems = [about(number) for number in numbers]
    assert condensed(problems) == problems


def test_many_similar_problems_are_reported_by_the_first():
    [problem] = condensed([about(number) for number in (10, 2, 9, 100)])
    assert problem.message == "Pod pi-worker-2 was not created: no (and 3 more)"
    assert problem.reason == "QuotaExceeded"


def test_different_problems_are_not_merged():
    problems = [
        *(about(number) for number in range(3)),
        *(about(number, "Forbidden") for number in range(3)),
        *(about(number, is_fatal=True) for number in range(3)),
    ]
    found = condensed(problems)
    assert {(each.reason, each.is_fatal) for each in found} == {
        ("QuotaExceeded", False),
        ("Forbidden", False),
        ("QuotaExceeded", True),
    }
    assert all(each.message.endswith("(and 2 more)") for each in found)


@given(st.permutations([about(n, r) for n in (1, 2, 10, 11) for r in ("QuotaExceeded", "Other")]))
def test_the_order_of_refusals_makes_no_difference(problems):
    assert condensed(problems) == condensed(sorted(problems, key=str))


def test_workers_are_sorted_by_number():
    assert [each.message for each in condensed([about(10), about(2)])] == [
        "Pod pi-worker-2 was not created: no",
        "Pod pi-worker-10 was not created: no",
    ]


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000, "٣" * 5000], ids=["9…", "0…", "٣…"])
def test_unreadable_numbers_are_still_quoted(digits):
    problem = Problem("InvalidPodTemplate", f'env[0].name: Invalid value: "{digits}"')
    assert condensed([problem]) == [problem]


# --- the worst problem ------------------------------------------------------------------------


def test_no_problem():
    assert most_important([]) is None


def test_the_worst_problem_leads_and_the_others_follow_it():
    small, bad = Problem("Small", "a bit"), Problem("Bad", "much", is_fatal=True)
    assert most_important([small, bad]) == Problem("Bad", "much; a bit", is_fatal=True)


def test_the_first_of_equal_problems_is_reported():
    assert most_important([Problem("A", "a"), Problem("B", "b"), Problem("C", "a")]) == Problem(
        "A", "a; b"
    )


def test_a_message_that_is_too_long_is_cut():
    found = most_important([Problem("A", "a" * 800), Problem("B", "b" * 800)])
    assert found is not None
    assert len(found.message) == 1024
    assert found.message.endswith("...")
