"""Times, names and sizes for pages."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.web.pages.words import exact, relative, size

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(seconds=1), "just now"),
        (timedelta(seconds=42), "42 seconds ago"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=47), "1 day ago"),
        (timedelta(days=29), "29 days ago"),
        (timedelta(days=31), "29 Jan 2026"),
        (timedelta(minutes=-5), "in 5 minutes"),
    ],
)
def test_a_time_is_shown_relative_to_now(before: timedelta, words: str):
    assert relative(NOW - before, NOW) == words
    assert relative((NOW - before).isoformat(), NOW) == words


def test_the_exact_time_is_in_utc():
    assert exact("2026-03-01T09:00:05.123Z") == "2026-03-01 09:00:05 UTC"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1200, "1.2 KB"), (250_000, "250 KB"), (3_400_000, "3.4 MB")]
)
def test_bytes_are_shown_in_their_largest_unit(count: int, text: str):
    assert size(count) == text
