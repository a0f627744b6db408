"""The cases of Pylon: envelopes of data with cursors, searches with filters, a region."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID = "018f2a6e"
RANGE = {"start_time": "2026-11-01T00:00:00Z", "end_time": "2026-11-27T00:00:00Z"}
STATE = {"field": "state", "operator": "equals", "value": "closed"}
FIELDS = [{"slug": "plan", "value": "gold"}]
BASE, PAGE = "/knowledge-bases/kb1", {"cursor": "c1"}
SINGLE = {"issues": "issues", "accounts": "accounts", "contacts": "contacts", "teams": "teams", "tags": "tags",
          "users": "users", "custom_fields": "custom-fields"}  # fmt: skip
UNSIZED = {"teams": "teams", "tags": "tags", "users": "users", "ticket_forms": "ticket-forms",
           "user_roles": "user-roles", "knowledge_bases": "knowledge-bases"}  # fmt: skip
#: creates and what they send
MADE = {
    "issues": {"title": "Export fails", "body_html": "<p>It stops.</p>", "priority": "high",
               "requester_email": "a@example.com", "requester_name": "Ada", "account_id": "a1", "assignee_id": "u1",
               "team_id": "t1", "tags": ["bug"]},
    "accounts": {"name": "Acme", "domains": ["a.example"], "primary_domain": "a.example", "owner_id": "u1",
                 "logo_url": "https://a.example/l.png", "tags": ["gold"]},
    "contacts": {"name": "Ada", "email": "a@example.com", "account_id": "a1", "avatar_url": "https://a.example/a.png"},
    "teams": {"name": "Europe"},
    "tags": {"value": "bug", "object_type": "issue", "hex_color": "#ff0000"},
    "tasks": {"title": "Call", "body_html": "<p>Now</p>", "status": "not_started", "assignee_id": "u1",
              "project_id": "p1", "milestone_id": "m1", "due_date": "2026-12-01T00:00:00Z"},
    "projects": {"name": "Start", "account_id": "a1", "description_html": "<p>S</p>",
                 "start_date": "2026-12-01T00:00:00Z", "end_date": "2027-01-01T00:00:00Z"},
    "milestones": {"name": "Live", "project_id": "p1", "due_date": "2026-12-01T00:00:00Z"},
}  # fmt: skip
#: updates and what they send
CHANGED = {
    "issues": {"state": "closed", "assignee_id": "u1", "team_id": "t1", "account_id": "a1", "tags": ["bug"]},
    "accounts": {"name": "Acme", "domains": ["a.example"], "primary_domain": "a.example", "owner_id": "",
                 "logo_url": "https://a.example/l.png", "is_disabled": False, "tags": ["gold"]},
    "contacts": {"name": "Ada", "email": "a@example.com", "account_id": "a1"},
    "teams": {"name": "EMEA"},
    "tags": {"value": "defect", "hex_color": "#00ff00"},
    "tasks": {"title": "Call", "body_html": "<p>Now</p>", "status": "completed", "assignee_id": "u1"},
    "projects": {"name": "Start", "description_html": "<p>S</p>", "is_archived": True},
    "milestones": {"name": "Live", "due_date": "2026-12-01T00:00:00Z"},
}  # fmt: skip
REPLY = {"body_html": "<p>Hi</p>", "message_id": "m1", "user_id": "u1", "attachment_urls": ["https://a.example/f"]}
NOTE = {"body_html": "<p>Hi</p>", "thread_id": "t1", "message_id": "m1"}
ARTICLE = {"title": "Export", "body_html": "<p>Press</p>", "author_user_id": "u1", "slug": "export",
           "is_published": True}  # fmt: skip
COLLECTION = {"title": "Start", "description": "First steps", "slug": "start"}
CALLS = [
    # The application refuses more than 30 days; the SDK would ask for a century.
    Call("issues.list", RANGE, "/issues", RANGE),
    Call("issues.list", {**RANGE, **PAGE}, "/issues", {**RANGE, **PAGE}),
    *(Call(f"{entity}.get", {"id": ID}, f"/{path}/{ID}") for entity, path in SINGLE.items()),
    *(Call(f"{entity}.list", PAGE, f"/{path}", PAGE) for entity, path in UNSIZED.items()),
    *(Call(f"{entity}.list", {}, f"/{entity}") for entity in ("accounts", "contacts")),
    *(Call(f"{entity}.list", {"limit": 9, **PAGE}, f"/{entity}", {"limit": "9", **PAGE})
      for entity in ("accounts", "contacts")),
    *(Call(f"{entity}.api_search", {"filter": STATE, "limit": 9, **PAGE}, f"/{entity}/search", method="POST",
           body={"filter": STATE, "limit": 9, **PAGE}) for entity in ("issues", "accounts", "contacts")),
    *(Call(f"{entity}.create", body, f"/{entity}", method="POST", body=body) for entity, body in MADE.items()),
    *(Call(f"{entity}.update", {"id": ID, **body}, f"/{entity}/{ID}", method="PATCH", body=body)
      for entity, body in CHANGED.items()),
    Call("issues.update", {"id": ID, "custom_fields": FIELDS}, f"/issues/{ID}", method="PATCH",
         body={"custom_fields": FIELDS}),
    Call("issues.snooze", {"id": ID, "snooze_until": "2026-12-01T09:00:00Z"}, f"/issues/{ID}/snooze", method="POST",
         body={"snooze_until": "2026-12-01T09:00:00Z"}),
    Call("issues.delete", {"id": ID}, f"/issues/{ID}", method="DELETE"),
    Call("teams.create", {"name": "Europe", "user_ids": ["u1"]}, "/teams", method="POST",
         body={"name": "Europe", "user_ids": ["u1"]}),
    Call("issue_replies.create", {"id": ID, **REPLY}, f"/issues/{ID}/reply", method="POST", body=REPLY),
    Call("issue_notes.create", {"id": ID, **NOTE}, f"/issues/{ID}/note", method="POST", body=NOTE),
    Call("issue_threads.create", {"id": ID, "name": "Dev"}, f"/issues/{ID}/threads", method="POST",
         body={"name": "Dev"}),
    Call("issue_threads.list", {"id": ID}, f"/issues/{ID}/threads"),
    Call("issue_assignments.update", {"id": ID, "assignee_id": "", "team_id": "t1"}, f"/issues/{ID}", method="PATCH",
         body={"assignee_id": "", "team_id": "t1"}),
    Call("issue_statuses.update", {"id": ID, "state": "closed"}, f"/issues/{ID}", method="PATCH",
         body={"state": "closed"}),
    Call("messages.list", {"id": ID, **PAGE}, f"/issues/{ID}/messages", PAGE),
    Call("custom_fields.list", {}, "/custom-fields", {"object_type": "issue"}),
    Call("custom_fields.list", {"object_type": "contact", **PAGE}, "/custom-fields",
         {"object_type": "contact", **PAGE}),
    Call("articles.list", {"kb_id": "kb1", **PAGE}, f"{BASE}/articles", PAGE),
    Call("articles.create", {"kb_id": "kb1", **ARTICLE}, f"{BASE}/articles", method="POST", body=ARTICLE),
    Call("articles.update", {"kb_id": "kb1", "article_id": "a1", "title": "Export", "body_html": "<p>P</p>"},
         f"{BASE}/articles/a1", method="PATCH", body={"title": "Export", "body_html": "<p>P</p>"}),
    Call("collections.list", {"kb_id": "kb1"}, f"{BASE}/collections"),
    Call("collections.create", {"kb_id": "kb1", **COLLECTION}, f"{BASE}/collections", method="POST", body=COLLECTION),
    Call("me.get", {}, "/me"),
]  # fmt: skip
REFUSED = [
    Refused("issues.list", {"start_time": RANGE["start_time"]}, "end_time", "end_time is missing"),
    Refused("accounts.list", {"limit": 1000}, "limit", "at most 999"),
    Refused("issues.create", {"title": "Export", "body_html": "x", "priority": "soon"}, "priority", "urgent"),
    Refused("issue_replies.create", {"id": ID, "body_html": "x"}, "message_id", "message_id is missing"),
    Refused("issues.api_search", {"filter": {"field": "state"}}, "filter.operator", "operator is missing"),
    Refused("tasks.update", {"id": ID, "status": "done"}, "status", "completed"),
]
META = {"next_cursor": "c1", "has_next_page": True}
MORE, LAST = ({"pagination": {"cursor": cursor, "has_next_page": more}} for cursor, more in (("c1", True), ("", False)))
ANSWERS = [
    Answer("accounts.list", {"data": [{"id": "a"}], **MORE}, [{"id": "a"}], META),
    Answer("issues.get", {"data": {"id": ID, "number": 7}, "request_id": "r"}, {"id": ID, "number": 7}, None),
    Answer("issues.delete", {"request_id": "r"}, {"request_id": "r"}, None),
]  # fmt: skip
FAILURES = [
    Failure("issues.get", status, {"errors": ["It failed"], "code": code, "request_id": "r1"}, error, code,
            "It failed", "r1", **more)
    for status, code, error, more in [
        (400, "invalid_request", UpstreamRejected, {}),
        (401, "wrong_region_token", ReauthorizationRequired, {}),
        (404, "not_found", UpstreamNotFound, {}),
        (429, "rate_limited", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "internal", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "contacts.list",
        {"limit": 1},
        [{"data": [{"id": "2"}], **MORE}, {"data": [{"id": "1"}], **LAST}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/contacts?limit=1", "/contacts?limit=1&cursor=c1"],
    ),
    Pages(
        "issues.api_search",
        {"filter": STATE, "limit": 1},
        [{"data": [{"id": "2"}], **MORE}, {"data": [{"id": "1"}], **LAST}],
        [[{"id": "2"}], [{"id": "1"}]],
        ["/issues/search", "/issues/search"],
        [{"filter": STATE, "limit": 1}, {"filter": STATE, "limit": 1, "cursor": "c1"}],
    ),
]
CASES = Cases(
    "pylon",
    "https://api.usepylon.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"api_token": "t"}, "Bearer t")],
    check=("/me", {"data": {"id": "o1", "name": "Acme"}}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "api_token")],
)
