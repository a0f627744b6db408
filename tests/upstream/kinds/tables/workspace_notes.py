"""The cases of workspace notes."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, Call, Cases, Failure, Pages, Refused

VERSION = "2025-09-03"
NEWEST_FIRST = {"direction": "descending", "timestamp": "last_edited_time"}
PAGES = {"property": "object", "value": "page"}
DATA_SOURCES = {"property": "object", "value": "data_source"}
TEXT = [{"type": "text", "text": {"content": "Hello", "link": None}, "annotations": {"bold": True}}]
TO_DO = {"type": "to_do", "to_do": {"rich_text": TEXT, "checked": False}}
EMOJI = {"type": "emoji", "emoji": "✅"}
PICTURE = {"type": "external", "external": {"url": "https://files.example/cover.png"}}
PARENTS = "exactly one of page_id, database_id, data_source_id, workspace must be given"

CALLS = [
    Call("users.list", {}, "/v1/users", {"page_size": "100"}),
    Call("users.list", {"limit": 7, "start_cursor": "c2"}, "/v1/users", {"start_cursor": "c2", "page_size": "7"}),
    Call("users.get", {"user_id": "me"}, "/v1/users/me"),
    Call("pages.list", {}, "/v1/search", method="POST", body={"filter": PAGES, "sort": NEWEST_FIRST, "page_size": 100}),
    Call(
        "pages.list",
        {"filter": {"value": "page"}, "sort": {"direction": "ascending"}, "start_cursor": "c2", "page_size": 5},
        "/v1/search",
        method="POST",
        body={
            "filter": PAGES,
            "sort": {"direction": "ascending", "timestamp": "last_edited_time"},
            "start_cursor": "c2",
            "page_size": 5,
        },
    ),
    Call(
        "pages.create",
        {
            "parent": {"data_source_id": "d1"},
            "properties": {"Name": {"title": TEXT}},
            "children": [TO_DO],
            "icon": EMOJI,
        },
        "/v1/pages",
        method="POST",
        body={
            "parent": {"data_source_id": "d1"},
            "properties": {"Name": {"title": TEXT}},
            "children": [TO_DO],
            "icon": EMOJI,
        },
    ),
    Call(
        "pages.create",
        {"parent": {"workspace": True}, "cover": None},
        "/v1/pages",
        method="POST",
        body={"parent": {"workspace": True}, "cover": None},
    ),
    Call("pages.get", {"page_id": "p1"}, "/v1/pages/p1"),
    Call(
        "pages.update",
        {
            "page_id": "p1",
            "properties": {"Done": {"checkbox": True}},
            "icon": None,
            "cover": PICTURE,
            "in_trash": False,
        },
        "/v1/pages/p1",
        method="PATCH",
        body={"properties": {"Done": {"checkbox": True}}, "icon": None, "cover": PICTURE, "in_trash": False},
    ),
    Call("pages.update", {"page_id": "p1", "archived": True}, "/v1/pages/p1", method="PATCH", body={"archived": True}),
    Call(
        "data_sources.list",
        {},
        "/v1/search",
        method="POST",
        body={"filter": DATA_SOURCES, "sort": NEWEST_FIRST, "page_size": 100},
    ),
    Call("data_sources.get", {"data_source_id": "d1"}, "/v1/data_sources/d1"),
    Call(
        "data_sources.update",
        {
            "data_source_id": "d1",
            "title": TEXT,
            "description": [],
            "properties": {"Old": None},
            "icon": EMOJI,
            "cover": None,
            "archived": False,
            "in_trash": False,
        },
        "/v1/data_sources/d1",
        method="PATCH",
        body={
            "title": TEXT,
            "description": [],
            "properties": {"Old": None},
            "icon": EMOJI,
            "cover": None,
            "archived": False,
            "in_trash": False,
        },
    ),
    Call("blocks.list", {"block_id": "b1"}, "/v1/blocks/b1/children", {"page_size": "100"}),
    Call(
        "blocks.create",
        {"block_id": "b1", "children": [TO_DO]},
        "/v1/blocks/b1/children",
        method="PATCH",
        body={"children": [TO_DO]},
    ),
    Call("blocks.get", {"block_id": "b1"}, "/v1/blocks/b1"),
    Call(
        "blocks.update",
        {"block_id": "b1", "to_do": {"rich_text": TEXT, "checked": True}, "archived": False},
        "/v1/blocks/b1",
        method="PATCH",
        body={"to_do": {"rich_text": TEXT, "checked": True}, "archived": False},
    ),
    Call(
        "comments.list",
        {"block_id": "b1", "page_size": 10, "start_cursor": "c2"},
        "/v1/comments",
        {"block_id": "b1", "page_size": "10", "start_cursor": "c2"},
    ),
    Call(
        "comments.create",
        {"parent": {"page_id": "p1"}, "rich_text": TEXT},
        "/v1/comments",
        method="POST",
        body={"parent": {"page_id": "p1"}, "rich_text": TEXT},
    ),
    Call(
        "comments.create",
        {"discussion_id": "t1", "rich_text": TEXT},
        "/v1/comments",
        method="POST",
        body={"discussion_id": "t1", "rich_text": TEXT},
    ),
]
REFUSED = [
    Refused("users.list", {"page_size": 101}, "page_size", "at most 100"),
    Refused("users.list", {"limit": 101}, "page_size", "at most 100"),
    Refused("users.list", {"page_size": 0}, "page_size", "at least 1"),
    Refused("users.get", {}, "user_id", "user_id is missing"),
    Refused("users.get", {"user_id": 5}, "user_id", "expected string"),
    Refused("pages.list", {"filter": {"value": "database"}}, "filter.value", "allowed: page"),
    Refused("pages.list", {"filter": {"value": "data_source"}}, "filter.value", "allowed: page"),
    Refused("data_sources.list", {"filter": {"value": "database"}}, "filter.value", "allowed: data_source"),
    Refused("data_sources.list", {"filter": {"property": "id"}}, "filter.property", "allowed: object"),
    Refused("pages.list", {"sort": {"direction": "desc"}}, "sort.direction", "allowed: ascending, descending"),
    Refused("pages.create", {}, "parent", "parent is missing"),
    Refused("pages.create", {"parent": {}}, "parent", PARENTS),
    Refused("pages.create", {"parent": {"page_id": "p1", "workspace": True}}, "parent", "given: page_id, workspace"),
    Refused("pages.create", {"parent": {"page_id": "p1"}, "children": [{}] * 101}, "children", "at most 100 items"),
    Refused("pages.update", {"page_id": "p1", "icon": "✅"}, "icon", "expected object or null"),
    Refused("pages.update", {"page_id": "p1", "parent": {}}, "parent", "is not a param"),
    Refused("data_sources.update", {"data_source_id": "d1", "title": "Books"}, "title", "expected array"),
    Refused("blocks.create", {"block_id": "b1", "children": [TO_DO] * 101}, "children", "at most 100 items"),
    Refused("blocks.create", {"block_id": "b1", "children": [{"to_do": {}}]}, "children.0.type", "is missing"),
    Refused("blocks.create", {"block_id": "b1"}, "children", "is missing"),
    Refused("blocks.update", {"block_id": "b1", "to_do": {"checked": "yes"}}, "to_do.checked", "expected boolean"),
    Refused("comments.list", {}, "block_id", "is missing"),
    Refused("comments.create", {"rich_text": TEXT}, "", "exactly one of parent, discussion_id must be given"),
    Refused(
        "comments.create",
        {"rich_text": TEXT, "parent": {"page_id": "p1"}, "discussion_id": "t1"},
        "",
        "exactly one of parent, discussion_id must be given; given: discussion_id, parent",
    ),
    Refused(
        "comments.create",
        {"rich_text": TEXT, "parent": {"page_id": "p1", "block_id": "b1"}},
        "parent",
        "exactly one of page_id, block_id must be given",
    ),
    Refused("comments.create", {"discussion_id": "t1"}, "rich_text", "is missing"),
    Refused(
        "comments.create",
        {"discussion_id": "t1", "rich_text": [{"text": {"content": "x" * 2001}}]},
        "rich_text.0.text.content",
        "at most 2000 characters",
    ),
]
ANSWERS = [
    Answer(
        "pages.list",
        b'{"object":"list","results":[{"id":"p1"}],"next_cursor":"c2","has_more":true,"type":"page_or_data_source"}',
        [{"id": "p1"}],
        {"next_cursor": "c2", "has_more": True},
    ),
    Answer(
        "users.list",
        b'{"object":"list","results":[],"next_cursor":null,"has_more":false}',
        [],
        {"next_cursor": None, "has_more": False},
    ),
    Answer("blocks.create", b'{"object":"list","results":[{"id":"b2"}],"has_more":false}', [{"id": "b2"}], None),
    Answer(
        "pages.get",
        b'{"id":"p1","properties":{},"request_id":"r1"}',
        {"id": "p1", "properties": {}, "request_id": "r1"},
        None,
    ),
]
FAILURES = [
    Failure(
        "pages.get",
        status,
        {"object": "error", "status": status, "code": code, "message": "No.", "request_id": "r1"},
        error,
        code,
        "No.",
        "r1",
        headers={"retry-after": "7"},
        retry_after=7,
    )
    for status, code, error in [
        (400, "validation_error", UpstreamRejected),
        (400, "missing_version", UpstreamRejected),
        (401, "unauthorized", ReauthorizationRequired),
        (403, "restricted_resource", UpstreamRejected),
        (404, "object_not_found", UpstreamNotFound),
        (409, "conflict_error", UpstreamBusy),
        (429, "rate_limited", UpstreamRateLimited),
        (500, "internal_server_error", UpstreamError),
        (503, "service_unavailable", UpstreamError),
        (504, "gateway_timeout", UpstreamError),
        (529, "service_overload", UpstreamRateLimited),
    ]
]
TURNED = [
    Pages(
        "blocks.list",
        {"block_id": "b/1"},
        [
            {"results": [{"id": "b1"}], "next_cursor": "c2", "has_more": True},
            {"results": [{"id": "b2"}], "next_cursor": "c3", "has_more": False},
        ],
        [[{"id": "b1"}], [{"id": "b2"}]],
        ["/v1/blocks/b%2F1/children?page_size=100", "/v1/blocks/b%2F1/children?start_cursor=c2&page_size=100"],
    )
]
CASES = Cases(
    "workspace-notes",
    "https://api.notion.com",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"token": "internal"}, "Bearer internal"),
        ({"access_token": "bearing"}, "Bearer bearing"),
        (
            {"access_token": "bearing", "refresh_token": "renewing", "client_id": "app", "client_secret": "known"},
            "Bearer bearing",
        ),
    ],
    check=("/v1/users?page_size=1", {"object": "list", "results": [], "next_cursor": None, "has_more": False}),
    pages=TURNED,
    answers=ANSWERS,
    headers={"Notion-Version": VERSION},
)
