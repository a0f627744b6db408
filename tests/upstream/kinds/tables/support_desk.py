"""The cases of the support desk."""

from base64 import b64encode

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamQueueFull,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ENVIRONMENT = {"subdomain": "acme"}
ORIGIN = "https://acme.zendesk.com"
API_TOKEN = {"email": "ada@example.com", "api_token": "secret"}
OAUTH = {"access_token": "bearing"}
UNPAGED = {"next_page": None, "previous_page": None, "count": 1}

NEW_TICKET = {
    "subject": "Printer on fire",
    "description": "Smoke",
    "comment": {"body": "Smoke", "html_body": "<b>Smoke</b>", "public": False},
    "type": "incident",
    "priority": "urgent",
    "status": "new",
    "requester_id": 1,
    "assignee_id": 2,
    "group_id": 3,
    "organization_id": 4,
    "tags": ["fire"],
    "external_id": "A-17",
    "custom_fields": [{"id": 5, "value": "red"}],
    "due_at": "2026-01-31T09:00:00Z",
    "collaborator_ids": [6, 7],
}

CHANGED_TICKET = {
    "subject": "Printer was on fire",
    "comment": {"body": "Out", "html_body": "<b>Out</b>", "public": True, "author_id": 2},
    "type": "problem",
    "priority": "low",
    "status": "solved",
    "assignee_id": 2,
    "group_id": 3,
    "tags": ["fire", "out"],
    "external_id": "A-18",
    "custom_fields": [{"id": 5, "value": "black"}],
    "due_at": "2026-02-28T09:00:00+01:00",
    "collaborator_ids": [6],
}

BULK_CHANGE = {
    "status": "solved",
    "priority": "normal",
    "assignee_id": 2,
    "group_id": 3,
    "tags": ["a"],
    "additional_tags": ["b"],
    "remove_tags": ["c"],
}

COMMENT = {"comment": {"body": "Called back", "html_body": "<p>Called back</p>", "public": False, "author_id": 2}}

NEW_USER = {
    "name": "Ada",
    "email": "ada@example.com",
    "role": "end-user",
    "phone": "+44",
    "organization_id": 4,
    "external_id": "crm-1",
    "alias": "A",
    "notes": "n",
    "details": "d",
    "tags": ["vip"],
    "verified": True,
    "user_fields": {"plan": "gold"},
}

CHANGED_USER = {"name": "Ada L", "role": "agent", "suspended": True, "tags": [], "user_fields": {"plan": None}}
PAGE = {"page": 2, "per_page": 50}
PAGE_QUERY = {"page": "2", "per_page": "50"}
USAGE = {"active": False, "sort_by": "usage_7d", "sort_order": "desc"}
USAGE_QUERY = {"active": "false", "sort_by": "usage_7d", "sort_order": "desc"}

CALLS = [
    Call(
        "tickets.list",
        {**PAGE, "external_id": "A&B /17", "sort_by": "requester.name", "sort_order": "asc"},
        "/tickets.json",
        {**PAGE_QUERY, "external_id": "A&B /17", "sort_by": "requester.name", "sort_order": "asc"},
    ),
    Call("tickets.list", {}, "/tickets.json"),
    Call("tickets.list", {"limit": 7}, "/tickets.json", {"per_page": "7"}),
    Call("tickets.get", {"ticket_id": 35436}, "/tickets/35436.json"),
    Call("tickets.get", {"ticket_id": "35436"}, "/tickets/35436.json"),
    Call("tickets.create", {"ticket": NEW_TICKET}, "/tickets.json", {}, "POST", {"ticket": NEW_TICKET}),
    Call(
        "tickets.update",
        {"ticket_id": 1, "ticket": CHANGED_TICKET},
        "/tickets/1.json",
        {},
        "PUT",
        {"ticket": CHANGED_TICKET},
    ),
    Call(
        "ticket_comments.create", {"ticket_id": 1, "ticket": COMMENT}, "/tickets/1.json", {}, "PUT", {"ticket": COMMENT}
    ),
    Call(
        "ticket_comments.list",
        {"ticket_id": 1, **PAGE, "include_inline_images": True, "sort_order": "desc"},
        "/tickets/1/comments.json",
        {**PAGE_QUERY, "include_inline_images": "true", "sort_order": "desc"},
    ),
    Call(
        "ticket_bulk_updates.create",
        {"ids": "1, 2,3", "ticket": BULK_CHANGE},
        "/tickets/update_many.json",
        {"ids": "1,2,3"},
        "PUT",
        {"ticket": BULK_CHANGE},
    ),
    Call(
        "tickets.create_many",
        {"tickets": [NEW_TICKET, {"subject": "Second"}]},
        "/tickets/create_many.json",
        method="POST",
        body={"tickets": [NEW_TICKET, {"subject": "Second"}]},
    ),
    Call(
        "tickets.update_many",
        {"tickets": [{"id": 7, **CHANGED_TICKET}, {"id": 8, "status": "open"}]},
        "/tickets/update_many.json",
        method="PUT",
        body={"tickets": [{"id": 7, **CHANGED_TICKET}, {"id": 8, "status": "open"}]},
    ),
    Call("tickets.delete_many", {"ids": "1, 2,3"}, "/tickets/destroy_many.json", {"ids": "1,2,3"}, "DELETE"),
    Call(
        "tickets.list_changes",
        {"start_time": 1735689600, "per_page": 50},
        "/incremental/tickets/cursor.json",
        {"start_time": "1735689600", "per_page": "50"},
    ),
    Call(
        "deleted_tickets.list",
        {**PAGE, "sort_by": "deleted_at", "sort_order": "desc"},
        "/deleted_tickets.json",
        {**PAGE_QUERY, "sort_by": "deleted_at", "sort_order": "desc"},
    ),
    Call(
        "users.list",
        {**PAGE, "role": "end-user", "external_id": "crm-1"},
        "/users.json",
        {**PAGE_QUERY, "role": "end-user", "external_id": "crm-1"},
    ),
    Call("users.create", {"user": NEW_USER}, "/users.json", {}, "POST", {"user": NEW_USER}),
    Call("users.get", {"user_id": 1}, "/users/1.json"),
    Call("users.update", {"user_id": 1, "user": CHANGED_USER}, "/users/1.json", {}, "PUT", {"user": CHANGED_USER}),
    Call("organizations.list", PAGE, "/organizations.json", PAGE_QUERY),
    Call("organizations.get", {"organization_id": 1}, "/organizations/1.json"),
    Call("groups.list", {**PAGE, "exclude_deleted": True}, "/groups.json", {**PAGE_QUERY, "exclude_deleted": "true"}),
    Call("groups.get", {"group_id": 1}, "/groups/1.json"),
    Call("attachments.get", {"attachment_id": 1}, "/attachments/1.json"),
    Call("attachments.download", {"attachment_id": 1, "range_header": "bytes=0-9"}, "/attachments/1.json"),
    Call("ticket_audits.list", {"ticket_id": 1, **PAGE}, "/tickets/1/audits.json", PAGE_QUERY),
    Call("ticket_audits.list", {"ticket_id": 1, "limit": 5}, "/tickets/1/audits.json", {"per_page": "5"}),
    Call("ticket_audits.list", {}, "/ticket_audits.json"),
    Call(
        "ticket_audits.list",
        {"limit": 1000, "cursor": "fD=="},
        "/ticket_audits.json",
        {"limit": "1000", "cursor": "fD=="},
    ),
    Call("ticket_audits.list", PAGE, "/ticket_audits.json", PAGE_QUERY),
    Call("ticket_metrics.list", PAGE, "/ticket_metrics.json", PAGE_QUERY),
    Call("ticket_fields.list", {**PAGE, "locale": "de"}, "/ticket_fields.json", {**PAGE_QUERY, "locale": "de"}),
    Call("ticket_fields.get", {"ticket_field_id": 1}, "/ticket_fields/1.json"),
    Call("brands.list", PAGE, "/brands.json", PAGE_QUERY),
    Call("brands.get", {"brand_id": 1}, "/brands/1.json"),
    Call(
        "views.list",
        {**PAGE, "access": "personal", "active": True, "group_id": 3, "sort_by": "alphabetical", "sort_order": "asc"},
        "/views.json",
        {
            **PAGE_QUERY,
            "access": "personal",
            "active": "true",
            "group_id": "3",
            "sort_by": "alphabetical",
            "sort_order": "asc",
        },
    ),
    Call("views.get", {"view_id": 1}, "/views/1.json"),
    Call("macros.get", {"macro_id": 1}, "/macros/1.json"),
    Call(
        "macros.list",
        {
            "access": "shared",
            "active": True,
            "category": 8,
            "group_id": 3,
            "only_viewable": False,
            "sort_by": "position",
        },
        "/macros.json",
        {
            "access": "shared",
            "active": "true",
            "category": "8",
            "group_id": "3",
            "only_viewable": "false",
            "sort_by": "position",
        },
    ),
    Call(
        "triggers.list",
        {**USAGE, "category_id": "10"},
        "/triggers.json",
        {**USAGE_QUERY, "category_id": "10"},
    ),
    Call("triggers.get", {"trigger_id": 1}, "/triggers/1.json"),
    Call("automations.list", USAGE, "/automations.json", USAGE_QUERY),
    Call("automations.get", {"automation_id": 1}, "/automations/1.json"),
    Call("tags.list", PAGE, "/tags.json", PAGE_QUERY),
    Call(
        "satisfaction_ratings.list",
        {"score": "bad", "start_time": 1_700_000_000, "end_time": 1_700_086_400},
        "/satisfaction_ratings.json",
        {"score": "bad", "start_time": "1700000000", "end_time": "1700086400"},
    ),
    Call("satisfaction_ratings.get", {"satisfaction_rating_id": 1}, "/satisfaction_ratings/1.json"),
    Call("group_memberships.list", PAGE, "/group_memberships.json", PAGE_QUERY),
    Call("organization_memberships.list", PAGE, "/organization_memberships.json", PAGE_QUERY),
    Call("sla_policies.list", PAGE, "/slas/policies.json", PAGE_QUERY),
    Call("sla_policies.get", {"sla_policy_id": 1}, "/slas/policies/1.json"),
    Call(
        "ticket_forms.list",
        {"active": True, "end_user_visible": False},
        "/ticket_forms.json",
        {"active": "true", "end_user_visible": "false"},
    ),
    Call("ticket_forms.get", {"ticket_form_id": 1}, "/ticket_forms/1.json"),
    Call(
        "articles.list",
        {**PAGE, "sort_by": "title", "sort_order": "desc"},
        "/help_center/articles.json",
        {**PAGE_QUERY, "sort_by": "title", "sort_order": "desc"},
    ),
    Call("articles.get", {"id": 1}, "/help_center/articles/1.json"),
    Call(
        "article_attachments.list",
        {"article_id": 1, **PAGE},
        "/help_center/articles/1/attachments.json",
        PAGE_QUERY,
    ),
    Call("article_attachments.get", {"article_id": 1, "attachment_id": 2}, "/help_center/articles/1/attachments/2"),
    Call(
        "article_attachments.download",
        {"article_id": 1, "attachment_id": 2, "range_header": "bytes=5-"},
        "/help_center/articles/1/attachments/2",
    ),
]

TICKET_ID = {"ticket_id": 1}
PAGED = {"next_page": f"{ORIGIN}/api/v2/tickets.json?page=3&per_page=2", "previous_page": None, "count": 9}

REFUSED = [
    Refused("tickets.create", {}, "ticket", "ticket is missing"),
    Refused("tickets.create", {"ticket": {}}, "ticket.subject", "ticket.subject is missing"),
    Refused(
        "tickets.create",
        {"ticket": {"subject": "x", "status": "closed"}},
        "ticket.status",
        "allowed: new, open, pending, hold, solved",
    ),
    Refused("tickets.update", {**TICKET_ID, "ticket": {"status": "closed"}}, "ticket.status", "'closed'"),
    Refused("ticket_bulk_updates.create", {"ids": "1", "ticket": {"status": "closed"}}, "ticket.status", "'closed'"),
    Refused("ticket_bulk_updates.create", {"ids": "1,x", "ticket": {}}, "ids", "digits separated by commas"),
    Refused("ticket_bulk_updates.create", {"ids": "", "ticket": {}}, "ids", "digits separated by commas"),
    Refused("ticket_bulk_updates.create", {"ids": [[1], 2], "ticket": {}}, "ids", "expected string"),
    Refused("ticket_bulk_updates.create", {"ids": "1", "ticket": {"subject": "x"}}, "ticket.subject", "is not a param"),
    Refused("tickets.create", {"ticket": {"subject": "x", "priority": "hot"}}, "ticket.priority", "urgent, high"),
    Refused("tickets.create", {"ticket": {"subject": "x", "type": "bug"}}, "ticket.type", "problem, incident"),
    Refused("tickets.create", {"ticket": {"subject": "x", "asignee_id": 1}}, "ticket.asignee_id", "mean assignee_id?"),
    Refused(
        "tickets.create",
        {"ticket": {"subject": "x", "comment": {"author_id": 1}}},
        "ticket.comment.author_id",
        "is not a param",
    ),
    Refused(
        "tickets.update",
        {**TICKET_ID, "ticket": {"custom_fields": [{"id": "five"}]}},
        "ticket.custom_fields.0.id",
        "expected integer",
    ),
    Refused(
        "tickets.update",
        {**TICKET_ID, "ticket": {"due_at": "tomorrow"}},
        "ticket.due_at",
        "must be a date-time such as 2026-01-31T09:00:00Z",
    ),
    Refused("ticket_comments.create", {**TICKET_ID, "ticket": {"comment": {}}}, "ticket.comment.body", "is missing"),
    Refused("ticket_comments.create", {**TICKET_ID, "ticket": {}}, "ticket.comment", "is missing"),
    Refused("tickets.get", {"ticket_id": "12a"}, "ticket_id", "expected integer"),
    Refused("tickets.list", {"sort_order": "up"}, "sort_order", "allowed: asc, desc"),
    Refused("tickets.list", {"per_page": 101}, "per_page", "at most 100"),
    Refused("tickets.list", {"limit": 101}, "per_page", "at most 100"),
    Refused("tickets.list", {"page": 0}, "page", "at least 1"),
    Refused("users.list", {"role": "owner"}, "role", "end-user, agent, admin"),
    Refused("ticket_audits.list", {"ticket_id": 1, "cursor": "x"}, "", "ticket_id and cursor exclude each other"),
    Refused("article_attachments.get", {"article_id": 1}, "attachment_id", "is missing"),
]
ANSWERS = [
    Answer("tickets.list", {"tickets": [{"id": 1}], **PAGED}, [{"id": 1}], PAGED),
    Answer("tickets.get", {"ticket": {"id": 1, "status": "closed"}}, {"id": 1, "status": "closed"}, None),
    Answer("ticket_comments.create", {"ticket": {"id": 1}, "audit": {"id": 2}}, {"id": 1}, None),
    Answer("ticket_comments.list", {"comments": [{"id": 1}], **PAGED}, [{"id": 1}], PAGED),
    Answer("sla_policies.list", {"sla_policies": [], **PAGED}, [], PAGED),
    Answer("article_attachments.get", {"article_attachment": {"id": 2}}, {"id": 2}, None),
    Answer("tags.list", {"tags": [{"name": "a", "count": 1}], "count": 1}, [{"name": "a", "count": 1}], UNPAGED),
]
FAILURES = [
    Failure("tickets.list", status, body, error, code, message, "r1", headers={"x-request-id": "r1"})
    for status, body, error, code, message in [
        (400, {"error": {"title": "Invalid", "message": "page"}}, UpstreamRejected, "Invalid", "page"),
        (401, {"error": "Couldn't authenticate you"}, ReauthorizationRequired, "Couldn't authenticate you", None),
        (403, {"error": {"title": "Forbidden", "message": "no"}}, UpstreamRejected, "Forbidden", "no"),
        (
            404,
            {"error": "RecordNotFound", "description": "Not found"},
            UpstreamNotFound,
            "RecordNotFound",
            "Not found",
        ),
        (409, {"error": "UpdateConflict", "description": "saved"}, UpstreamRejected, "UpdateConflict", "saved"),
        (
            422,
            {"error": "RecordInvalid", "description": "Record validation errors", "details": {"base": []}},
            UpstreamRejected,
            "RecordInvalid",
            "Record validation errors",
        ),
        (422, {"errors": [{"code": "Bad", "detail": "d"}]}, UpstreamRejected, "Bad", "d"),
        (422, {"errors": ["one", "two"]}, UpstreamRejected, None, "one; two"),
        (429, {"error": "TooManyJobs", "description": "30"}, UpstreamQueueFull, "TooManyJobs", "30"),
        (429, {"error": "TooManyRequests"}, UpstreamRateLimited, "TooManyRequests", None),
        (503, "<html>maintenance</html>", UpstreamError, None, None),
    ]
]
BAD_CREDENTIALS = [
    BadCredentials({"email": "ada@example.com"}, "api_token"),
    BadCredentials({"api_token": "secret"}, "email"),
    BadCredentials({"access_token": "x", "token": "y"}, "token"),
    BadCredentials({"access_token": "x\r\nX-Injected: y"}, "access_token"),
    BadCredentials({}, "access_token"),
]
PAGES = [
    Pages(
        "tickets.list",
        {"per_page": 1, "sort_by": "id"},
        [
            {"tickets": [{"id": 1}], "next_page": f"{ORIGIN}/api/v2/tickets.json?page=2", "count": 2},
            {"tickets": [{"id": 2}], "next_page": None, "count": 2},
        ],
        [[{"id": 1}], [{"id": 2}]],
        ["/api/v2/tickets.json?sort_by=id&per_page=1", "/api/v2/tickets.json?page=2&sort_by=id&per_page=1"],
    )
]
CASES = Cases(
    "support-desk",
    f"{ORIGIN}/api/v2",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        (API_TOKEN, f"Basic {b64encode(b'ada@example.com/token:secret').decode()}"),
        (OAUTH, "Bearer bearing"),
    ],
    check=("/api/v2/tickets.json?per_page=1", {"tickets": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=BAD_CREDENTIALS,
    environment=ENVIRONMENT,
)
