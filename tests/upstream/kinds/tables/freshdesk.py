"""The cases of Freshdesk."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

SINCE = "2026-01-31T08:00:00Z"
#: entity → path
LISTS = {
    "tickets": "/tickets",
    "contacts": "/contacts",
    "companies": "/companies",
    "agents": "/agents",
    "groups": "/groups",
    "roles": "/roles",
    "satisfaction_ratings": "/surveys/satisfaction_ratings",
    "surveys": "/surveys",
    "time_entries": "/time_entries",
    "ticket_fields": "/ticket_fields",
}
GETS = ["tickets", "contacts", "companies", "agents", "groups", "roles"]
PAGE: dict[str, Any] = {"per_page": 50, "page": 2}
ORDER = {"order_by": "status", "order_type": "asc"}

TICKET = {
    "subject": "Order 4711 is late",
    "description": "Where is it?",
    "requester_id": 5,
    "status": 3,
    "priority": 4,
    "source": 2,
    "type": "Question",
    "responder_id": 6,
    "group_id": 7,
    "tags": ["late", "parcel"],
    "cc_emails": ["bob@example.com"],
    "due_by": SINCE,
    "custom_fields": {"cf_order": "4711"},
}
CONTACT = {
    "name": "Ada Lovelace",
    "email": "ada@example.com",
    "phone": "+4930123",
    "other_emails": ["a@example.com"],
    "company_id": 8,
    "view_all_tickets": False,
    "language": "en",
    "tags": [],
    "custom_fields": {"vip": True},
}
COMPANY = {"name": "Alder", "domains": ["alder.example.com"], "health_score": "Happy", "renewal_date": "2026-12-31"}

CALLS = [
    *(
        Call(f"{entity}.list", PAGE, path, {"per_page": "50", "page": "2"})
        for entity, path in LISTS.items()
        if entity != "tickets"
    ),
    *(Call(f"{entity}.get", {"id": 42}, f"{LISTS[entity]}/42") for entity in GETS),
    Call("current_agent.get", {}, "/agents/me"),
    Call(
        "tickets.list",
        {**PAGE, **ORDER, "updated_since": SINCE},
        "/tickets",
        {"per_page": "50", "page": "2", "updated_since": SINCE, **ORDER},
    ),
    Call(
        "tickets.list",
        {"limit": 5, "filter": "deleted", "email": "ada+shop@example.com", "include": ["stats", "requester"]},
        "/tickets",
        {"per_page": "5", "filter": "deleted", "email": "ada+shop@example.com", "include": "stats,requester"},
    ),
    Call(
        "tickets.list",
        {"requester_id": 5, "company_id": 8, "unique_external_id": "u1"},
        "/tickets",
        {"per_page": "100", "requester_id": "5", "company_id": "8", "unique_external_id": "u1"},
    ),
    Call("tickets.get", {"id": 42, "include": "conversations"}, "/tickets/42", {"include": "conversations"}),
    Call("tickets.create", TICKET, "/tickets", method="POST", body=TICKET),
    # An account may ask for status and priority, so their documented defaults are sent.
    Call(
        "tickets.create",
        {"subject": "Late", "description": "Where?", "email": "ada@example.com"},
        "/tickets",
        method="POST",
        body={"subject": "Late", "description": "Where?", "email": "ada@example.com", "status": 2, "priority": 1},
    ),
    # null takes a ticket away from its agent, an empty list removes the tags
    Call(
        "tickets.update",
        {"id": 42, "status": 4, "responder_id": None, "tags": []},
        "/tickets/42",
        method="PUT",
        body={"status": 4, "responder_id": None, "tags": []},
    ),
    Call("tickets.delete", {"id": 42}, "/tickets/42", method="DELETE"),
    Call(
        "tickets.api_search",
        {"query": "\"priority:4 AND tag:'a+b'\"", "page": 2},
        "/search/tickets",
        {"query": "\"priority:4 AND tag:'a+b'\"", "page": "2"},
    ),
    Call("conversations.list", {"ticket_id": 42}, "/tickets/42/conversations", {"per_page": "100"}),
    Call(
        "replies.create",
        {"ticket_id": 42, "body": "Soon.", "cc_emails": ["b@example.com"], "from_email": "help@example.com"},
        "/tickets/42/reply",
        method="POST",
        body={"body": "Soon.", "cc_emails": ["b@example.com"], "from_email": "help@example.com"},
    ),
    Call(
        "notes.create",
        {"ticket_id": 42, "body": "Called.", "private": False, "notify_emails": ["c@example.com"]},
        "/tickets/42/notes",
        method="POST",
        body={"body": "Called.", "private": False, "notify_emails": ["c@example.com"]},
    ),
    Call(
        "contacts.list",
        {**PAGE, "updated_since": SINCE},
        "/contacts",
        {"per_page": "50", "page": "2", "_updated_since": SINCE},
        sdk_differs="the filter is called updated_since there; the application knows _updated_since alone",
    ),
    Call(
        "contacts.list",
        {"email": "ada@example.com", "state": "blocked", "company_id": 8},
        "/contacts",
        {"per_page": "100", "email": "ada@example.com", "state": "blocked", "company_id": "8"},
    ),
    Call("contacts.create", CONTACT, "/contacts", method="POST", body=CONTACT),
    Call(
        "contacts.update",
        {"id": 42, "phone": None, "job_title": "Buyer"},
        "/contacts/42",
        method="PUT",
        body={"phone": None, "job_title": "Buyer"},
    ),
    Call("contacts.delete", {"id": 42}, "/contacts/42", method="DELETE"),
    Call("companies.create", COMPANY, "/companies", method="POST", body=COMPANY),
    Call("companies.update", {"id": 42, "domains": []}, "/companies/42", method="PUT", body={"domains": []}),
    Call(
        "agents.list",
        {"email": "eve@example.com", "state": "fulltime"},
        "/agents",
        {"per_page": "100", "email": "eve@example.com", "state": "fulltime"},
    ),
    Call(
        "satisfaction_ratings.list",
        {**PAGE, "created_since": SINCE},
        "/surveys/satisfaction_ratings",
        {"per_page": "50", "page": "2", "created_since": SINCE},
    ),
    Call("surveys.list", {"state": "active"}, "/surveys", {"per_page": "100", "state": "active"}),
    Call(
        "time_entries.list",
        {"billable": True, "agent_id": 6, "executed_after": SINCE},
        "/time_entries",
        {"per_page": "100", "billable": "true", "agent_id": "6", "executed_after": SINCE},
    ),
    Call(
        "ticket_fields.list",
        {"type": "custom_dropdown"},
        "/ticket_fields",
        {"per_page": "100", "type": "custom_dropdown"},
    ),
    Call("companies.delete", {"id": 42}, "/companies/42", method="DELETE"),
    *(
        Call(
            f"{entity}.api_search",
            {"query": "\"tag:'a&b'\"", "page": 2},
            f"/search/{entity}",
            {"query": "\"tag:'a&b'\"", "page": "2"},
        )
        for entity in ("contacts", "companies")
    ),
]
REFUSED = [
    Refused("tickets.list", {"per_page": 101}, "per_page", "at most 100"),
    Refused("tickets.list", {"filter": "mine"}, "filter", "allowed: new_and_my_open"),
    Refused("tickets.get", {"id": ".."}, "id", "expected integer"),
    Refused("tickets.create", {"subject": "a", "description": "b"}, "", "email"),
    Refused("tickets.update", {"id": 1}, "", "at least 2 members"),
    Refused("tickets.update", {"id": 1, "priority": 5}, "priority", "allowed: 1, 2, 3, 4"),
    Refused("tickets.api_search", {"query": "status:2"}, "query", "must match"),
    Refused("tickets.api_search", {"query": '"status:2"', "page": 11}, "page", "at most 10"),
    Refused("contacts.create", {"name": "Ada"}, "", "email"),
    Refused("notes.create", {"ticket_id": 1, "text": "a"}, "body", "body is missing", ["text"]),
]
ANSWERS = [
    *(Answer(f"{entity}.list", [{"id": 1}], [{"id": 1}], {"next": None}) for entity in LISTS),
    *(Answer(f"{entity}.get", {"id": 1}, {"id": 1}, None) for entity in GETS),
    Answer("tickets.api_search", {"total": 1, "results": [{"id": 1}]}, [{"id": 1}], {"total": 1}),
]
FAILURES = [
    Failure(
        "tickets.create",
        400,
        {
            "description": "Validation failed",
            "errors": [
                {"field": "priority", "message": "It should be one of 1,2,3,4", "code": "invalid_value"},
                {"field": "status", "message": "It is missing", "code": "missing_field"},
            ],
        },
        UpstreamRejected,
        "invalid_value",
        "Validation failed; It should be one of 1,2,3,4; It is missing",
        field="priority, status",
    ),
    *(
        Failure("tickets.list", status, {"code": code, "message": "No."}, error, code, "No.")
        for status, code, error in [
            (401, "invalid_credentials", ReauthorizationRequired),
            (403, "access_denied", UpstreamRejected),
            (405, "method_not_allowed", UpstreamRejected),
            (409, "inconsistent_state", UpstreamRejected),
            (500, "internal_error", UpstreamError),
        ]
    ),
    # an unknown id is answered without a body
    Failure("tickets.get", 404, b"", UpstreamNotFound),
    Failure(
        "tickets.list",
        429,
        {"message": "You have exceeded the limit of requests"},
        UpstreamRateLimited,
        None,
        "You have exceeded the limit of requests",
        headers={"retry-after": "26"},
        retry_after=26,
    ),
]
CASES = Cases(
    "freshdesk",
    "https://acme.freshdesk.com/api/v2",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_key": "k"}, "Basic azpY")],
    check=("/api/v2/agents/me", {"id": 1}),
    pages=[
        Pages(
            "tickets.api_search",
            {"query": '"status:2"'},
            [{"total": 2, "results": [{"id": 1}]}, {"total": 2, "results": [{"id": 2}]}, {"total": 2, "results": []}],
            [[{"id": 1}], [{"id": 2}], []],
            [
                "/api/v2/search/tickets?query=%22status%3A2%22",
                "/api/v2/search/tickets?query=%22status%3A2%22&page=2",
                "/api/v2/search/tickets?query=%22status%3A2%22&page=3",
            ],
        )
    ],
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_key"), BadCredentials({"api_key": "k", "password": "p"}, "password")],
    environment={"subdomain": "acme"},
)
