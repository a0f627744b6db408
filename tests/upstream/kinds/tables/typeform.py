"""The cases of Typeform: numbered pages, responses before a token, writes of forms and webhooks."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

FORM = {"form_id": "u6nXL7"}
PAGE = {"page": "1", "page_size": "10"}
RESPONSES = "/forms/u6nXL7/responses"
FILTERS = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z", "query": "good"}
HOOK = {"url": "https://example.com/hook", "enabled": True, "verify_ssl": True, "secret": "s"}
CALLS = [
    Call("forms.list", {}, "/forms", PAGE),
    Call("forms.list", {"page": 2, "page_size": 200, "search": "quiz", "workspace_id": "w"}, "/forms",
         {"page": "2", "page_size": "200", "search": "quiz", "workspace_id": "w"}),
    Call("forms.get", FORM, "/forms/u6nXL7"),
    Call("forms.create", {"title": "T", "fields": [{"type": "rating", "title": "Q"}]}, "/forms", method="POST",
         body={"title": "T", "fields": [{"type": "rating", "title": "Q"}]}),
    Call("forms.delete", FORM, "/forms/u6nXL7", method="DELETE"),
    Call("responses.list", FORM, RESPONSES, {"page_size": "25"}),
    Call("responses.list", {**FORM, "before": "t", "completed": True, **FILTERS}, RESPONSES,
         {"page_size": "25", "before": "t", "completed": "true", **FILTERS}),
    Call("responses.list", {**FORM, "sort": "submitted_at,asc"}, RESPONSES,
         {"page_size": "25", "sort": "submitted_at,asc"}),
    Call("responses.delete", {**FORM, "included_response_ids": "a,b"}, RESPONSES, {"included_response_ids": "a,b"},
         method="DELETE"),
    Call("webhooks.list", FORM, "/forms/u6nXL7/webhooks"),
    Call("webhooks.update", {**FORM, "tag": "crm", **HOOK}, "/forms/u6nXL7/webhooks/crm", method="PUT", body=HOOK),
    Call("webhooks.delete", {**FORM, "tag": "crm"}, "/forms/u6nXL7/webhooks/crm", method="DELETE"),
    Call("workspaces.list", {}, "/workspaces", PAGE),
    Call("workspaces.create", {"name": "Research"}, "/workspaces", method="POST", body={"name": "Research"}),
    Call("themes.list", {"page": 3}, "/themes", {"page": "3", "page_size": "10"}),
    Call("images.list", {}, "/images"),
]  # fmt: skip
REFUSED = [
    Refused("forms.list", {"page_size": 201}, "page_size", "at most 200"),
    Refused("responses.list", {**FORM, "page_size": 1001}, "page_size", "at most 1000"),
    Refused("webhooks.update", {**FORM, "tag": "crm", "enabled": True}, "url", "url is missing"),
    Refused("forms.create", {"title": "T", "type": "exam"}, "type", "quiz"),
]
COUNTS = {"total_items": 2, "page_count": 2}
ANSWERS = [
    Answer("forms.list", {"items": [{"id": "u6nXL7"}], **COUNTS}, [{"id": "u6nXL7"}], COUNTS),
    Answer("forms.get", {"id": "u6nXL7", "title": "Quiz"}, {"id": "u6nXL7", "title": "Quiz"}, None),
    Answer("images.list", [{"id": "i"}], [{"id": "i"}], None),
]
FAILURES = [
    Failure("forms.get", status, {"code": code, "description": "It failed"}, error, code, "It failed", **more)
    for status, code, error, more in [
        (400, "VALIDATION_ERROR", UpstreamRejected, {}),
        (401, "AUTHENTICATION_FAILED", ReauthorizationRequired, {}),
        (404, "FORM_NOT_FOUND", UpstreamNotFound, {}),
        (429, "TOO_MANY_REQUESTS", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "INTERNAL_SERVER_ERROR", UpstreamError, {}),
    ]
]
PAGES = [
    Pages(
        "forms.list",
        {"page_size": 1},
        [{"items": [{"id": "2"}], **COUNTS}, {"items": [{"id": "1"}], **COUNTS}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/forms?page=1&page_size=1", "/forms?page=2&page_size=1"],
    ),
    Pages(
        "responses.list",
        {**FORM, "page_size": 1},
        [{"items": [{"response_id": "t2"}], **COUNTS}, {"items": []}],
        [[{"response_id": "t2"}], []],
        [f"{RESPONSES}?page_size=1", f"{RESPONSES}?page_size=1&before=t2"],
    ),
]
CASES = Cases(
    "typeform",
    "https://api.typeform.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"access_token": "t"}, "Bearer t")],
    check=("/forms?page=1&page_size=1", {"items": [], "total_items": 0, "page_count": 0}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "access_token")],
)
