"""A list that is read page by page ends, whatever the application names as the next page."""

import pytest

from gateway.errors import UpstreamInvalidResponse, UpstreamRejected
from gateway.foundation.aio.paging import MAX_EMPTY_PAGES, MAX_EQUAL_PAGES, PageWalk


def test_empty_pages_end_a_list_that_never_ends():
    walk = PageWalk()
    for number in range(MAX_EMPTY_PAGES - 1):
        walk.add({"page": number}, [], None)

    with pytest.raises(UpstreamInvalidResponse, match="pages without records in a row"):
        walk.add({"page": "last"}, [], None)


def test_empty_pages_between_others_are_allowed():
    walk = PageWalk()
    for number in range(3 * MAX_EMPTY_PAGES):
        walk.add({"page": number}, [number] if number % 100 == 0 else [], None)

    walk.add(None, [], None)
    walk.require_complete()


def test_a_circle_of_pages_is_recognized():
    walk = PageWalk()
    walk.add({"cursor": "a"}, [1], None)
    walk.add({"cursor": "b"}, [2], None)

    with pytest.raises(UpstreamInvalidResponse, match="returned before"):
        walk.add({"cursor": "a"}, [3], None)


@pytest.mark.parametrize("compares", [True, False])
def test_an_application_that_ignores_the_number_of_the_page_is_recognized(compares):
    walk = PageWalk(compares=compares)
    for number in range(MAX_EQUAL_PAGES - 1):
        walk.add({"page": number}, [{"id": 1}], None)

    if compares:
        with pytest.raises(UpstreamInvalidResponse, match="returned the same page"):
            walk.add({"page": "last"}, [{"id": 1}], None)
    else:
        walk.add({"page": "last"}, [{"id": 1}], None)


def test_the_first_reason_why_records_are_missing_is_raised_after_the_last_page():
    walk = PageWalk()
    walk.add({"page": 2}, [1], "one is null")
    walk.add(None, [2], "there is more")

    with pytest.raises(UpstreamRejected, match="one is null"):
        walk.require_complete()
