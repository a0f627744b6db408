"""Paging is recognized by params and by members and headers of the response; uncertain mappings are reported."""

import pytest

from tests.kinds.importing.documents import RECORD, answer, imported, listed, query, reasons

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
THINGS = {"type": "array", "items": RECORD}
BARE = answer(THINGS)
LINKED = answer(THINGS, headers={"Link": {"schema": TEXT}})


def within(**members):
    return {"type": "object", "properties": members}


def number(name):
    return query(name, type="integer")


STYLES = [
    ("Link header", [query("page"), number("per_page")], LINKED,
     {"style": "link", "param": "page", "size": "per_page", "next": "next_url", "meta": {"next_url": "$link.next"}}),
    ("cursor in the body", [query("cursor"), number("limit")], listed(next_cursor=TEXT),
     {"style": "cursor", "param": "cursor", "size": "limit", "next": "next_cursor",
      "meta": {"next_cursor": "@.next_cursor"}}),
    ("cursor within objects", [query("after"), number("limit")], listed(paging=within(next=within(after=TEXT))),
     {"style": "cursor", "param": "after", "size": "limit", "next": "next_cursor",
      "meta": {"next_cursor": "@.paging.next.after"}}),
    ("cursor and a flag", [query("pageToken")], listed(nextPageToken=TEXT, hasMore=FLAG),
     {"style": "cursor", "param": "pageToken", "next": "next_cursor", "has_more": "has_more",
      "meta": {"next_cursor": "@.nextPageToken", "has_more": "@.hasMore"}}),
    ("URL in the body", [query("PageToken"), number("PageSize")], listed(next_page_uri=TEXT),
     {"style": "link", "param": "PageToken", "size": "PageSize", "next": "next_url",
      "meta": {"next_url": "@.next_page_uri"}}),
    ("offset with a flag", [number("offset"), number("limit")], listed(more=FLAG),
     {"style": "offset", "param": "offset", "size": "limit", "has_more": "has_more", "meta": {"has_more": "@.more"}}),
    ("offset with a total", [number("startAt"), number("maxResults")], listed(total=NUMBER),
     {"style": "offset", "param": "startAt", "size": "maxResults", "total": "total", "meta": {"total": "@.total"}}),
    ("page until it is empty", [number("page"), number("per_page")], BARE,
     {"style": "page", "param": "page", "size": "per_page"}),
    ("last id", [query("starting_after"), number("limit")], listed(has_more=FLAG),
     {"style": "last_id", "param": "starting_after", "size": "limit", "has_more": "has_more",
      "meta": {"has_more": "@.has_more"}}),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "parameters", "responses", "style"), STYLES, ids=[row[0] for row in STYLES])
def test_a_style_of_paging_is_recognized(_name, parameters, responses, style):
    made = imported(
        {"/things": {"get": {"operationId": "listThings", "parameters": parameters, "responses": responses}}}
    )

    listing = made.entities["things"]["actions"]["list"]
    assert made.connector["paging"][listing["paging"]] == {**style, "order": "unknown"}
    assert not made.findings[1:]  # the first one is that the document has no security scheme


def test_an_undeclared_param_of_the_next_page_gets_the_name_of_the_member_in_the_response():
    responses = listed(pages=within(next=within(starting_after=TEXT)))
    made = imported({"/things": {"get": {"operationId": "listThings", "responses": responses}}})

    assert "starting_after" in made.entities["things"]["actions"]["list"]["params"]
    assert any("is not declared" in reason for reason in reasons(made))


NULLABLE = {"type": ["string", "null"]}
BOXED = {"oneOf": [{"type": "null"}, within(href={"type": "string", "nullable": True})]}
URL = {"type": "string", "format": "uri"}
NOTED = answer(THINGS, headers={"X-Next-Cursor": {}, "X-Total-Count": {}})
HAL = answer(within(_embedded=within(things=THINGS), _links=within(next=BOXED, self=within(href=TEXT))))
RECORDS_WITHOUT_ID = answer(
    within(data={"type": "array", "items": within(name=TEXT)}, has_more=FLAG, first_id=TEXT, last_id=TEXT)
)
DIALECTS = [
    # params, response, style; `size` and `order` aside
    ("HAL with a nullable next", [query("cursor")], HAL,
     {"style": "link", "param": "cursor", "next": "next_url", "meta": {"next_url": "_links.next.href"}}),
    ("after with has_more over ids", [query("after")], listed(has_more=FLAG, last_id=TEXT),
     {"style": "last_id", "param": "after", "has_more": "has_more", "meta": {"has_more": "@.has_more"}}),
    ("the last id of the response", [query("after")], RECORDS_WITHOUT_ID,
     {"style": "cursor", "param": "after", "next": "next_cursor", "has_more": "has_more",
      "meta": {"next_cursor": "@.last_id", "has_more": "@.has_more"}}),
    ("after over a bare list", [query("after")], BARE, {"style": "last_id", "param": "after"}),
    ("pages from 0 by default", [query("page", type="integer", default=0)], BARE,
     {"style": "page", "param": "page", "first": 0}),
    ("pages from 0 by words", [{**number("page"), "description": "Zero-based page number."}], BARE,
     {"style": "page", "param": "page", "first": 0}),
    ("pages from 1 although 0 is allowed", [query("page", type="integer", minimum=0, default=1)], BARE,
     {"style": "page", "param": "page"}),
    ("a page that is text with a number", [query("page", type="string", example="1")], BARE,
     {"style": "page", "param": "page"}),
    ("pages with a total of pages", [number("page")], listed(meta=within(total_pages=NUMBER)),
     {"style": "page", "param": "page", "total_pages": "total_pages", "meta": {"total_pages": "@.meta.total_pages"}}),
    ("pages with an end", [number("page")], listed(last=FLAG, totalElements=NUMBER),
     {"style": "page", "param": "page", "end": "end", "total": "total",
      "meta": {"end": "@.last", "total": "@.totalElements"}}),
    ("an offset that is a token", [query("offset")], listed(offset=TEXT),
     {"style": "cursor", "param": "offset", "next": "next_cursor", "meta": {"next_cursor": "@.offset"}}),
    ("a next offset", [number("offset")], listed(next_offset=NUMBER),
     {"style": "cursor", "param": "offset", "next": "next_cursor", "meta": {"next_cursor": "@.next_offset"}}),
    ("a next page that may be a token", [query("page")], listed(next_page=TEXT),
     {"style": "link", "param": "page", "next": "next_url", "meta": {"next_url": "@.next_page"}}),
    ("a next page that is a number", [number("page")], listed(next_page={"type": ["integer", "null"]}),
     {"style": "page", "param": "page", "next": "next_page", "meta": {"next_page": "@.next_page"}}),
    ("the param's own name with an end", [query("iterator")], listed(iterator=NULLABLE, done=FLAG),
     {"style": "cursor", "param": "iterator", "next": "next_cursor", "end": "end",
      "meta": {"next_cursor": "@.iterator", "end": "@.done"}}),
    ("next beside from", [query("from")], listed(next=TEXT),
     {"style": "link", "param": "from", "next": "next_url", "meta": {"next_url": "@.next"}}),
    ("a renamed param", [query("page[cursor]")], listed(links=within(next=URL)),
     {"style": "link", "param": "page_cursor", "next": "next_url", "meta": {"next_url": "@.links.next"}}),
    ("an object of paging params", [{**query("page", **within(after=TEXT, size=NUMBER)), "style": "deepObject"}],
     listed(meta=within(page=within(after=TEXT))),
     {"style": "cursor", "param": "page_after", "next": "next_cursor", "meta": {"next_cursor": "@.meta.page.after"}}),
    ("a cursor in a header", [query("cursor")], NOTED,
     {"style": "cursor", "param": "cursor", "next": "next_cursor", "meta": {"next_cursor": "$header.x-next-cursor"}}),
    ("a page token", [query("pageToken")], listed(nextPageToken=TEXT),
     {"style": "cursor", "param": "pageToken", "next": "next_cursor", "meta": {"next_cursor": "@.nextPageToken"}}),
    ("a URL with an offset", [number("offset")], listed(next={**URL, "example": "https://a.io/v1?offset=20"}),
     {"style": "link", "param": "offset", "next": "next_url", "meta": {"next_url": "@.next"}}),
    ("the total in a header", [number("offset"), number("limit")], answer(THINGS, headers={"X-Total-Count": {}}),
     {"style": "offset", "param": "offset", "total": "total", "meta": {"total": "$header.x-total-count"}}),
    ("an offset from 1", [query("startIndex", type="integer", default=1), number("count")], listed(totalResults=NUMBER),
     {"style": "offset", "param": "startIndex", "first": 1, "total": "total", "meta": {"total": "@.totalResults"}}),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "parameters", "responses", "style"), DIALECTS, ids=[row[0] for row in DIALECTS])
def test_a_dialect_of_paging_is_recognized(_name, parameters, responses, style):
    made = imported({"/things": {"get": {"parameters": parameters, "responses": responses}}})

    listing = made.entities["things"]["actions"]["list"]
    found = made.connector["paging"][listing["paging"]]
    assert {name: value for name, value in found.items() if name not in ("size", "order")} == style


def test_the_link_header_may_be_in_the_words_of_the_document():
    info = {"title": "Parcels API", "description": "Follow the `Link` header with rel=next."}
    made = imported({"/things": {"get": {"parameters": [number("page")], "responses": BARE}}}, info=info)

    assert made.connector["paging"]["link"]["meta"] == {"next_url": "$link.next"}


def test_paging_params_in_a_body_are_params():
    body = {"content": {"application/json": {"schema": within(
        query=TEXT, pagination=within(cursor=TEXT, limit=NUMBER))}}}  # fmt: skip
    search = {"operationId": "searchThings", "requestBody": body, "responses": listed(next_cursor=TEXT)}
    made = imported({"/things/search": {"post": search}})

    action = made.entities["things"]["actions"]["api_search"]
    assert action["params"]["pagination_cursor"]["as"] == "pagination.cursor"
    assert made.connector["paging"][action["paging"]]["param"] == "pagination_cursor"


UNKNOWN = [
    # what looks like paging, and the style
    ([query("cursor")], BARE, {"param": "cursor"}),
    ([number("limit")], BARE, {"param": "limit", "size": "limit"}),
    ([], listed(next_cursor=TEXT), {"next": "next_page", "meta": {"next_page": "@.next_cursor"}}),
    ([], listed(links=within(next=TEXT), has_more=FLAG),
     {"next": "next_page", "has_more": "has_more",
      "meta": {"next_page": "@.links.next", "has_more": "@.has_more"}}),
    ([], listed(total=NUMBER), {"next": "next_page", "total": "total",
                                "meta": {"next_page": "@.total", "total": "@.total"}}),
    ([query("page")], listed(links={"type": "array", "items": within(rel=TEXT, href=TEXT)}),
     {"param": "page", "next": "next_page", "meta": {"next_page": "@.links"}}),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "responses", "style"), UNKNOWN)
def test_a_list_that_looks_paged_and_has_no_known_style_says_so(parameters, responses, style):
    made = imported({"/things": {"get": {"parameters": parameters, "responses": responses}}})

    listing = made.entities["things"]["actions"]["list"]
    assert made.connector["paging"][listing["paging"]] == {"style": "unknown", **style, "order": "unknown"}
    assert any("its answers say that they may be incomplete" in reason for reason in reasons(made))


SHAPES = [
    ("get", "/things", BARE, ("records", "$")),
    ("get", "/things", listed(), ("records", "data")),
    ("get", "/things", answer(within(things=THINGS, total=NUMBER)), ("records", "things")),
    ("get", "/things", answer(within(data=within(items=THINGS))), ("records", "data.items")),
    ("get", "/things/{id}", answer(within(thing=RECORD)), ("record", "thing")),
    ("get", "/things/{id}", answer(within(data=RECORD, meta=within())), ("record", "data")),
    ("get", "/things/{id}", answer(within(id=TEXT, tags=THINGS)), ("record", "$")),
    ("get", "/things/{id}", answer(within(thing=RECORD, errors=THINGS, meta=within(), request_id=TEXT)),
     ("record", "thing")),
    ("get", "/things", answer(within(parcels=THINGS, warnings=THINGS, list_info=within(row_count=NUMBER))),
     ("records", "parcels")),
    ("get", "/things", answer(within(**dict.fromkeys("abcdefg", TEXT), entries_of_page=THINGS, page=NUMBER)),
     ("record", "$")),
    ("post", "/things/export", {"200": {"content": {"text/csv": {}}}}, ("download", {})),
    ("delete", "/things/{id}", {"204": {"description": ""}}, ("record", "$")),
    ("post", "/things", answer(within(things=THINGS)), ("record", "$")),
    ("get", "/things/{id}/file", {"200": {"content": {"application/pdf": {}}}}, ("download", {})),
    ("get", "/things/{id}/tarball", {"302": {"description": ""}}, ("download", {})),
    ("get", "/things", {"200": {"content": {"application/json": {"example": [{"id": 1}]}}}}, ("records", "$")),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "responses", "shape"), SHAPES)
def test_the_path_of_the_records_is_recognized(method, path, responses, shape):
    made = imported({path: {method: {"responses": responses}}})

    entity, action = made.names[f"{method.upper()} {path}"].split(".")
    assert made.entities[entity]["actions"][action][shape[0]] == shape[1]


def test_fields_of_records_have_their_types():
    record = within(id=NUMBER, name={"type": "string", "nullable": True}, tags={"type": "array", "items": TEXT}, any={})
    made = imported({"/things/{id}": {"get": {"responses": answer(record)}}})

    expected = {"id": "integer", "name": "string?", "tags": "array<string>", "any": "any"}
    assert made.entities["things"]["fields"] == expected


def test_fields_keep_formats_and_examples_of_texts_for_the_sandbox():
    record = within(id={"type": "string", "example": "r-1"}, mail={"type": "string", "format": "email"},
                    state={"type": "string", "nullable": True, "example": "open"})  # fmt: skip
    made = imported({"/things/{id}": {"get": {"responses": answer(record)}}})

    assert made.entities["things"]["fields"] == {
        "id": "string",
        "mail": {"type": "string", "format": "email"},
        "state": {"type": ["string", "null"], "examples": ["open"]},
    }
