import json

import msgspec
import pytest

from mpi_operator.kube import errors


def status(**fields):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure"} | fields).encode()


def answer(code, body=b"", **headers):
    return errors.from_response(code, body, {k.replace("_", "-"): v for k, v in headers.items()})


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Gone),
        (413, "RequestEntityTooLarge", errors.TooLarge),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (500, "ServerTimeout", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
    ],
)
def test_the_reason_says_which_error_it_is(code, reason, kind):
    error = answer(code, status(reason=reason, message="no", code=code))
    assert type(error) is kind
    assert (error.code, error.reason, str(error)) == (code, reason, "no")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (302, errors.ApiError),
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.MethodNotAllowed),
        (409, errors.Conflict),
        (410, errors.Gone),
        (413, errors.TooLarge),
        (418, errors.ApiError),
        (422, errors.Invalid),
        (429, errors.TooManyRequests),
        (500, errors.ServerError),
        (502, errors.ServerError),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
        (599, errors.ServerError),
    ],
)
def test_without_a_reason_the_code_says_it(code, kind):
    assert type(answer(code)) is kind
    assert type(answer(code, status(reason="Whatever", message="no"))) is kind
    assert str(answer(code)) == f"HTTP {code}"


def test_the_code_is_the_one_of_the_answer_whatever_its_body_says():
    error = answer(403, b'{"message": "blocked", "code": 1020}')
    assert (type(error), error.code) == (errors.Forbidden, 403)


def test_a_full_quota_differs_from_other_refusals():
    message = 'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1'
    error = answer(403, status(reason="Forbidden", message=message))
    assert type(error) is errors.QuotaExceeded


def test_an_invalid_object_comes_with_every_complaint():
    causes = [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
        {"message": "too many"},
    ]
    error = answer(422, status(reason="Invalid", message="no", details={"causes": causes}))
    assert [str(cause) for cause in error.causes] == ["spec.a: Required value", "too many"]


@pytest.mark.parametrize("details", [None, {}, {"name": "x"}])
def test_without_complaints_there_are_none(details):
    error = answer(404, status(reason="NotFound", message="no", details=details))
    assert (error.causes, error.retry_after) == ((), None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "HTTP 502", id="nothing"),
        pytest.param(b"  \n", "HTTP 502", id="blank"),
        pytest.param(b"<html>Bad Gateway</html>", "HTTP 502: <html>Bad Gateway</html>", id="HTML"),
        pytest.param(b"null", "HTTP 502: null", id="null"),
        pytest.param(b"[1]", "HTTP 502: [1]", id="a list"),
        pytest.param(b'{"message": 5}', 'HTTP 502: {"message": 5}', id="a message of no text"),
        pytest.param(b'{"kind": "Pod"}', 'HTTP 502: {"kind": "Pod"}', id="some object"),
        pytest.param(b'{"message": "\xff"}', 'HTTP 502: {"message": "\ufffd"}', id="no UTF-8"),
        pytest.param(b"\x00\xfe", "HTTP 502: \x00\ufffd", id="no text at all"),
    ],
)
def test_the_beginning_of_an_answer_that_is_no_status_is_kept(body, message):
    error = answer(502, body)
    assert (str(error), error.code, error.reason) == (message, 502, "")


def test_of_a_long_page_only_the_beginning_is_kept():
    assert len(str(answer(502, b"x" * 1_000_000))) < 250


def test_a_status_nested_too_deep_is_an_error_like_any_other():
    body = b'{"message": "no", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert type(answer(500, body)) is errors.ServerError


def test_a_status_with_nothing_in_it_still_says_something():
    assert str(errors.from_status(errors.Status(code=404))) == "the server answered 404 "


@pytest.mark.parametrize(
    ("header", "detail", "seconds"),
    [
        pytest.param("7", None, 7, id="in the header"),
        pytest.param(None, 9, 9, id="in the details"),
        pytest.param("7", 9, 7, id="in both, the header"),
        pytest.param("0", 9, 0, id="at once"),
        pytest.param("soon", 9, 9, id="no number"),
        pytest.param("-3", None, None, id="a negative one"),
        pytest.param("1.5", None, None, id="a fraction"),
        pytest.param("nan", None, None, id="no number at all"),
        pytest.param("Fri, 31 Dec 1999 23:59:59 GMT", None, None, id="a date"),
        pytest.param("9" * 400, None, float("inf"), id="until the end of time"),
    ],
)
def test_when_the_server_wants_to_hear_from_us_again(header, detail, seconds):
    headers = {"Retry_After": header} if header is not None else {}
    details = {"retryAfterSeconds": detail} if detail is not None else {}
    error = answer(429, status(reason="TooManyRequests", message="no", details=details), **headers)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        pytest.param(
            status(reason="Expired", code=410, message="too old"),
            errors.Gone,
            "too old",
            id="a version that is too old",
        ),
        pytest.param(status(code=500, message="no"), errors.ServerError, "no", id="by code"),
        pytest.param(
            b"null", errors.ServerError, "the watch sent an error that is not a Status: b'null'"
        ),
        pytest.param(
            b'"\xff"',
            errors.ServerError,
            "the watch sent an error that is not a Status: ",
            id="utf8",
        ),
    ],
)
def test_an_error_inside_a_watch(raw, kind, message):
    error = errors.from_watch_error(msgspec.Raw(raw))
    assert type(error) is kind
    assert str(error).startswith(message)


def test_every_error_is_a_kube_error_and_losing_time_is_losing_the_connection():
    assert issubclass(errors.ApiError, errors.KubeError)
    assert issubclass(errors.DeadlineExceeded, errors.ConnectionLost)
    assert issubclass(errors.Untrusted, errors.NotSent)
    assert not issubclass(errors.NotSent, errors.ConnectionLost)
