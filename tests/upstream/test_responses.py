"""Answers into records and Meta, or into the error that they are."""

import pytest

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.failures import Allowance, Failure
from gateway.upstream.failures import DEFAULT_RETRY_AFTER, failure, retry_after
from gateway.upstream.responses import UpstreamResponse, read, value_at
from tests.kinds.small_kind import small_operation

LIST = small_operation({"records": "things", "paging": "cursor"})
RECORD = small_operation({"record": "data.thing"})
WHOLE = small_operation({"record": "$"})
END = {"next_cursor": None, "has_more": None}


def ok(body: bytes) -> UpstreamResponse:
    return UpstreamResponse(200, {}, body)


@pytest.mark.parametrize(
    ("operation", "body", "result", "meta"),
    [
        (LIST, b'{"things": [{"id": 1}], "paging": {"next": "c"}, "more": true}', b'[{"id": 1}]', ("c", True)),
        (LIST, b'{"things": [], "paging": {"next": ""}}', b"[]", (None, None)),
        (LIST, b'{"things": null}', b"[]", (None, None)),
        (LIST, b'{"things": [], "paging": null}', b"[]", (None, None)),
        (RECORD, b'{"data": {"thing": {"id": 12345678901234567890.5}}}', b'{"id": 12345678901234567890.5}', None),
        (RECORD, b'{"data": null}', b"null", None),
        (RECORD, b'{"data": []}', b"null", None),
        (RECORD, b"", b"null", None),
        (RECORD, b" \r\n", b"null", None),
        (WHOLE, b'{"a":  1}', b'{"a":  1}', None),
        (WHOLE, b"5", b"5", None),
    ],
)
def test_records_pass_byte_for_byte_and_meta_by_its_documented_names(operation, body, result, meta):
    answer = read(operation, ok(body))

    assert bytes(answer.result) == result
    assert answer.meta == (meta and dict(zip(END, meta, strict=True)))


def test_records_of_a_list_come_one_by_one():
    answer = read(LIST, ok(b'{"things": [{"id": 1}, {"id":2}]}'))

    assert [bytes(record) for record in answer.records] == [b'{"id": 1}', b'{"id":2}']


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        (WHOLE, b"<html>maintenance</html>"),
        (WHOLE, b'{"a": '),
        (WHOLE, b'"\xff"'),
        (WHOLE, b"[" * 100_000),
        (LIST, b"[]"),
        (LIST, b'{"things": {"id": 1}}'),
        (LIST, b'{"things": "none"}'),
        (LIST, b"{}"),
    ],
)
def test_an_answer_that_breaks_its_promise_is_no_result(operation, body):
    with pytest.raises(UpstreamInvalidResponse, match=r"things\.act"):
        read(operation, ok(body))


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (301, UpstreamInvalidResponse, False),
        (302, UpstreamInvalidResponse, False),
        (304, UpstreamInvalidResponse, False),
        (400, UpstreamRejected, False),
        (401, ReauthorizationRequired, False),
        (402, UpstreamRejected, False),
        (403, UpstreamRejected, False),
        (404, UpstreamNotFound, False),
        (409, UpstreamRejected, False),
        (410, UpstreamNotFound, False),
        (414, UpstreamRejected, False),
        (422, UpstreamRejected, False),
        (429, UpstreamRateLimited, True),
        (500, UpstreamError, True),
        (502, UpstreamError, True),
        (503, UpstreamError, True),
        (504, UpstreamError, True),
        (529, UpstreamRateLimited, True),
        (599, UpstreamError, True),
    ],
)
def test_a_status_means_one_class_of_error(status, error, retryable):
    found = failure(Failure(), UpstreamResponse(status, {}, b"<html>no</html>"))

    assert type(found) is error
    assert found.upstream.status == status
    assert found.retryable is retryable


SPEECH = Failure(
    code=(("error", "type"), ("error",), ("errors", "0", "code")),
    message=(("error", "text"), ("errors", "0", "detail"), ("errors", "0")),
    request_id=(("trace",),),
    codes={"upstream_rate_limited": ("LIMIT",), "reauthorization_required": ("expired",)},
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"type": "t", "text": "m"}, "trace": "r"}', ("t", "m", "r")),
        (b'{"error": "t"}', ("t", None, "header")),
        (b'{"errors": [{"code": 17, "detail": "d"}]}', ("17", "d", "header")),
        (b'{"errors": ["plain"]}', (None, "plain", "header")),
        (b'{"errors": []}', (None, None, "header")),
        (b'{"error": true}', (None, None, "header")),
        (b'{"error": ""}', (None, None, "header")),
        (b"[1]", (None, None, "header")),
        (b"not json", (None, "not json", "header")),
        (b"Gone for good.\nAsk support.", (None, "Gone for good.", "header")),
        (b"<html>no</html>", (None, None, "header")),
        (b"x" * 3000, (None, None, "header")),
        (b'{"errors": [{"message": "usual"}, {"message": "other"}]}', (None, "usual", "header")),
        (b'{"detail": [{"msg": "FastAPI says", "loc": ["body"]}]}', (None, "FastAPI says", "header")),
        (b"[" * 100_000, (None, None, "header")),
        (b"", (None, None, "header")),
    ],
)
def test_what_the_application_said_is_kept(body, said):
    error = failure(SPEECH, UpstreamResponse(400, {"x-request-id": "header"}, body))

    assert (error.upstream.code, error.upstream.message, error.upstream.request_id) == said


@pytest.mark.parametrize("header", ["request-id", "x-zendesk-request-id", "x-hubspot-correlation-id"])
def test_an_error_has_the_request_id_of_the_request_log(header):
    assert failure(SPEECH, UpstreamResponse(400, {header: "r-1"}, b"{}")).upstream.request_id == "r-1"


def test_a_long_message_is_cut():
    error = failure(SPEECH, UpstreamResponse(400, {}, b'{"errors": ["' + b"x" * 10_000 + b'"]}'))

    assert len(error.upstream.message) == 500


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [(403, "LIMIT", UpstreamRateLimited), (400, "expired", ReauthorizationRequired), (403, "other", UpstreamRejected)],
)
def test_a_code_of_the_application_can_mean_more_than_its_status(status, code, error):
    found = failure(SPEECH, UpstreamResponse(status, {}, b'{"error": "%s"}' % code.encode()))

    assert type(found) is error


OK_MEMBER = Failure(ok="ok", code=(("error",),), codes={"reauthorization_required": ("invalid_auth",)})


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"ok": true}', None),
        (b'{"ok": false, "error": "invalid_auth"}', ReauthorizationRequired),
        (b'{"ok": false, "error": "no_such_thing"}', UpstreamRejected),
        (b'{"ok": "true"}', UpstreamRejected),
        (b"{}", UpstreamInvalidResponse),
        (b"[]", UpstreamInvalidResponse),
        (b"<html>", UpstreamInvalidResponse),
    ],
)
def test_a_success_that_says_no_is_a_failure(body, error):
    found = failure(OK_MEMBER, ok(body))

    assert found is None if error is None else type(found) is error


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("0", 1),
        ("1.2", 2),
        ("-3", 1),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("1e300", None),
    ],
)
def test_the_wait_is_in_whole_seconds(text, seconds):
    assert retry_after({"retry-after": text}) == seconds


@pytest.mark.parametrize("unit", [1, 1000])
def test_a_number_that_is_a_unix_time_is_a_moment(unit):
    assert retry_after({"retry-after": str(round((CLOCK.unix_time() + 7) * unit))}) in (6, 7, 8)


@pytest.mark.parametrize(
    ("moment", "now", "seconds"),
    [
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:18 GMT", 42),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:29:00 GMT", 1),
        ("Wednesday, 21-Oct-26 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", 60),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "yesterday", None),
        ("Wed, 99 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", None),
        ("Wed, 21 Oct 2026 07:28:00 -0000", "Wed, 21 Oct 2026 07:27:00 GMT", None),
    ],
)
def test_the_wait_may_be_told_as_a_moment_by_the_applications_own_clock(moment, now, seconds):
    assert retry_after({"retry-after": moment, "date": now}) == seconds


def test_a_moment_without_a_clock_beside_it_is_compared_with_ours():
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 1


@pytest.mark.parametrize(
    ("status", "body", "nothing_done"),
    [(500, b"", False), (501, b"", True), (500, b'{"code": "LOCKED"}', True), (500, b'{"code": "X"}', False)],
)
def test_a_spec_may_state_that_after_a_5xx_nothing_was_done(status, body, nothing_done):
    spec = Failure(code=[("code",)], nothing_done=["501", "LOCKED"])

    assert failure(spec, UpstreamResponse(status, {}, body)).nothing_done is nothing_done


REQUESTS = Allowance(limit="x-limit", remaining="x-left", reset="x-reset")
POINTS = Allowance(limit="y-limit", remaining="y-left", reset="y-reset", seconds=3600)
LITTLE, PLENTY = {"x-limit": "100", "x-left": "20", "x-reset": "50"}, {"y-limit": "9", "y-left": "8", "y-reset": "60"}
SPENT = {"x-limit": "100", "x-left": "0", "x-reset": "50"}
NAMED = Failure(limit_name=[("name",)], retry_after={"second*": 5}, reset_headers=["x-reset"])


@pytest.mark.parametrize(
    ("status", "headers", "name", "seconds"),
    [
        (403, SPENT, "", 50),
        (403, {**LITTLE, "y-left": "0", "y-reset": "900"}, "", 900),
        (403, {**SPENT, "y-left": "0", "y-reset": "900"}, "", 900),
        (403, {**SPENT, "retry-after": "7"}, "", 7),
        (403, {**LITTLE, **PLENTY}, "secondary", 5),
        (403, SPENT, "secondary", 50),
        (429, {**LITTLE, **PLENTY}, "", 50),
        (429, {**LITTLE, "y-limit": "9", "y-left": "1", "y-reset": "60"}, "", 60),
        (429, {"x-reset": "40"}, "", 40),
        (429, {"x-left": "0"}, "", DEFAULT_RETRY_AFTER),
    ],
)
def test_a_spent_allowance_is_waited_for_until_its_own_reset(status, headers, name, seconds):
    response = UpstreamResponse(status, headers, b'{"name": "%s"}' % name.encode())

    error = failure(NAMED, response, limits=[REQUESTS, POINTS])

    assert (type(error), error.retry_after) == (UpstreamRateLimited, seconds)


@pytest.mark.parametrize("headers", [{}, {**LITTLE, **PLENTY}, {"retry-after": "7"}])
def test_a_403_of_which_no_allowance_is_spent_is_a_refusal(headers):
    assert type(failure(NAMED, UpstreamResponse(403, headers, b""), limits=[REQUESTS, POINTS])) is UpstreamRejected


@pytest.mark.parametrize(("headers", "seconds"), [({}, DEFAULT_RETRY_AFTER), ({"retry-after": "7"}, 7)])
def test_a_limit_always_says_when_to_retry(headers, seconds):
    assert failure(Failure(), UpstreamResponse(429, headers, b"")).retry_after == seconds


def test_a_place_leads_through_objects_and_lists():
    document = {"a": [{"b": 1}, {"b": 2}]}

    assert value_at(document, ("a", "1", "b")) == 2
    assert value_at(document, ("a", "2", "b")) is None
    assert value_at(document, ("a", "b")) is None
    assert value_at(document, ("a", "0", "b", "c")) is None
    assert value_at(document, ()) is document
