"""Paging is recognized by params and by members and headers of the response; uncertain mappings are reported."""

import pytest

from tests.spec_import.documents import RECORD, answer, imported, listed, query, reasons

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


def test_a_cursor_that_the_response_does_not_have_is_expected_in_the_link_header_and_reported():
    made = imported({"/things": {"get": {"parameters": [query("cursor")], "responses": BARE}}})

    assert made.connector["paging"]["link"]["meta"]["next_url"] == "$link.next"
    assert "the next page is expected in a Link header that the document does not declare" in reasons(made)


def test_an_undeclared_param_of_the_next_page_gets_the_name_of_the_member_in_the_response():
    responses = listed(pages=within(next=within(starting_after=TEXT)))
    made = imported({"/things": {"get": {"operationId": "listThings", "responses": responses}}})

    assert "starting_after" in made.entities["things"]["actions"]["list"]["params"]
    assert any("is not declared" in reason for reason in reasons(made))


def test_a_next_page_that_no_param_requests_needs_a_person():
    made = imported({"/things": {"get": {"operationId": "listThings", "responses": listed(next_cursor=TEXT)}}})

    assert "paging" not in made.entities["things"]["actions"]["list"]
    assert "the response names a next page, but no param requests it" in reasons(made)


SHAPES = [
    ("get", "/things", BARE, ("records", "$")),
    ("get", "/things", listed(), ("records", "data")),
    ("get", "/things", answer(within(things=THINGS, total=NUMBER)), ("records", "things")),
    ("get", "/things", answer(within(data=within(items=THINGS))), ("records", "data.items")),
    ("get", "/things/{id}", answer(within(thing=RECORD)), ("record", "thing")),
    ("get", "/things/{id}", answer(within(data=RECORD, meta=within())), ("record", "data")),
    ("get", "/things/{id}", answer(within(id=TEXT, tags=THINGS)), ("record", "$")),
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
