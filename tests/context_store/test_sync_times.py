"""Times of applications, and how requests tell them."""

import pytest

from gateway.context_store.sync.times import moment_of, written

NEW_YEAR = 1_767_225_600.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2026-01-01T00:00:00Z", NEW_YEAR),
        ("2026-01-01T00:00:00.250Z", NEW_YEAR + 0.25),
        ("2026-01-01T01:00:00.000+0100", NEW_YEAR),
        ("2026-01-01T00:00:00", NEW_YEAR),
        (1_767_225_600, NEW_YEAR),
        (1_767_225_600_500, NEW_YEAR + 0.5),
        ("1767225600.000100", NEW_YEAR + 0.0001),
        (None, None),
        (True, None),
        ("yesterday", None),
        ({}, None),
        ("", None),
    ],
)
def test_a_time_is_understood_however_it_is_written(value, seconds):
    assert moment_of(value) == seconds


@pytest.mark.parametrize(
    ("format_", "text"),
    [("iso", "2026-01-01T00:00:00Z"), ("seconds", "1767225600"), ("milliseconds", "1767225600900")],
)
def test_a_time_in_a_request_is_rounded_down(format_, text):
    assert written(NEW_YEAR + 0.9, format_) == text
