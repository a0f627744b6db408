"""What follows a page, in each style, with each proof and each rude response: the next page, the end, or neither."""

from typing import Any

import msgspec
import pytest

from gateway.kinds.catalog import Operation
from gateway.upstream import responses
from gateway.upstream.pagination import next_params, page_of, part
from gateway.upstream.responses import OperationResult, UpstreamResponse
from tests.kinds.small_kind import SMALL_SPEC, small_operation

#: the page is the last, and the response proves it
END = None
HREF = "https://api.example.com/v1/things?per_page=5&page="


def things(count: int) -> list[dict[str, int]]:
    return [{"id": number} for number in range(1, count + 1)]


def list_in(style: dict[str, Any]) -> Operation:
    return small_operation({"records": "data", "paging": "style"}, paging={"style": style})


def answered(
    operation: Operation, params: dict[str, Any], document: Any, headers: dict[str, str] | None = None
) -> OperationResult:
    """The page that a response with this body and these headers is."""
    body = msgspec.json.encode(document)
    answer = responses.read(operation, UpstreamResponse(200, headers or {}, body))
    return page_of(operation, params, answer, {})


def assert_followed(page: OperationResult, expected: dict[str, Any] | str | None) -> None:
    """`expected`: the next page's params, the proved end, or words of the reason why neither is known."""
    if isinstance(expected, str):
        assert page.incomplete is not None
        assert expected in page.incomplete
        assert page.next is None
        assert not page.is_proved_end
    else:
        assert page.incomplete is None
        assert page.next == expected
        assert page.is_proved_end is (expected is END)


CURSOR = {"style": "cursor", "param": "after", "next": "next", "meta": {"next": "next"}}
MORE_CURSOR = {**CURSOR, "has_more": "more", "meta": {"next": "next", "more": "more"}}
END_CURSOR = {**CURSOR, "end": "done", "meta": {"next": "next", "done": "done"}}
LINK = {"style": "link", "param": "after", "next": "next", "meta": {"next": "next"}}
REL_LINK = {**LINK, "meta": {"next": "links.rel=next.href"}}
PAGE_LINK = {"style": "page", "param": "page", "next": "next", "meta": {"next": "next"}}
PAGE = {"style": "page", "param": "page", "size": "size"}
OFFSET = {"style": "offset", "param": "skip", "size": "size"}
LAST_ID = {"style": "last_id", "param": "since", "size": "size"}
LAST_OF_TIME = {**LAST_ID, "last_fields": {"at": "id"}}
MORE = {"has_more": "more", "meta": {"more": "more"}}
DONE = {"end": "done", "meta": {"done": "done"}}
TOTAL = {"total": "total", "meta": {"total": "total"}}
PAGES = {"total_pages": "pages", "meta": {"pages": "pages"}}
STATED = {"stated_size": "limit", "meta": {"limit": "limit"}}
SHORT = {"short_page": "https://example.com/docs"}
UNKNOWN = {"style": "unknown", "param": "page", "size": "size"}
UNKNOWN_NEXT = {**UNKNOWN, "next": "bookmark", "meta": {"bookmark": "bookmark"}}

#: (style, params of the page, members of the response beside the records, records) → what follows
NAMED = [
    # a value that is no value
    (CURSOR, {}, {"next": "c"}, 1, {"after": "c"}),
    (CURSOR, {"q": "x", "after": "b"}, {"next": "c"}, 0, {"q": "x", "after": "c"}),
    (CURSOR, {}, {"next": 40}, 1, {"after": 40}),
    *((CURSOR, {}, {"next": nothing}, 1, END) for nothing in (None, "", False, 0, {}, [])),
    (CURSOR, {}, {}, 1, END),
    # flags beside it
    (MORE_CURSOR, {}, {"next": "c", "more": True}, 1, {"after": "c"}),
    (MORE_CURSOR, {}, {"next": "c", "more": None}, 1, {"after": "c"}),
    (MORE_CURSOR, {}, {"next": "c", "more": False}, 1, END),
    (MORE_CURSOR, {}, {"next": "c", "more": "false"}, 1, END),
    (MORE_CURSOR, {}, {"next": None, "more": True}, 1, "says that there are more records, but names no next page"),
    (MORE_CURSOR, {}, {"next": "", "more": "true"}, 1, "names no next page"),
    (MORE_CURSOR, {}, {}, 1, END),
    (END_CURSOR, {}, {"next": "c", "done": False}, 1, {"after": "c"}),
    (END_CURSOR, {"after": "c"}, {"next": "c", "done": True}, 1, END),
    (END_CURSOR, {}, {"done": False}, 1, "names no next page"),
    # rude values
    (CURSOR, {"after": "b"}, {"next": "b"}, 1, "names this page as its own next page"),
    (CURSOR, {"after": 7}, {"next": "7"}, 1, "names this page as its own next page"),
    (CURSOR, {}, {"next": {"href": "/x"}}, 1, "is no value that names a next page"),
    (CURSOR, {}, {"next": ["b"]}, 1, "is no value that names a next page"),
    # links
    (LINK, {}, {"next": "https://api.example.com/v1/things?after=c%2Fd"}, 1, {"after": "c/d"}),
    (LINK, {}, {"next": "/v1/things?limit=1&after=c"}, 1, {"after": "c"}),
    (LINK, {}, {"next": "?after=c"}, 1, {"after": "c"}),
    (LINK, {}, {"next": "dG9rZW4="}, 1, {"after": "dG9rZW4="}),
    (LINK, {}, {"next": None}, 1, END),
    (LINK, {}, {"next": "https://api.example.com/v1/things?before=c"}, 1, "the URL of the next page has no after"),
    (LINK, {}, {"next": "http://["}, 1, "the URL of the next page has no after"),
    (LINK, {"after": "c"}, {"next": "?after=c"}, 1, "names this page as its own next page"),
    ({**LINK, "url_param": "page[after]"}, {}, {"next": "?page%5Bafter%5D=c"}, 1, {"after": "c"}),
    # a link among others
    (
        REL_LINK,
        {},
        {"links": [{"rel": "self", "href": "?after=b"}, {"rel": "next", "href": "?after=c"}]},
        1,
        {"after": "c"},
    ),
    *(
        (REL_LINK, {}, {"links": links}, 1, END)
        for links in ([{"rel": "self", "href": "?after=b"}], [], [None, 7], None)
    ),
    # page numbers
    (PAGE_LINK, {"q": "x"}, {"next": f"{HREF}2"}, 1, {"q": "x", "page": 2}),
    (PAGE_LINK, {"page": 7}, {"next": "/things?cursor=8"}, 1, {"page": 8}),
    (PAGE_LINK, {}, {"next": "http://["}, 1, {"page": 2}),
    (PAGE_LINK, {}, {"next": 2}, 1, {"page": 2}),
    (PAGE_LINK, {"page": 2}, {"next": None}, 1, END),
    (PAGE_LINK, {"page": 2}, {"next": f"{HREF}2"}, 1, "names this page as its own next page"),
    (PAGE_LINK, {}, {"next": f"{HREF}1"}, 1, "names this page as its own next page"),
    (PAGE_LINK, {"page": 3}, {"next": 2}, 1, "names this page as its own next page"),
    ({**PAGE_LINK, "url_param": "page[number]"}, {}, {"next": "?page[number]=5"}, 1, {"page": 5}),
]
COUNTED = [
    # nothing proves an end but a page without records
    *((style, {}, {}, 0, END) for style in (PAGE, OFFSET, LAST_ID)),
    (PAGE, {"size": 5}, {}, 3, {"size": 5, "page": 2}),
    (PAGE, {"page": "4"}, {}, 3, {"page": 5}),
    ({**PAGE, "first": 0}, {}, {}, 3, {"page": 1}),
    (OFFSET, {"size": 5}, {}, 3, {"size": 5, "skip": 3}),
    (OFFSET, {"skip": 3}, {}, 3, {"skip": 6}),
    ({**OFFSET, "first": 1}, {}, {}, 3, {"skip": 4}),
    (LAST_ID, {"size": 5}, {}, 3, {"size": 5, "since": 3}),
    # further params from the last record
    (LAST_OF_TIME, {"since": 1, "at": 1}, {}, 3, {"since": 3, "at": 3}),
    ({**LAST_ID, "last_fields": {"at": "made.at"}}, {}, {}, 3, "the last record has no made.at"),
    # short pages, where the vendor documents them
    *(({**style, **SHORT}, {"size": 5}, {}, 3, END) for style in (PAGE, OFFSET, LAST_ID)),
    ({**PAGE, **SHORT}, {"size": 3}, {}, 3, {"size": 3, "page": 2}),
    ({**PAGE, **SHORT}, {}, {}, 3, {"page": 2}),
    # the size that the response states
    *(({**style, **STATED}, {"size": 9}, {"limit": 5}, 3, END) for style in (PAGE, OFFSET, LAST_ID)),
    ({**OFFSET, **STATED}, {"size": 9}, {"limit": 3}, 3, {"size": 9, "skip": 3}),
    ({**OFFSET, **STATED}, {"size": 9}, {}, 3, {"size": 9, "skip": 3}),
    ({**OFFSET, **STATED}, {"size": 9}, {"limit": "many"}, 3, {"size": 9, "skip": 3}),
    # flags
    *(({**style, **MORE}, {}, {"more": False}, 3, END) for style in (PAGE, OFFSET, LAST_ID)),
    *(({**style, **DONE}, {}, {"done": True}, 3, END) for style in (PAGE, OFFSET, LAST_ID)),
    ({**PAGE, **MORE, **SHORT}, {"size": 5}, {"more": True}, 3, {"size": 5, "page": 2}),
    ({**OFFSET, **DONE}, {}, {"done": False}, 3, {"skip": 3}),
    ({**PAGE, **MORE}, {}, {"more": True}, 0, {"page": 2}),
    ({**OFFSET, **MORE}, {}, {"more": True}, 0, "no further records, but says that there are more"),
    ({**LAST_ID, **MORE}, {"since": 3}, {"more": True}, 0, "no further records, but says that there are more"),
    # totals
    ({**OFFSET, **TOTAL}, {}, {"total": 3}, 3, END),
    ({**OFFSET, **TOTAL}, {"skip": 2}, {"total": 5}, 3, END),
    ({**OFFSET, **TOTAL}, {"size": 9}, {"total": 4}, 3, {"size": 9, "skip": 3}),
    ({**OFFSET, **TOTAL}, {"skip": 3}, {"total": 9}, 0, "says that there are more of 9"),
    *(({**OFFSET, **TOTAL}, {}, {"total": total}, 3, {"skip": 3}) for total in ("many", [3], {}, None, True)),
    ({**OFFSET, **TOTAL}, {}, {"total": "3"}, 3, END),
    ({**PAGE, **TOTAL}, {}, {"total": 3}, 3, END),
    ({**PAGE, **TOTAL}, {}, {"total": 4}, 3, {"page": 2}),
    ({**PAGE, **TOTAL}, {"page": 2, "size": 100}, {"total": 50}, 3, {"page": 3, "size": 100}),
    ({**PAGE, **TOTAL}, {}, {"total": 4}, 0, "says that there are more of 4"),
    ({**PAGE, "total": "total", "stated_size": "limit", "meta": {"total": "total", "limit": "limit"}}, {"page": 2},
     {"total": 5, "limit": 3}, 2, END),
    ({**PAGE, **PAGES}, {}, {"pages": 1}, 3, END),
    ({**PAGE, **PAGES}, {"page": 2}, {"pages": 3}, 1, {"page": 3}),
    ({**PAGE, **PAGES}, {"page": 2}, {"pages": 3}, 0, {"page": 3}),
    ({**PAGE, **PAGES, "first": 0}, {"page": 2}, {"pages": 3}, 3, END),
    ({**PAGE, **PAGES}, {}, {"pages": "some"}, 3, {"page": 2}),
    # a place that cannot be computed
    ({**LAST_ID, "id_field": "key.id"}, {}, {}, 3, "the last record has no key.id"),
    (LAST_ID, {"since": 3}, {}, 3, "names this page as its own next page"),
    (OFFSET, {"skip": "x"}, {}, 3, "skip is not a number"),
]  # fmt: skip
UNSERVED = [
    ({**PAGE, "max_pages": 2}, {}, {}, 3, {"page": 2}),
    ({**PAGE, "max_pages": 2}, {"page": 2}, {}, 3, "serves 2 pages at most, and there are more; ask for less"),
    ({**PAGE, "max_pages": 2, "first": 0}, {"page": 1}, {}, 3, "serves 2 pages at most"),
    ({**PAGE_LINK, "max_pages": 2, "beyond": "use dates"}, {"page": 2}, {"next": 3}, 3, "there are more; use dates"),
    ({**LINK, "max_pages": 2}, {}, {"next": "?after=3"}, 3, "serves 2 pages at most"),
    ({**OFFSET, "max_records": 6}, {}, {}, 3, {"skip": 3}),
    ({**OFFSET, "max_records": 6}, {"skip": 3}, {}, 3, "lists 6 records at most, and there are more"),
    ({**PAGE, "max_records": 6}, {"page": 2, "size": 3}, {}, 3, "lists 6 records at most"),
    ({**CURSOR, "max_records": 6}, {}, {"next": "6"}, 3, "lists 6 records at most"),
    ({**CURSOR, "max_records": 6}, {}, {"next": "token"}, 3, {"after": "token"}),
    ({**OFFSET, **TOTAL, "max_records": 6}, {"skip": 3}, {"total": 6}, 3, END),
    # the last page that the application returns looks like the end
    (
        {**CURSOR, "total": "total", "max_records": 6, "meta": {"next": "next", "total": "total"}},
        {},
        {"total": 9},
        3,
        "lists 6 records at most",
    ),
    (
        {**CURSOR, "total": "total", "max_records": 6, "meta": {"next": "next", "total": "total"}},
        {},
        {"total": 6},
        3,
        END,
    ),
]
NOT_KNOWN = [
    (UNKNOWN, {}, {}, 0, END),
    (UNKNOWN, {"page": 2}, {}, 0, "does not know how this list is paged"),
    (UNKNOWN, {"size": 5}, {}, 3, "does not know how this list is paged"),
    ({**UNKNOWN, **MORE}, {}, {"more": False}, 3, END),
    ({**UNKNOWN, **TOTAL}, {}, {"total": 3}, 3, END),
    ({**UNKNOWN, **TOTAL}, {}, {"total": 4}, 3, "does not know how this list is paged"),
    (UNKNOWN_NEXT, {}, {"bookmark": "b"}, 3, "bookmark names a next page, which the spec cannot request"),
    (UNKNOWN_NEXT, {"size": 5}, {"bookmark": None}, 3, END),
    (UNKNOWN_NEXT, {"size": 3}, {"bookmark": None}, 3, "does not know how this list is paged"),
    (UNKNOWN_NEXT, {}, {}, 3, "does not know how this list is paged"),
    ({"style": "unknown", "size": "size", "max_records": 5}, {}, {}, 4, END),
    (
        {"style": "unknown", "size": "size", "max_records": 5},
        {},
        {},
        5,
        "lists 5 records at most, and there may be more",
    ),
    ({"style": "unknown", "size": "size", "max_records": 5}, {"size": 3}, {}, 3, "lists 3 records at most"),
    ({"style": "unknown", "max_records": 5, **TOTAL}, {}, {"total": 5}, 5, END),
    ({"style": "unknown", "max_records": 5, **TOTAL}, {}, {"total": 9}, 4, "lists 5 records at most"),
    ({"style": "unknown", "next": "bookmark", "meta": {"bookmark": "bookmark"}}, {}, {}, 0, END),
]


@pytest.mark.parametrize(("style", "params", "beside", "count", "expected"), [*NAMED, *COUNTED, *UNSERVED, *NOT_KNOWN])
def test_a_page_leads_on_or_is_the_proved_end_or_says_why_not(style, params, beside, count, expected):
    page = answered(list_in(style), params, {"data": things(count), **beside})

    assert_followed(page, expected)
    assert len(page.records) == count


@pytest.mark.parametrize("style", [CURSOR, LINK, PAGE, OFFSET, LAST_ID, UNKNOWN])
@pytest.mark.parametrize("flag", [None, "complete", "incomplete"])
def test_a_list_that_says_it_is_incomplete_does_not_look_complete(style, flag):
    how = {"meta": "status", "path": "status", "when": {"type": "incomplete"}}
    operation = list_in({**style, "incomplete": how})

    page = answered(operation, {}, {"data": [], "next": "?after=c", "status": {"type": flag}})

    assert ("says that it does not list everything" in (page.incomplete or "")) is (flag == "incomplete")
    assert ("status" in (page.meta or {})) is (flag == "incomplete")
    assert (page.next is not None) is (style in (CURSOR, LINK))  # such a list is read to its end all the same


@pytest.mark.parametrize(("said", "is_whole"), [(True, False), ("true", False), (False, True), (None, True)])
def test_a_flag_says_that_a_list_is_incomplete(said, is_whole):
    how = {"meta": "incompleteSearch", "path": "incompleteSearch"}
    meta = {**CURSOR["meta"], "incompleteSearch": "incompleteSearch"}
    operation = list_in({**CURSOR, "meta": meta, "incomplete": how})

    page = answered(operation, {}, {"data": [], "incompleteSearch": said})

    assert page.is_proved_end is is_whole
    assert page.meta["incompleteSearch"] == said


@pytest.mark.parametrize(
    ("items", "unwrap", "records", "named"),
    [
        ([None, {"id": 2}], "$", [{"id": 2}], "null for 1 of 2 records of the page (number 1)"),
        ([{"id": 1, "a": None, "b": [None]}], "$", [{"id": 1, "a": None, "b": [None]}], None),
        ([None, None], "$", [], "null for 2 of 2 records of the page (number 1, 2)"),
        ([None] * 12, "$", [], "(number 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"),
        ([{"node": {"id": 1}}, {"node": None}, None, {}], "node", [{"id": 1}], "(number 2, 3, 4)"),
        ([{"node": {"id": 1}}], "node", [{"id": 1}], None),
    ],
)
def test_null_items_are_left_out_and_named(items, unwrap, records, named):
    action = {"records": "data", "paging": "style", "unwrap": unwrap}
    operation = small_operation(action, paging={"style": {**OFFSET, **TOTAL}})

    page = answered(operation, {}, {"data": items, "total": 20})

    assert page.decoded() == records
    assert page.next == {"skip": len(items)}  # the application counts them
    assert (page.incomplete is None) if named is None else (named in page.incomplete)


def test_null_items_of_a_list_without_pages_are_named():
    operation = small_operation({"records": "data"})

    page = answered(operation, {}, {"data": [1, None]})

    assert (page.decoded(), page.next, page.is_proved_end) == ([1], None, False)
    assert "number 2" in page.incomplete


@pytest.mark.parametrize("header", ['<https://a/b?page=2>; rel="next"', ""])
def test_a_link_header_names_the_next_page(header):
    operation = list_in({**PAGE_LINK, "meta": {"next": "$link.next"}})

    page = answered(operation, {}, {"data": things(1)}, {"link": header})

    assert_followed(page, {"page": 2} if header else END)


def test_the_params_of_the_next_page_have_the_values_that_answers_leave_out():
    operation = list_in({**CURSOR, "size": "size", "repeat_params": ["size"]})
    answer = responses.read(operation, UpstreamResponse(200, {}, b'{"data": [], "next": "c"}'))

    page = page_of(operation, {"size": 50, "q": "x"}, answer, {"size": 50})

    assert page.next == {"after": "c"}
    assert next_params(operation, {"size": 50, "q": "x"}, page) == {"size": 50, "after": "c"}


CARRIED = {
    **PAGE,
    "first": 0,
    "total_pages": "parts",
    "repeat_params": [],
    "carried": {"handle": "handle", "parts": "parts"},
    "meta": {"handle": "id", "parts": "parts.#"},
}


def test_requests_for_further_pages_carry_what_only_the_first_response_says():
    operation = list_in(CARRIED)

    first = answered(operation, {"q": "x"}, {"data": things(1), "id": "h", "parts": [{}, {}, {}]})
    second = answered(operation, first.next, {"data": things(1)})
    last = answered(operation, second.next, {"data": things(1)})

    assert first.next == {"handle": "h", "parts": 3, "page": 1}
    assert second.next == {"handle": "h", "parts": 3, "page": 2}
    assert second.meta == {"handle": "h", "parts": 3, "next": 2}
    assert last.is_proved_end


def test_an_empty_page_before_the_last_is_no_end():
    page = answered(list_in(CARRIED), {"page": 1, "handle": "h", "parts": 3}, {"data": []})

    assert page.next == {"handle": "h", "parts": 3, "page": 2}


@pytest.mark.parametrize(("number", "is_whole"), [(9, True), (10, False)])
def test_a_number_may_say_that_a_list_is_cut(number, is_whole):
    style = {**CURSOR, "incomplete": {"meta": "rows", "path": "rows", "when": 10}}

    page = answered(list_in(style), {}, {"data": things(1), "rows": number})

    assert page.is_proved_end is is_whole


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

    by_page = answered(operation.instead({"id": 1}), {"id": 1}, {"parts": [], "next_page": f"{HREF}2"})
    by_cursor = answered(operation.instead({}), {}, {"parts": [], "paging": {"next": "c"}})

    assert next_params(operation, {"id": 1}, by_page) == {"id": 1, "page": 2}
    assert next_params(operation, {}, by_cursor) == {"after": "c"}


@pytest.mark.parametrize(
    ("records", "redacted", "is_whole", "overlaps"),
    [
        (things(2), (), True, True),
        (things(2), ("email",), False, True),
        # different records without their ids may be equal
        ([{"name": "a"}, {"name": "b"}], (), True, True),
        ([{"name": "a"}, {"name": "b"}], (), False, False),
        ([{"name": "a"}, {"name": "b"}], ("id",), True, False),
    ],
)
def test_pages_overlap_only_if_records_can_be_told_apart(records, redacted, is_whole, overlaps):
    operation = small_operation({"records": "data", "paging": "style", "params": {"page": {}}}, paging={"style": PAGE})
    page = OperationResult(
        result=msgspec.Raw(msgspec.json.encode(records)), is_page=True, next={"page": 2}, redacted=redacted
    )

    found = part(operation, {}, page, None, is_whole=is_whole)

    assert (found.place is not None) is overlaps
