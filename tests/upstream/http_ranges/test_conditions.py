"""If-Range and If-None-Match (RFC 9110 §13.1)."""

import pytest

from gateway.upstream.http_ranges.headers import if_range_matches, is_not_modified

DATE = "Tue, 15 Nov 1994 12:45:26 GMT"


@pytest.mark.parametrize(
    ("if_range", "etag", "last_modified", "matches"),
    [
        (None, '"a"', DATE, True),
        (None, None, None, True),
        ('"a"', '"a"', DATE, True),
        (' "a" ', '"a"', None, True),
        ('""', '""', None, True),
        ('"a"', '"b"', DATE, False),
        ('"a"', None, DATE, False),
        ('"a"', 'W/"a"', DATE, False),
        ('W/"a"', 'W/"a"', DATE, False),
        ('W/"a"', '"a"', DATE, False),
        ('"a', '"a', DATE, False),
        ('"a", "b"', '"a"', DATE, False),
        (DATE, '"a"', DATE, True),
        (DATE, None, DATE, True),
        (DATE, '"a"', None, False),
        (DATE, '"a"', "Tue, 15 Nov 1994 12:45:25 GMT", False),
        (DATE, '"a"', "Tue, 15 Nov 1994 12:45:27 GMT", False),
        ("", "", "", False),
        ("*", '"a"', DATE, False),
        ("a", "a", DATE, False),
    ],
)
def test_a_range_is_given_only_of_surely_the_same_file(if_range, etag, last_modified, matches):
    file_headers = {"ETag": etag, "Last-Modified": last_modified}

    assert if_range_matches(if_range, file_headers) is matches


@pytest.mark.parametrize(
    ("if_none_match", "etag", "is_held"),
    [
        (None, '"a"', False),
        ("", '"a"', False),
        ('"a"', '"a"', True),
        ('"a"', 'W/"a"', True),
        ('W/"a"', '"a"', True),
        ('W/"a"', 'W/"a"', True),
        ('"b", W/"a"', '"a"', True),
        ('"b","a"', '"a"', True),
        ('"b, a"', '"a"', False),
        ('"b,c"', '"b,c"', True),
        ('"a"', '"A"', False),
        ('"a"', None, False),
        ("a", '"a"', False),
        ("*", '"a"', True),
        (" * ", None, True),
    ],
)
def test_a_file_that_the_client_holds_is_not_modified(if_none_match, etag, is_held):
    assert is_not_modified(if_none_match, etag) is is_held
