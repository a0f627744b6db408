"""Workspace notes: every action as it goes over the wire, and every answer as it comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from yarl import URL

from gateway.connectors.responses import UpstreamResponse
from gateway.errors import (
    GatewayError,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.kinds.spec import Effect
from tests.connectors.judged import read

KIND = load_kind(shipped_specs() / "workspace-notes")
VERSION = "2025-09-03"
NEWEST_FIRST = {"direction": "descending", "timestamp": "last_edited_time"}
PAGES = {"property": "object", "value": "page"}
DATA_SOURCES = {"property": "object", "value": "data_source"}
TEXT = [{"type": "text", "text": {"content": "Hello", "link": None}, "annotations": {"bold": True}}]
TO_DO = {"type": "to_do", "to_do": {"rich_text": TEXT, "checked": False}}
EMOJI = {"type": "emoji", "emoji": "✅"}
PICTURE = {"type": "external", "external": {"url": "https://files.example/cover.png"}}


@dataclass(frozen=True)
class Call:
    """An action, its params, and the one request that they make."""

    action: str
    params: Mapping[str, Any]
    request: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


CALLS = [
    Call("users.list", {}, "GET /v1/users", {"page_size": "100"}),
    Call("users.list", {"limit": 7, "start_cursor": "c2"}, "GET /v1/users", {"start_cursor": "c2", "page_size": "7"}),
    Call("users.get", {"user_id": "me"}, "GET /v1/users/me"),
    Call(
        "pages.list",
        {},
        "POST /v1/search",
        body={"filter": PAGES, "sort": NEWEST_FIRST, "page_size": 100},
    ),
    Call(
        "pages.list",
        {"filter": {"value": "page"}, "sort": {"direction": "ascending"}, "start_cursor": "c2", "page_size": 5},
        "POST /v1/search",
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
        "POST /v1/pages",
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
        "POST /v1/pages",
        body={"parent": {"workspace": True}, "cover": None},
    ),
    Call("pages.get", {"page_id": "p1"}, "GET /v1/pages/p1"),
    Call(
        "pages.update",
        {
            "page_id": "p1",
            "properties": {"Done": {"checkbox": True}},
            "icon": None,
            "cover": PICTURE,
            "in_trash": False,
        },
        "PATCH /v1/pages/p1",
        body={"properties": {"Done": {"checkbox": True}}, "icon": None, "cover": PICTURE, "in_trash": False},
    ),
    Call("pages.update", {"page_id": "p1", "archived": True}, "PATCH /v1/pages/p1", body={"archived": True}),
    Call(
        "data_sources.list",
        {},
        "POST /v1/search",
        body={"filter": DATA_SOURCES, "sort": NEWEST_FIRST, "page_size": 100},
    ),
    Call("data_sources.get", {"data_source_id": "d1"}, "GET /v1/data_sources/d1"),
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
        "PATCH /v1/data_sources/d1",
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
    Call("blocks.list", {"block_id": "b1"}, "GET /v1/blocks/b1/children", {"page_size": "100"}),
    Call(
        "blocks.create",
        {"block_id": "b1", "children": [TO_DO]},
        "PATCH /v1/blocks/b1/children",
        body={"children": [TO_DO]},
    ),
    Call("blocks.get", {"block_id": "b1"}, "GET /v1/blocks/b1"),
    Call(
        "blocks.update",
        {"block_id": "b1", "to_do": {"rich_text": TEXT, "checked": True}, "archived": False},
        "PATCH /v1/blocks/b1",
        body={"to_do": {"rich_text": TEXT, "checked": True}, "archived": False},
    ),
    Call(
        "comments.list",
        {"block_id": "b1", "page_size": 10, "start_cursor": "c2"},
        "GET /v1/comments",
        {"block_id": "b1", "page_size": "10", "start_cursor": "c2"},
    ),
    Call(
        "comments.create",
        {"parent": {"page_id": "p1"}, "rich_text": TEXT},
        "POST /v1/comments",
        body={"parent": {"page_id": "p1"}, "rich_text": TEXT},
    ),
    Call(
        "comments.create",
        {"discussion_id": "t1", "rich_text": TEXT},
        "POST /v1/comments",
        body={"discussion_id": "t1", "rich_text": TEXT},
    ),
]


def test_every_action_has_a_case():
    assert {call.action for call in CALLS} == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.action)
def test_an_action_makes_its_request(offline, call):
    [shown] = offline("workspace-notes").dry_run(*call.action.split("."), call.params)

    url = URL(shown["url"])
    assert (f"{shown['method']} {url.path}", dict(url.query)) == (call.request, call.query)
    assert (url.host, shown["headers"]["Notion-Version"]) == ("api.notion.com", VERSION)
    assert shown["headers"].get("Content-Type") == (None if call.body is None else "application/json")
    assert shown["body"] == call.body


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


def test_only_what_adds_something_is_a_write():
    effects = {str(operation): operation.action.effect for operation in KIND.operations.values()}

    assert {name for name, effect in effects.items() if effect is Effect.WRITE} == {
        "pages.create",
        "blocks.create",
        "comments.create",
    }
    assert effects["pages.list"] is effects["data_sources.list"] is Effect.READ


@pytest.mark.parametrize(
    "block",
    [
        {"type": "table", "table": {"table_width": 2, "children": []}},
        {"type": "tab", "tab": {"anything": [1]}},
        {"type": "toggle", "toggle": {"rich_text": TEXT, "children": [TO_DO]}},
        {"type": "code", "code": {"rich_text": TEXT, "language": "python"}},
        {"type": "image", "image": PICTURE},
    ],
)
def test_blocks_of_any_type_pass(block):
    params = {"block_id": "b1", "children": [block]}

    assert validated(KIND.operation("blocks", "create"), params) == params


PARENTS = "exactly one of page_id, database_id, data_source_id, workspace must be given"


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("users.list", {"page_size": 101}, "page_size", "at most 100"),
        ("users.list", {"limit": 101}, "page_size", "at most 100"),
        ("users.list", {"page_size": 0}, "page_size", "at least 1"),
        ("users.get", {}, "user_id", "user_id is missing"),
        ("users.get", {"user_id": 5}, "user_id", "expected string"),
        ("pages.list", {"filter": {"value": "database"}}, "filter.value", "allowed: page"),
        ("pages.list", {"filter": {"value": "data_source"}}, "filter.value", "allowed: page"),
        ("data_sources.list", {"filter": {"value": "database"}}, "filter.value", "allowed: data_source"),
        ("data_sources.list", {"filter": {"property": "id"}}, "filter.property", "allowed: object"),
        ("pages.list", {"sort": {"direction": "desc"}}, "sort.direction", "allowed: ascending, descending"),
        ("pages.create", {}, "parent", "parent is missing"),
        ("pages.create", {"parent": {}}, "parent", PARENTS),
        ("pages.create", {"parent": {"page_id": "p1", "workspace": True}}, "parent", "given: page_id, workspace"),
        ("pages.create", {"parent": {"page_id": "p1"}, "children": [{}] * 101}, "children", "at most 100 items"),
        ("pages.update", {"page_id": "p1", "icon": "✅"}, "icon", "expected object or null"),
        ("pages.update", {"page_id": "p1", "parent": {}}, "parent", "is not a param"),
        ("data_sources.update", {"data_source_id": "d1", "title": "Books"}, "title", "expected array"),
        ("blocks.create", {"block_id": "b1", "children": [TO_DO] * 101}, "children", "at most 100 items"),
        ("blocks.create", {"block_id": "b1", "children": [{"to_do": {}}]}, "children.0.type", "is missing"),
        ("blocks.create", {"block_id": "b1"}, "children", "is missing"),
        ("blocks.update", {"block_id": "b1", "to_do": {"checked": "yes"}}, "to_do.checked", "expected boolean"),
        ("comments.list", {}, "block_id", "is missing"),
        ("comments.create", {"rich_text": TEXT}, "", "exactly one of parent, discussion_id must be given"),
        (
            "comments.create",
            {"rich_text": TEXT, "parent": {"page_id": "p1"}, "discussion_id": "t1"},
            "",
            "exactly one of parent, discussion_id must be given; given: discussion_id, parent",
        ),
        (
            "comments.create",
            {"rich_text": TEXT, "parent": {"page_id": "p1", "block_id": "b1"}},
            "parent",
            "exactly one of page_id, block_id must be given",
        ),
        ("comments.create", {"discussion_id": "t1"}, "rich_text", "is missing"),
        (
            "comments.create",
            {"discussion_id": "t1", "rich_text": [{"text": {"content": "x" * 2001}}]},
            "rich_text.0.text.content",
            "at most 2000 characters",
        ),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    [fault] = refused.value.faults
    assert fault.field == field
    assert said in fault.message


@pytest.mark.parametrize(
    ("action", "body", "records", "meta"),
    [
        (
            "pages.list",
            b'{"object":"list","results":[{"id":"p1"}],"next_cursor":"c2","has_more":true,"type":"page_or_data_source"}',
            [{"id": "p1"}],
            {"next_cursor": "c2", "has_more": True},
        ),
        (
            "users.list",
            b'{"object":"list","results":[],"next_cursor":null,"has_more":false}',
            [],
            {"next_cursor": None, "has_more": False},
        ),
        ("blocks.create", b'{"object":"list","results":[{"id":"b2"}],"has_more":false}', [{"id": "b2"}], None),
        (
            "pages.get",
            b'{"id":"p1","properties":{},"request_id":"r1"}',
            {"id": "p1", "properties": {}, "request_id": "r1"},
            None,
        ),
    ],
)
def test_an_answer_is_read_into_records_and_meta(action, body, records, meta):
    answer = read(KIND.operation(*action.split(".")), UpstreamResponse(200, {}, body))

    assert answer.decoded() == records
    assert answer.meta == meta


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
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
    ],
)
def test_a_failure_is_read_for_what_it_means(status, code, error):
    body = f'{{"object":"error","status":{status},"code":"{code}","message":"No.","request_id":"r1"}}'.encode()

    with pytest.raises(GatewayError) as raised:
        read(KIND.operation("pages", "get"), UpstreamResponse(status, {"retry-after": "7"}, body))

    assert type(raised.value) is error
    said = raised.value.upstream
    assert (said.status, said.code, said.message, said.request_id) == (status, code, "No.", "r1")
    assert raised.value.retry_after == 7


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        ({"access_token": "bearing"}, "Bearer bearing"),
        (
            {"access_token": "bearing", "refresh_token": "renewing", "client_id": "app", "client_secret": "known"},
            "Bearer bearing",
        ),
        ({"token": "internal"}, "Bearer internal"),
    ],
)
async def test_a_request_carries_the_token_and_the_version(upstream, connect, credentials, header):
    upstream.answers({"object": "list", "results": [], "next_cursor": None, "has_more": False})

    await connect("workspace-notes", credentials).check()

    [asked] = upstream.received
    assert (asked.method, asked.url.raw_path_qs) == ("GET", "/v1/users?page_size=1")
    assert (asked.headers["Authorization"], asked.headers["Notion-Version"]) == (header, VERSION)


async def test_the_next_page_of_a_search_is_asked_for_in_the_body(upstream, connect):
    upstream.answers({"results": [{"id": "p1"}], "next_cursor": "c2", "has_more": True})
    upstream.answers({"results": [{"id": "p2"}], "next_cursor": None, "has_more": False})
    connector = connect("workspace-notes", {"token": "internal"})

    pages = [page.decoded() async for page in connector.pages("pages", "list", {"limit": 1})]

    assert pages == [[{"id": "p1"}], [{"id": "p2"}]]
    first, second = (asked.body for asked in upstream.received)
    assert first == {"filter": PAGES, "sort": NEWEST_FIRST, "page_size": 1}
    assert second == {**first, "start_cursor": "c2"}


async def test_the_next_page_of_blocks_is_asked_for_in_the_query(upstream, connect):
    upstream.answers({"results": [{"id": "b1"}], "next_cursor": "c2", "has_more": True})
    upstream.answers({"results": [{"id": "b2"}], "next_cursor": "c3", "has_more": False})
    connector = connect("workspace-notes", {"token": "internal"})

    pages = [page.decoded() async for page in connector.pages("blocks", "list", {"block_id": "b/1"})]

    assert pages == [[{"id": "b1"}], [{"id": "b2"}]]
    assert [asked.url.raw_path_qs for asked in upstream.received] == [
        "/v1/blocks/b%2F1/children?page_size=100",
        "/v1/blocks/b%2F1/children?start_cursor=c2&page_size=100",
    ]


@pytest.mark.usefixtures("skipped_pauses")
async def test_an_overloaded_application_is_asked_again_once_it_says_so(upstream, connect):
    upstream.answers({"object": "error", "code": "service_overload"}, 529, {"Retry-After": "1"})
    upstream.answers({"id": "c1"})
    connector = connect("workspace-notes", {"token": "internal"})

    answer = await connector.execute("comments", "create", {"parent": {"page_id": "p1"}, "rich_text": TEXT})

    assert answer.decoded() == {"id": "c1"}
    assert len(upstream.received) == 2
