import pytest

from gateway.client.paging import ActionPaging, AlternativePaging, ListAction, next_params
from gateway.errors import UpstreamRejected

PAGE = ListAction(ActionPaging("page", "page", "per_page", "next_page", max_pages=100))
CURSOR = ListAction(ActionPaging("cursor", "cursor", "limit", "next_cursor", has_more="has_more"))
LINK = ListAction(ActionPaging("nextRecordsUrl", "link", None, "nextRecordsUrl"))
NESTED = ListAction(ActionPaging("offset", "cursor", "limit", "next_page.offset"))
SEARCH = ListAction(ActionPaging("cursor", next="next_cursor", incomplete="request_status"))
AUDITS = ListAction(PAGE.paging, (AlternativePaging("ticket_id", CURSOR.paging),))


@pytest.mark.parametrize(
    ("listing", "params", "meta", "expected"),
    [
        (PAGE, {"per_page": 2}, {"next_page": "https://x/t?page=2"}, {"per_page": 2, "page": 2}),
        (PAGE, {"page": 3}, {"next_page": "https://x/t?after=abc"}, {"page": 4}),
        (PAGE, {"page": 2}, {"next_page": "https://x/t?page=2"}, None),
        (PAGE, {"page": 2}, {"next_page": "https://x/t?page=%D9%A3"}, {"page": 3}),
        (PAGE, {"page": 2}, {"next_page": "https://x/t?page=%C2%B2"}, {"page": 3}),
        (CURSOR, {"cursor": "abc"}, {"next_cursor": "abc", "has_more": True}, None),
        (SEARCH, {}, {"next_cursor": "abc", "request_status": {"type": "incomplete"}}, {"cursor": "abc"}),
        (PAGE, {}, {"next_page": None}, None),
        (PAGE, {}, None, None),
        (CURSOR, {}, {"next_cursor": "abc", "has_more": True}, {"cursor": "abc"}),
        (CURSOR, {"cursor": "abc"}, {"next_cursor": "", "has_more": True}, None),
        (CURSOR, {}, {"next_cursor": "abc", "has_more": False}, None),
        (LINK, {"q": "SELECT Id"}, {"nextRecordsUrl": "/q/1"}, {"q": "SELECT Id", "nextRecordsUrl": "/q/1"}),
        (NESTED, {}, {"next_page": {"offset": "o"}}, {"offset": "o"}),
        (NESTED, {}, {"next_page": None}, None),
        (AUDITS, {"ticket_id": 1}, {"next_page": "https://x?page=2"}, {"ticket_id": 1, "page": 2}),
        (AUDITS, {}, {"next_page": "https://x?page=2", "next_cursor": "c"}, {"cursor": "c"}),
        (ListAction(), {}, {"next_page": "x"}, None),
    ],
)
def test_the_next_page_is_asked_for_as_the_application_has_it(listing, params, meta, expected):
    assert next_params(listing, params, meta) == expected


@pytest.mark.parametrize(
    ("listing", "params", "meta", "words"),
    [
        (PAGE, {"page": 100}, {"next_page": "https://x/t?page=101"}, "serves 100 pages at most, and there are more"),
        (SEARCH, {}, {"next_cursor": None, "request_status": {"type": "incomplete"}}, "says that there is more"),
    ],
)
def test_a_part_of_a_list_never_looks_like_all_of_it(listing, params, meta, words):
    with pytest.raises(UpstreamRejected, match=words):
        next_params(listing, params, meta)
