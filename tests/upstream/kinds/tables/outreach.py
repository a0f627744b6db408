"""The cases of Outreach."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

MEDIA = "application/vnd.api+json"
USUAL = {"sort": "updatedAt", "count": "false"}
#: entity → the application's name of its collection
PATHS = {
    **{
        name: name for name in ("prospects", "accounts", "sequences", "opportunities", "calls", "mailings", "mailboxes")
    },
    **{name: name for name in ("tasks", "users", "stages", "personas", "templates", "snippets")},
    "sequence_states": "sequenceStates",
    "sequence_steps": "sequenceSteps",
    "call_dispositions": "callDispositions",
    "call_purposes": "callPurposes",
}
ACTIONS = [
    *(("sequences", verb) for verb in ("activate", "deactivate")),
    *(("sequence_states", verb) for verb in ("pause", "resume", "finish")),
]
OWNER = {"owner": {"data": {"type": "user", "id": 1}}}
WRITTEN = [
    ("prospects", "prospect", {"firstName": "Ada", "emails": ["ada@example.com"], "custom7": "x"}),
    ("accounts", "account", {"name": "Acme", "domain": "acme.com", "tags": ["Tier 1"]}),
    ("opportunities", "opportunity", {"name": "Renewal", "amount": 12_000}),
    ("tasks", "task", {"action": "call", "note": "Ask about the budget"}),
]
LOGGED = {"direction": "outbound", "outcome": "Answered"}
TO_LEAD = {"prospect": {"data": {"type": "prospect", "id": 17}}}
ENROLMENT = {**TO_LEAD, "sequence": {"data": {"type": "sequence", "id": 42}}}


def created(entity: str, type_: str, **members: Any) -> Call:
    body = {"data": {"type": type_, **members}}
    return Call(f"{entity}.create", members, f"/{PATHS[entity]}", method="POST", body=body, content_type=MEDIA)


def updated(entity: str, type_: str, **members: Any) -> Call:
    body, params = {"data": {"type": type_, "id": 5, **members}}, {"id": 5, **members}
    return Call(f"{entity}.update", params, f"/{PATHS[entity]}/5", method="PATCH", body=body, content_type=MEDIA)


CALLS = [
    *(Call(f"{entity}.list", {}, f"/{path}", {"page[size]": "50", **USUAL}) for entity, path in PATHS.items()),
    *(Call(f"{entity}.get", {"id": 5}, f"/{path}/5") for entity, path in PATHS.items()),
    Call(
        "prospects.list",
        {"limit": 1000, "page[after]": "WzE=", "sort": "-createdAt", "count": "true"},
        "/prospects",
        {"page[size]": "1000", "page[after]": "WzE=", "sort": "-createdAt", "count": "true"},
    ),
    Call(
        "mailings.list",
        {"filter": {"prospect": {"id": 17}, "updatedAt": "2026-01-01..inf"}},
        "/mailings",
        {"page[size]": "50", "filter[prospect][id]": "17", "filter[updatedAt]": "2026-01-01..inf", **USUAL},
    ),
    *(created(entity, type_, attributes=members, relationships=OWNER) for entity, type_, members in WRITTEN),
    *(updated(entity, type_, attributes=members) for entity, type_, members in WRITTEN),
    updated("prospects", "prospect", relationships=OWNER),
    created("calls", "call", attributes=LOGGED, relationships=TO_LEAD),
    created("sequence_states", "sequenceState", relationships=ENROLMENT),
    *(
        Call(f"{entity}.delete", {"id": 5}, f"/{PATHS[entity]}/5", method="DELETE")
        for entity in ("prospects", "accounts", "opportunities", "calls", "tasks", "sequence_states")
    ),
    *(
        Call(f"{entity}.{verb}", {"id": 5}, f"/{PATHS[entity]}/5/actions/{verb}", method="POST")
        for entity, verb in ACTIONS
    ),
    Call(
        "tasks.complete",
        {"id": 5, "completion_note": "Spoke to Ada", "completion_action": "finish_replied"},
        "/tasks/5/actions/markComplete",
        {"actionParams[completionNote]": "Spoke to Ada", "actionParams[completionAction]": "finish_replied"},
        method="POST",
    ),
]
REFUSED = [
    Refused("prospects.list", {"page[size]": 1001}, "page[size]", "at most 1000"),
    Refused("mailings.list", {"page[size]": 101}, "page[size]", "at most 100"),
    Refused("accounts.list", {"count": "yes"}, "count", "true"),
    Refused("prospects.create", {}, "attributes", "attributes is missing"),
    Refused("accounts.update", {"id": 5}, "", "at least 2 members"),
    Refused(
        "sequence_states.create",
        {"relationships": {"prospect": {"data": {"type": "prospect"}}}},
        "relationships.prospect.data.id",
        "id is missing",
    ),
    Refused("tasks.complete", {"id": 0}, "id", "at least 1"),
]
RECORD = {"type": "prospect", "id": 1, "attributes": {"firstName": "Sally"}}
NEXT = "https://api.outreach.io/api/v2/prospects?page%5Bsize%5D=1&page%5Bafter%5D=WzE%3D"
ANSWERS = [
    Answer("prospects.list", {"data": [RECORD], "links": {"next": NEXT}}, [RECORD], {"next_link": NEXT}),
    Answer("stages.list", {"data": []}, [], {"next_link": None}),
    Answer("prospects.get", {"data": RECORD}, RECORD, None),
    Answer("tasks.complete", {"data": {"type": "task", "id": 5}}, {"type": "task", "id": 5}, None),
    Answer("accounts.delete", b"", None, None),
]


def failed(status: int, id_: str, error: type, **more: Any) -> Failure:
    problem = {"id": id_, "title": "Error", "detail": "It failed.", "source": {"pointer": "/data/attributes/name"}}
    field = "/data/attributes/name"
    return Failure("prospects.create", status, {"errors": [problem]}, error, id_, "It failed.", field=field, **more)


# https://developers.outreach.io/api/making-requests#error-responses
FAILURES = [
    failed(400, "badRequest", UpstreamRejected),
    failed(401, "unauthorized", ReauthorizationRequired),
    failed(403, "unauthorizedOauthScope", UpstreamRejected),
    failed(404, "resourceNotFound", UpstreamNotFound),
    failed(415, "unsupportedMediaType", UpstreamRejected),
    failed(422, "validationError", UpstreamRejected),
    failed(429, "rateLimitExceeded", UpstreamRateLimited, headers={"retry-after": "7"}, retry_after=7),
    failed(503, "scheduledServerMaintenance", UpstreamError),
]
PAGES = [
    Pages(
        "prospects.list",
        {"page[size]": 1},
        [{"data": [RECORD], "links": {"next": NEXT}}, {"data": [], "links": {"prev": NEXT}}],
        [[RECORD], []],
        [
            "/api/v2/prospects?sort=updatedAt&page%5Bsize%5D=1&count=false",
            "/api/v2/prospects?sort=updatedAt&page%5Bsize%5D=1&page%5Bafter%5D=WzE%3D&count=false",
        ],
    )
]
TOKENS = {"refresh_token": "r", "access_token": "t", "client_id": "app", "client_secret": "s"}
CASES = Cases(
    "outreach",
    "https://api.outreach.io/api/v2",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[(TOKENS, "Bearer t")],
    check=("/api/v2/accounts?sort=updatedAt&page%5Bsize%5D=1&count=false", {"data": [RECORD]}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"access_token": "t"}, "refresh_token")],
    headers={"Content-Type": MEDIA},
)
