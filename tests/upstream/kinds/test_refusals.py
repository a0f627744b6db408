"""What applications say when they refuse: the code, every word, the member named, and what may be done about it."""

import msgspec
import pytest

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.upstream import failures
from gateway.upstream.responses import UpstreamResponse
from tests.upstream.kinds.conftest import kind_named


def refused(kind, status, body, headers=None):
    answer = UpstreamResponse(status, headers or {}, body if isinstance(body, bytes) else msgspec.json.encode(body))
    error = failures.failure(kind_named(kind).spec.failure, answer)
    assert error is not None
    return error


ZENDESK_INVALID = {
    "error": "RecordInvalid",
    "description": "Record validation errors",
    "details": {
        "requester": [
            {"description": "Requester: Name: is too short (minimum is 1 characters)", "error": "ValueTooShort"}
        ],
        "base": [{"description": "Status: closed prevents ticket update"}],
    },
}
HUBSPOT_SCOPES = {
    "status": "error",
    "message": "This app hasn't been granted all required scopes to make this call.",
    "correlationId": "c-1",
    "errors": [
        {
            "message": "One or more of the following scopes are required.",
            "context": {"requiredGranularScopes": ["crm.objects.contacts.read", "crm.objects.contacts.write"]},
        }
    ],
    "category": "MISSING_SCOPES",
}
HUBSPOT_INVALID = {
    "status": "error",
    "message": "Invalid input JSON on line 1, column 11",
    "correlationId": "c-2",
    "category": "VALIDATION_ERROR",
    "errors": [
        {
            "message": "Property foo does not exist",
            "code": "PROPERTY_DOESNT_EXIST",
            "context": {"propertyName": ["foo"]},
        }
    ],
}
ASANA = {
    "errors": [
        {"message": "project: Not a Long: x", "help": "For more information, see the manual."},
        {"message": "assignee: Not a recognized ID: y"},
    ]
}
INCIDENT = {
    "type": "validation_error",
    "status": 422,
    "request_id": "r-1",
    "errors": [
        {"code": "is_required", "message": "A severity must be provided", "source": {"field": "severity_id"}},
        {"code": "invalid_value", "message": "Not a known mode", "source": {"field": "mode"}},
    ],
}
SALESFORCE = [
    {
        "message": "Required fields are missing: [LastName]",
        "errorCode": "REQUIRED_FIELD_MISSING",
        "fields": ["LastName"],
    },
    {"message": "Email: invalid email address: x", "errorCode": "INVALID_EMAIL_ADDRESS", "fields": ["Email"]},
]
TOKEN = {
    "error": "invalid_token",
    "error_description": "The access token provided is expired, revoked, malformed or invalid for other reasons.",
}


@pytest.mark.parametrize(
    ("kind", "status", "body", "error", "code", "words", "field"),
    [
        (
            *("support-desk", 422, ZENDESK_INVALID, UpstreamRejected, "RecordInvalid"),
            ["Record validation errors", "Requester: Name: is too short", "Status: closed prevents ticket update"],
            None,
        ),
        ("support-desk", 401, TOKEN, ReauthorizationRequired, "invalid_token", [TOKEN["error_description"]], None),
        (
            *("support-desk", 403, {"error": "invalid_scope", "error_description": "needs write"}, UpstreamRejected),
            *("invalid_scope", ["needs write"], None),
        ),
        ("support-desk", 422, {"errors": ["one", "two"]}, UpstreamRejected, None, ["one", "two"], None),
        (
            *("crm-records", 403, HUBSPOT_SCOPES, UpstreamRejected, "MISSING_SCOPES"),
            ["hasn't been granted", "following scopes are required", "contacts.read", "contacts.write"],
            None,
        ),
        (
            *("crm-records", 400, HUBSPOT_INVALID, UpstreamRejected, "VALIDATION_ERROR"),
            ["Invalid input JSON", "Property foo does not exist"],
            "foo",
        ),
        (
            *("crm-query", 400, SALESFORCE, UpstreamRejected, "REQUIRED_FIELD_MISSING"),
            ["Required fields are missing", "invalid email address"],
            "LastName, Email",
        ),
        (
            *("crm-query", 410, [{"errorCode": "GONE", "message": "version is retired"}], UpstreamRejected, "GONE"),
            *(["version is retired"], None),
        ),
        ("work-management", 400, ASANA, UpstreamRejected, None, ["Not a Long: x", "Not a recognized ID: y"], None),
        (
            *("incident-management", 422, INCIDENT, UpstreamRejected, "validation_error"),
            ["A severity must be provided", "Not a known mode"],
            "severity_id, mode",
        ),
        (
            *("team-chat", 200, {"ok": False, "error": "org_login_required"}, ReauthorizationRequired),
            *("org_login_required", [], None),
        ),
        (
            "team-chat",
            200,
            {"ok": False, "error": "invalid_arguments", "response_metadata": {"messages": ["[ERROR] a", "[ERROR] b"]}},
            *(UpstreamRejected, "invalid_arguments", ["[ERROR] a", "[ERROR] b"], None),
        ),
    ],
)
def test_every_word_that_helps_to_mend_the_call_is_passed_on(kind, status, body, error, code, words, field):
    told = refused(kind, status, body)

    assert type(told) is error
    assert (told.upstream.code, told.upstream.field) == (code, field)
    assert [word for word in words if word not in (told.upstream.message or "")] == []
    assert [word for word in (*words, *(field or "").split(", ")) if word not in told.detail] == []


@pytest.mark.parametrize(
    ("kind", "status", "body", "seconds"),
    [
        ("crm-records", 423, {"status": "error", "message": "locked", "correlationId": "c"}, 2),
        ("workspace-notes", 409, {"code": "conflict_error", "message": "Conflict occurred. Please try again."}, 1),
    ],
)
def test_a_refusal_that_passes_may_be_tried_again(kind, status, body, seconds):
    told = refused(kind, status, body)

    assert isinstance(told, UpstreamBusy)
    assert (told.code, told.retryable, told.retry_after) == ("upstream_error", True, seconds)


HUBSPOT_LIMIT = {
    "status": "error",
    "message": "You have reached your limit.",
    "errorType": "RATE_LIMIT",
    "correlationId": "c",
}
SPENT = [{"errorCode": "REQUEST_LIMIT_EXCEEDED", "message": "TotalRequests Limit exceeded."}]


@pytest.mark.parametrize(
    ("kind", "status", "body", "headers", "seconds", "is_day"),
    [
        ("crm-records", 429, {**HUBSPOT_LIMIT, "policyName": "TEN_SECONDLY_ROLLING"}, {}, 10, False),
        ("crm-records", 429, {**HUBSPOT_LIMIT, "policyName": "SECONDLY"}, {}, 1, False),
        ("crm-records", 429, {**HUBSPOT_LIMIT, "policyName": "DAILY"}, {}, 3600, True),
        ("crm-records", 429, {**HUBSPOT_LIMIT, "policyName": "DAILY"}, {"retry-after": "7200"}, 7200, True),
        ("crm-records", 429, HUBSPOT_LIMIT, {}, 10, False),
        ("crm-query", 403, SPENT, {}, 3600, True),
        ("crm-query", 403, [{**SPENT[0], "message": "ConcurrentPerOrgLongTxn Limit exceeded."}], {}, 5, False),
        (
            "support-desk",
            429,
            b"Number of allowed API requests per minute exceeded",
            {"ratelimit-reset": "3"},
            3,
            False,
        ),
        ("support-desk", 429, {}, {"ratelimit-reset": "3", "retry-after": "93"}, 93, False),
        ("support-desk", 429, {}, {}, 60, False),
        ("work-management", 429, {}, {}, 60, False),
        ("incident-management", 429, {"type": "rate_limit_exceeded"}, {}, 60, False),
        ("team-chat", 200, {"ok": False, "error": "ratelimited"}, {}, 60, False),
        ("workspace-notes", 429, {"code": "rate_limited"}, {}, 60, False),
    ],
)
def test_a_limit_is_waited_for_as_long_as_its_own_window(kind, status, body, headers, seconds, is_day):
    told = refused(kind, status, body, headers)

    assert isinstance(told, UpstreamRateLimited)
    assert told.retry_after == seconds
    assert ("allowance of a day" in told.detail) is is_day


def test_a_limit_of_a_record_application_is_reported_by_its_name():
    told = refused("crm-records", 429, {**HUBSPOT_LIMIT, "policyName": "DAILY"})

    assert (told.upstream.code, told.upstream.message) == ("RATE_LIMIT", "You have reached your limit.; DAILY")


def test_what_an_application_says_is_repeated_up_to_a_length():
    details = {str(number): [{"description": f"fault number {number}"}] for number in range(1000)}

    told = refused("support-desk", 422, {**ZENDESK_INVALID, "details": details})

    assert len(told.upstream.message) == 2000
