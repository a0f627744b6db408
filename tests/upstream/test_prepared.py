"""A call prepared once: what its page says of the next."""

import pytest

from gateway.upstream.prepared import prepare
from gateway.upstream.responses import UpstreamResponse
from tests.harness.catalog import shipped_catalog
from tests.kinds.small_kind import small_operation

SIZED = {"per_page": {"type": "integer", "default": 25}, "page": {"type": "integer"}, "q": {}}
PAGED = small_operation({"records": "things", "paging": "page", "params": SIZED})
CURSORED = small_operation({"records": "things", "paging": "cursor", "params": {"after": {}, "limit": {}}})
PLAIN = small_operation({"records": "things"})
MORE, END = b'{"things": [], "next_page": "https://x/things?page=3"}', b'{"things": [], "next_page": null}'


@pytest.mark.parametrize(
    ("operation", "params", "body", "following"),
    [
        (PAGED, {"page": 2, "q": "x"}, MORE, {"q": "x", "page": 3}),
        (PAGED, {"limit": 2}, MORE, {"per_page": 2, "page": 3}),
        (PAGED, {"limit": "25"}, MORE, {"page": 3}),
        (PAGED, {}, END, None),
        (PAGED, {"page": 100}, b'{"things": [], "next_page": "https://x/things?page=101"}', None),
        (CURSORED, {}, b'{"things": [], "paging": {"next": "c"}, "more": true}', {"after": "c"}),
        (CURSORED, {"after": "b"}, b'{"things": [], "paging": {"next": "c"}, "more": false}', None),
        (PLAIN, {}, b'{"things": []}', None),
    ],
)
def test_a_page_names_the_params_of_the_next(operation, params, body, following):
    answer = prepare(operation, params).answer(UpstreamResponse(200, {}, body))

    assert answer.is_page
    assert answer.next == following


def test_a_search_that_answers_with_an_object_ends_with_it():
    search = shipped_catalog().kind("crm-query").operation("accounts", "api_search")

    answer = prepare(search, {"q": "FIND {Acme} RETURNING Account(Id)"}).answer(
        UpstreamResponse(200, {}, b'{"searchRecords": []}')
    )

    assert (answer.decoded(), answer.is_page, answer.next) == ({"searchRecords": []}, True, None)


def test_a_record_is_no_page():
    answer = prepare(small_operation(), {}).answer(UpstreamResponse(200, {}, b"{}"))

    assert not answer.is_page


def test_a_list_that_the_application_does_not_give_whole_says_why():
    body = b'{"things": [], "next_page": "https://x/things?page=101"}'

    whole = prepare(PAGED, {"page": 99}).answer(UpstreamResponse(200, {}, body.replace(b"101", b"100")))
    cut = prepare(PAGED, {"page": 100}).answer(UpstreamResponse(200, {}, body))

    assert whole.incomplete is None
    assert "serves 100 pages at most" in cut.incomplete
