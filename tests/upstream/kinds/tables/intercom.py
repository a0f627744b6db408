"""The cases of Intercom."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ID, CHAT, ADMIN = "5ba682d23d7cf92bef87bfd4", "215469953809321", "127"
QUERY = {"operator": "AND", "value": [{"field": "email", "operator": "~", "value": "@example.com"}]}
CONTACT = {"role": "user", "email": "ada@example.com", "name": "Ada", "custom_attributes": {"plan": "gold", "seats": 3}}
COMPANY = {"name": "Acme", "plan": "Gold", "monthly_spend": 12, "size": 7}
ARTICLE = {"title": "How we refund", "body": "<p>Ask.</p>", "author_id": 127, "owner_id": 127}
#: entities that are read by id
GETS = ["contacts", "conversations", "companies", "teams", "admins", "tags", "segments", "internal_articles"]
DELETED = ["contacts", "conversations", "companies", "tags", "internal_articles"]


def chat_step(entity: str, params: dict[str, Any], body: dict[str, Any], path: str = "parts") -> Call:
    call = {"id": CHAT, "admin_id": ADMIN, **params}
    sent = {**body, "admin_id": ADMIN, **params}
    return Call(f"{entity}.create", call, f"/conversations/{CHAT}/{path}", method="POST", body=sent)


TICKET = {"ticket_type_id": "9", "contacts": [{"id": ID}], "ticket_attributes": {"_default_title_": "Down"}}

CALLS = [
    *(Call(f"{entity}.get", {"id": ID}, f"/{entity}/{ID}") for entity in GETS),
    *(Call(f"{entity}.delete", {"id": ID}, f"/{entity}/{ID}", method="DELETE") for entity in DELETED),
    Call("current_admin.get", {}, "/me"),
    Call("contacts.list", {}, "/contacts", {"per_page": "50"}),
    Call(
        "contacts.list",
        {"limit": 5, "starting_after": "WzE="},
        "/contacts",
        {"per_page": "5", "starting_after": "WzE="},
    ),
    Call("conversations.list", {}, "/conversations", {"per_page": "20"}),
    Call(
        "conversations.list",
        {"per_page": 150, "starting_after": "WzE="},
        "/conversations",
        {"per_page": "150", "starting_after": "WzE="},
    ),
    Call("companies.list", {"per_page": 20}, "/companies", {"per_page": "20"}),
    Call(
        "companies.list",
        {"page": 3, "segment_id": "s1", "tag_id": "t1"},
        "/companies",
        {"per_page": "50", "page": "3", "tag_id": "t1", "segment_id": "s1"},
    ),
    *(Call(f"{entity}.list", {}, f"/{entity}") for entity in ("teams", "admins", "tags", "segments")),
    Call("segments.list", {"include_count": True}, "/segments", {"include_count": "true"}),
    Call("contacts.create", CONTACT, "/contacts", method="POST", body=CONTACT),
    Call(
        "contacts.update",
        {"id": ID, "name": "Ada L.", "owner_id": 127},
        f"/contacts/{ID}",
        method="PUT",
        body={"name": "Ada L.", "owner_id": 127},
    ),
    Call(
        "contacts.update",
        {"id": ID, "phone": None, "owner_id": None},
        f"/contacts/{ID}",
        method="PUT",
        body={"phone": None, "owner_id": None},
        sdk_differs="members that are null are dropped there, so that nothing is cleared",
    ),
    Call(
        "contacts.api_search",
        {"query": QUERY, "per_page": 10, "starting_after": "WzE="},
        "/contacts/search",
        method="POST",
        body={"query": QUERY, "pagination": {"per_page": 10, "starting_after": "WzE="}},
    ),
    Call("conversations.api_search", {"query": QUERY}, "/conversations/search", method="POST", body={"query": QUERY}),
    Call(
        "conversations.get",
        {"id": CHAT, "display_as": "plaintext"},
        f"/conversations/{CHAT}",
        {"display_as": "plaintext"},
    ),
    Call(
        "conversations.create",
        {"from": {"type": "user", "id": ID}, "body": "Hello"},
        "/conversations",
        method="POST",
        body={"from": {"type": "user", "id": ID}, "body": "Hello"},
    ),
    Call(
        "conversations.update",
        {"id": CHAT, "read": False, "custom_attributes": {"topic": "late"}},
        f"/conversations/{CHAT}",
        method="PUT",
        body={"read": False, "custom_attributes": {"topic": "late"}},
    ),
    Call(
        "conversation_parts.list",
        {"conversation_id": CHAT, "display_as": "plaintext"},
        f"/conversations/{CHAT}",
        {"display_as": "plaintext"},
    ),
    chat_step("conversation_replies", {"message_type": "note", "body": "Careful"}, {"type": "admin"}, "reply"),
    chat_step("conversation_assignments", {"type": "team", "assignee_id": "0"}, {"message_type": "assignment"}),
    chat_step("conversation_closures", {"body": "Bye"}, {"message_type": "close", "type": "admin"}),
    chat_step("conversation_reopenings", {}, {"message_type": "open"}),
    chat_step("conversation_snoozes", {"snoozed_until": 1_893_456_000}, {"message_type": "snoozed"}),
    Call(
        "companies.create",
        {"company_id": "a-1", **COMPANY},
        "/companies",
        method="POST",
        body={"company_id": "a-1", **COMPANY},
    ),
    Call("companies.update", {"id": ID, **COMPANY}, f"/companies/{ID}", method="PUT", body=COMPANY),
    Call("tags.create", {"name": "vip"}, "/tags", method="POST", body={"name": "vip"}),
    Call("contact_tags.create", {"contact_id": ID, "id": "7"}, f"/contacts/{ID}/tags", method="POST", body={"id": "7"}),
    Call("contact_tags.delete", {"contact_id": ID, "id": "7"}, f"/contacts/{ID}/tags/7", method="DELETE"),
    Call(
        "conversation_tags.create",
        {"conversation_id": CHAT, "id": "7", "admin_id": ADMIN},
        f"/conversations/{CHAT}/tags",
        method="POST",
        body={"id": "7", "admin_id": ADMIN},
    ),
    Call(
        "conversation_tags.delete",
        {"conversation_id": CHAT, "id": "7", "admin_id": ADMIN},
        f"/conversations/{CHAT}/tags/7",
        method="DELETE",
        body={"admin_id": ADMIN},
    ),
    Call("notes.list", {"contact_id": ID, "page": 2}, f"/contacts/{ID}/notes", {"per_page": "50", "page": "2"}),
    Call(
        "notes.create",
        {"contact_id": ID, "body": "Called", "admin_id": ADMIN},
        f"/contacts/{ID}/notes",
        method="POST",
        body={"body": "Called", "admin_id": ADMIN},
    ),
    Call("internal_articles.create", ARTICLE, "/internal_articles", method="POST", body=ARTICLE),
    Call(
        "internal_articles.update",
        {"id": "39", "title": "Refunds"},
        "/internal_articles/39",
        method="PUT",
        body={"title": "Refunds"},
    ),
    Call("articles.list", {"page": 2}, "/articles", {"per_page": "25", "page": "2"}),
    Call("articles.get", {"id": "55"}, "/articles/55"),
    Call(
        "articles.api_search",
        {"phrase": "a&b", "state": "all", "help_center_id": 3},
        "/articles/search",
        {"phrase": "a&b", "state": "all", "help_center_id": "3"},
    ),
    Call("ticket_types.list", {}, "/ticket_types"),
    Call("tickets.get", {"id": "64"}, "/tickets/64"),
    Call(
        "tickets.api_search",
        {"query": QUERY, "per_page": 10, "starting_after": "WzE="},
        "/tickets/search",
        method="POST",
        body={"query": QUERY, "pagination": {"per_page": 10, "starting_after": "WzE="}},
    ),
    Call("tickets.create", TICKET, "/tickets", method="POST", body=TICKET),
]
REFUSED = [
    Refused("contacts.list", {"per_page": 151}, "per_page", "at most 150"),
    Refused("contacts.create", {"name": "Ada"}, "", "external_id"),
    Refused("contacts.update", {"id": ID}, "", "at least 2 members"),
    Refused(
        "contacts.api_search",
        {"query": {"field": "email"}},
        "query.operator",
        "query.operator is missing",
        ["query.value"],
    ),
    Refused("conversations.create", {"from": {"type": "admin", "id": "1"}, "body": "a"}, "from.type", "allowed: lead"),
    Refused(
        "conversation_replies.create",
        {"id": CHAT, "message_type": "note", "body": "a"},
        "admin_id",
        "admin_id is missing",
    ),
    Refused("companies.create", {"name": "Acme"}, "company_id", "company_id is missing"),
    Refused("tags.create", {"name": ""}, "name", "at least 1 characters"),
]
NEXT = {"pages": {"type": "pages", "next": {"per_page": 1, "starting_after": "WzE="}}}
ANSWERS = [
    Answer("contacts.list", {"data": [{"id": ID}], **NEXT}, [{"id": ID}], {"next_page": "WzE="}),
    Answer("contacts.list", {"data": [], "pages": {"type": "pages", "page": 1}}, [], {"next_page": None}),
    Answer("conversations.list", {"conversations": [{"id": CHAT}], **NEXT}, [{"id": CHAT}], {"next_page": "WzE="}),
    Answer("teams.list", {"teams": [{"id": "1"}]}, [{"id": "1"}], None),
    Answer("admins.list", {"admins": [{"id": "1"}]}, [{"id": "1"}], None),
    Answer("segments.list", {"segments": [{"id": "1"}]}, [{"id": "1"}], None),
    Answer("tags.list", {"data": [{"id": "1"}]}, [{"id": "1"}], None),
    Answer(
        "conversation_parts.list",
        {"id": CHAT, "conversation_parts": {"conversation_parts": [{"id": "9"}], "total_count": 1}},
        [{"id": "9"}],
        {"total_count": 1},
    ),
    Answer("contacts.delete", {"id": ID, "deleted": True}, {"id": ID, "deleted": True}, None),
]
FAILURES = [
    Failure(
        "contacts.create",
        status,
        {
            "type": "error.list",
            "request_id": "r1",
            "errors": [{"code": code, "message": "It failed", "field": "email"}],
        },
        error,
        code,
        "It failed",
        "r1",
        "email",
        headers={"x-ratelimit-reset": "7"},
    )
    for status, code, error in [
        (400, "parameter_invalid", UpstreamRejected),
        (401, "unauthorized", ReauthorizationRequired),
        (403, "api_plan_restricted", UpstreamRejected),
        (404, "not_found", UpstreamNotFound),
        (409, "conflict", UpstreamRejected),
        (422, "data_invalid", UpstreamRejected),
        (429, "rate_limit_exceeded", UpstreamRateLimited),
        (500, "server_error", UpstreamError),
    ]
]
PAGES = [
    Pages(
        "contacts.list",
        {"per_page": 1},
        [{"data": [{"id": "1"}], **NEXT}, {"data": [{"id": "2"}], "pages": {"type": "pages"}}],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/contacts?per_page=1", "/contacts?per_page=1&starting_after=WzE%3D"],
    ),
    # a page with fewer records than requested is the last one only if it names no next page
    Pages(
        "companies.list",
        {"per_page": 100},
        [
            {"data": [{"id": "1"}], "pages": {"next": "https://api.intercom.io/companies?per_page=60&page=2"}},
            {"data": [{"id": "2"}], "pages": {"next": None}},
        ],
        [[{"id": "1"}], [{"id": "2"}]],
        ["/companies?per_page=100", "/companies?per_page=100&page=2"],
    ),
]
CASES = Cases(
    "intercom",
    "https://api.intercom.io",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"access_token": "t"}, "Bearer t")],
    check=("/me", {"type": "admin", "id": ADMIN}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({}, "access_token"),
        BadCredentials({"access_token": "t", "api_key": "k"}, "api_key", "api_key is not a credential"),
    ],
    headers={"Intercom-Version": "2.14"},
)
