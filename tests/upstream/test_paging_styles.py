"""Whole lists over the wire, for each paging style: which requests are sent, and where a list ends."""

from collections.abc import Mapping
from typing import Any

import pytest
from yarl import URL

from gateway.errors import UpstreamInvalidResponse, UpstreamRejected
from gateway.kinds.catalog import Kind
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.responses import linked
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.applications import Applications
from tests.kinds.small_kind import small_operation

ADDRESS = "https://api.example.com/v1/things"
#: a response: its body and headers
Said = tuple[Any, Mapping[str, str]]


def said(body: Any, **headers: str) -> Said:
    return body, {name.replace("_", "-"): value for name, value in headers.items()}


def things(*ids: int) -> list[dict[str, int]]:
    return [{"id": id_} for id_ in ids]


async def walked(
    paging: dict[str, Any],
    params: dict[str, Any],
    script: dict[str, Said],
    records: str = "$",
    found: list[Any] | None = None,
) -> list[Any]:
    """The ids of a list whose pages are answered as the script says, by the query of each request; also in `found`."""
    found = [] if found is None else found
    names = {paging["param"], *([paging["size"]] if "size" in paging else ()), *paging.get("last_fields", ()), *params}
    action = {"records": records, "paging": "style", "params": {name: {} for name in names}}
    kind = Kind(small_operation(action, paging={"style": {"order": "stable", **paging}}).spec)
    with Applications() as web:
        for query, (body, headers) in script.items():
            web.get(URL(f"{ADDRESS}?{query}" if query else ADDRESS, encoded=True), payload=body, headers=headers)
        async with Transport() as transport:
            connector = Upstreams(transport).connector(
                kind, {}, StaticAuthorizer({}), RateScope(id="small:c-1", kind="small")
            )
            async for page in connector.pages("things", "act", params):
                found += [record["id"] for record in page.decoded()]
    return found


LINKED = {"style": "link", "param": "page", "next": "next_url", "meta": {"next_url": "$link.next"}}
CURSOR_LINK = {
    **LINKED,
    "param": "cursor",
    "has_more": "more",
    "meta": {**LINKED["meta"], "more": "$link.next.results"},
}
LISTS = {
    "a Link header": (
        LINKED,
        {},
        {
            "": said(things(1), Link=f'<{ADDRESS}?page=1>; rel="prev", <{ADDRESS}?page=2>; rel="next"'),
            "page=2": said(things(2), Link=f'<{ADDRESS}?page=1>; rel="first"'),
        },
    ),
    "a Link header that always names a next page": (
        CURSOR_LINK,
        {},
        {
            "": said(things(1), Link=f'<{ADDRESS}?&cursor=0:100:0>; rel="next"; results="true"; cursor="0:100:0"'),
            "cursor=0%3A100%3A0": said(things(2), Link=f'<{ADDRESS}?&cursor=9>; rel="next"; results="false"'),
        },
    ),
    "a Link header after which other params may not be sent": (
        {**LINKED, "param": "page_info", "size": "limit", "repeat_params": ["limit"]},
        {"limit": 1, "status": "any"},
        {
            "limit=1&status=any": said(things(1), Link=f'<{ADDRESS}?limit=1&page_info=abc>; rel="next"'),
            "limit=1&page_info=abc": said(things(2)),
        },
    ),
    "a cursor in a header": (
        {"style": "cursor", "param": "page", "next": "next_page", "meta": {"next_page": "$header.x-next-page"}},
        {},
        {"": said(things(1), X_Next_Page="2"), "page=2": said(things(2), X_Next_Page="")},
    ),
    "page numbers until a short page, as documented": (
        {"style": "page", "param": "page", "size": "per_page", "short_page": "https://example.com/paging"},
        {"per_page": 2},
        {"per_page=2": said(things(1, 2)), "per_page=2&page=2": said(things(3))},
    ),
    "page numbers until an empty page, although pages are short": (
        {"style": "page", "param": "page", "size": "per_page"},
        {"per_page": 1000},
        {
            "per_page=1000": said(things(1, 2)),
            "per_page=1000&page=2": said(things(3)),
            "per_page=1000&page=3": said([]),
        },
    ),
    "page numbers from zero until an empty page": (
        {"style": "page", "param": "page", "first": 0},
        {},
        {"": said(things(1, 2)), "page=1": said(things(3)), "page=2": said([])},
    ),
    "page numbers while the application says that there is more": (
        {"style": "page", "param": "page", "size": "size", "has_more": "more", "meta": {"more": "$header.x-more"}},
        {"size": 2},
        {"size=2": said(things(1), X_More="true"), "page=2&size=2": said(things(2), X_More="false")},
    ),
    "the id of the last record": (
        {"style": "last_id", "param": "since", "size": "limit"},
        {"limit": 2},
        {"limit=2": said(things(4, 7)), "limit=2&since=7": said([])},
    ),
    "the id of the last record and another member of it": (
        {"style": "last_id", "param": "since", "last_fields": {"start": "id"}},
        {},
        {"": said(things(4, 7)), "since=7&start=7": said([])},
    ),
}
IN_A_BODY = {
    "an offset until a page shorter than the size that the response states": (
        {"style": "offset", "param": "offset", "size": "limit", "stated_size": "size", "meta": {"size": "limit"}},
        {"limit": 9},
        {
            "limit=9": said({"data": things(1, 2), "limit": 2}),
            "limit=9&offset=2": said({"data": things(3), "limit": 2}),
        },
    ),
    "an offset until the total": (
        {"style": "offset", "param": "startAt", "total": "total", "meta": {"total": "total"}},
        {},
        {
            "": said({"data": things(1, 2), "total": 4}),
            "startAt=2": said({"data": things(3, 4), "total": 4}),
        },
    ),
    "an offset while there is more": (
        {"style": "offset", "param": "offset", "has_more": "more", "meta": {"more": "more"}},
        {},
        {"": said({"data": things(1), "more": True}), "offset=1": said({"data": things(2), "more": False})},
    ),
    "the last id while there is more": (
        {"style": "last_id", "param": "starting_after", "has_more": "has_more", "meta": {"has_more": "has_more"}},
        {},
        {
            "": said({"data": things(5), "has_more": True}),
            "starting_after=5": said({"data": things(6), "has_more": False}),
        },
    ),
    "a URL in the body": (
        {"style": "link", "param": "after", "next": "next", "url_param": "page[after]", "meta": {"next": "links.next"}},
        {},
        {
            "": said({"data": things(1), "links": {"next": "/v1/things?page%5Bafter%5D=c%2Fd&limit=1"}}),
            "after=c%2Fd": said({"data": things(2), "links": {"next": None}}),
        },
    ),
}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_is_read_whole(name):
    paging, params, script = LISTS[name]

    found = await walked(paging, params, script)

    assert found == [each["id"] for body, _ in script.values() for each in body]


@pytest.mark.parametrize("name", IN_A_BODY)
async def test_a_list_within_an_object_is_read_whole(name):
    paging, params, script = IN_A_BODY[name]

    found = await walked(paging, params, script, records="data")

    assert found == [each["id"] for body, _ in script.values() for each in body["data"]]


async def test_page_info_beside_the_records_turns_the_page():
    info = {"end_cursor": "@.pageInfo.endCursor", "has_next_page": "@.pageInfo.hasNextPage"}
    paging = {"style": "cursor", "param": "after", "next": "end_cursor", "has_more": "has_next_page", "meta": info}

    def page(*ids: int, **page_info: Any) -> Said:
        return said({"data": {"issues": {"nodes": things(*ids), "pageInfo": page_info}}})

    script = {
        "": page(1, endCursor="c", hasNextPage=True),
        "after=c": page(2, endCursor="d", hasNextPage=False),
    }
    assert await walked(paging, {}, script, records="data.issues.nodes") == [1, 2]


@pytest.mark.parametrize(
    ("paging", "script", "said_of_it"),
    [
        (LINKED, {"": said(things(1), Link=f'<{ADDRESS}?after=2>; rel="next"')}, "the next page has no page"),
        (
            CURSOR_LINK,
            {
                "": said(things(1), Link=f'<{ADDRESS}?cursor=a>; rel="next"; results="true"'),
                "cursor=a": said(things(2), Link=f'<{ADDRESS}?cursor=a>; rel="next"; results="true"'),
            },
            "names this page as its own next page",
        ),
    ],
)
async def test_an_end_that_is_not_proved_is_an_error_after_the_records(paging, script, said_of_it):
    found = []

    with pytest.raises(UpstreamRejected, match=said_of_it):
        await walked(paging, {}, script, found=found)

    assert found == [each["id"] for body, _ in script.values() for each in body]


async def test_a_circle_of_pages_ends():
    script = {
        "": said(things(1), Link=f'<{ADDRESS}?page=a>; rel="next"'),
        "page=a": said(things(2), Link=f'<{ADDRESS}?page=b>; rel="next"'),
        "page=b": said(things(3), Link=f'<{ADDRESS}?page=a>; rel="next"'),
    }

    with pytest.raises(UpstreamInvalidResponse, match="as the next that it returned before"):
        await walked(LINKED, {}, script)


@pytest.mark.parametrize(
    ("header", "url"),
    [
        ('<https://a/b?page=2>; rel="next"', "https://a/b?page=2"),
        ("<https://a/b,c;d>; rel=next; title=x", "https://a/b,c;d"),
        ('<https://a/1>; rel="prev",<https://a/2>;rel="last next"', "https://a/2"),
        ('<https://a/1>; title="a, <b>; rel=next"; rel="prev"', None),
        ("", None),
        ("<" * 2000, None),
    ],
)
def test_links_are_read_as_rfc_8288_writes_them(header, url):
    assert linked(header, "next").get("") == url
