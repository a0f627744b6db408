"""From one page to the params of the next, for each style, and where it ends."""

import msgspec
import pytest

from gateway.errors import UpstreamRejected
from gateway.upstream import responses
from gateway.upstream.pagination import next_params, page_after
from tests.kinds.small_kind import SMALL_SPEC, small_operation

PAGE = small_operation({"records": "things", "paging": "page"})
CURSOR = small_operation({"records": "things", "paging": "cursor"})
LINK = small_operation(
    {"records": "things", "paging": "link"},
    paging={"link": {"style": "cursor", "param": "nextUrl", "next": "links.next", "meta": {"links": "links"}}},
)
UNPAGED = small_operation({"records": "things"})
HREF = "https://api.example.com/v1/things?per_page=5&page="


@pytest.mark.parametrize(
    ("operation", "params", "meta", "following"),
    [
        (PAGE, {"q": "x"}, {"next_page": f"{HREF}2"}, {"q": "x", "page": 2}),
        (PAGE, {"page": 7}, {"next_page": f"{HREF}8"}, {"page": 8}),
        (PAGE, {"page": 7}, {"next_page": "/things?cursor=8"}, {"page": 8}),
        (PAGE, {}, {"next_page": "http://["}, {"page": 2}),
        (PAGE, {}, {"next_page": 2}, {"page": 2}),
        (PAGE, {"page": 99}, {"next_page": f"{HREF}100"}, {"page": 100}),
        (PAGE, {"page": 100}, {"next_page": None}, None),
        (PAGE, {"page": 2}, {"next_page": None}, None),
        (PAGE, {"page": 2}, {"next_page": f"{HREF}2"}, None),
        (PAGE, {}, None, None),
        (CURSOR, {"limit": 5}, {"next_cursor": "c", "has_more": True}, {"limit": 5, "after": "c"}),
        (CURSOR, {"after": "b"}, {"next_cursor": "c", "has_more": None}, {"after": "c"}),
        (CURSOR, {"after": "b"}, {"next_cursor": "c", "has_more": False}, None),
        (CURSOR, {"after": "b"}, {"next_cursor": None, "has_more": True}, None),
        (CURSOR, {"after": "b"}, {"next_cursor": "", "has_more": True}, None),
        (CURSOR, {"after": "b"}, {"next_cursor": "b", "has_more": True}, None),
        (LINK, {}, {"links": {"next": "/x?y=1"}}, {"nextUrl": "/x?y=1"}),
        (LINK, {"nextUrl": "/x"}, {"links": None}, None),
        (UNPAGED, {}, {"next_page": f"{HREF}2"}, None),
    ],
)
def test_the_next_page_follows_from_the_meta_of_the_last(operation, params, meta, following):
    assert next_params(operation, params, meta) == following


def test_a_list_that_the_application_stops_serving_does_not_look_complete():
    with pytest.raises(UpstreamRejected, match="100 pages at most, and there are more"):
        next_params(PAGE, {"page": 100}, {"next_page": f"{HREF}101"})


INCOMPLETE = {"meta": "request_status", "path": "request_status", "when": {"type": "incomplete"}}


@pytest.mark.parametrize(
    ("said", "meta"),
    [
        ({"type": "incomplete", "incomplete_reason": "query_result_limit_reached"}, True),
        ({"type": "complete"}, False),
        (None, False),
    ],
)
def test_a_list_that_says_it_is_incomplete_does_not_look_complete(said, meta):
    paging = {"cursor": {**SMALL_SPEC["paging"]["cursor"], "incomplete": INCOMPLETE}}
    operation = small_operation({"request": "GET /things", "records": "things", "paging": "cursor"}, paging=paging)
    body = msgspec.json.encode({"things": [], "has_more": False, "next_cursor": None, "request_status": said})

    page = responses.read(operation, responses.UpstreamResponse(200, {}, body))

    assert ("request_status" in page.meta) is meta
    assert page_after(operation, {}, page.meta) is None
    if meta:
        assert page.meta["request_status"] == said
        with pytest.raises(UpstreamRejected, match="says that there is more"):
            next_params(operation, {}, page.meta)
    else:
        assert next_params(operation, {}, page.meta) is None


def test_a_list_that_will_not_be_whole_is_read_to_its_end():
    paging = {"cursor": {**SMALL_SPEC["paging"]["cursor"], "incomplete": INCOMPLETE}}
    operation = small_operation({"request": "GET /things", "records": "things", "paging": "cursor"}, paging=paging)

    following = next_params(operation, {}, {"next_cursor": "c", "has_more": True, "request_status": {}})

    assert following == {"after": "c"}


def test_an_alternative_pages_in_its_own_style():
    operation = small_operation(
        {
            "request": "GET /things/{id}/parts",
            "records": "parts",
            "paging": "page",
            "params": {"id": {}},
            "alternatives": [{"without": "id", "request": "GET /parts", "paging": "cursor"}],
        },
        paging=SMALL_SPEC["paging"],
    )

    assert next_params(operation, {"id": 1}, {"next_page": f"{HREF}2"}) == {"id": 1, "page": 2}
    assert next_params(operation, {}, {"next_cursor": "c"}) == {"after": "c"}
