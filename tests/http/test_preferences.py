"""The preferences of a request (RFC 7240)."""

import pytest
from aiohttp.test_utils import make_mocked_request

from gateway.http.bodies import preferences_of


@pytest.mark.parametrize(
    ("sent", "respond_async", "wait"),
    [
        ("wait=1", False, 1),
        ('WAIT = "1"', False, 1),
        ("respond-async; of=ours, wait=5", True, 5),
        # the first of two with the same name counts
        ("wait=1, wait=2", False, 1),
        ("return=minimal", False, None),
    ],
)
def test_preferences_are_read_by_the_rules_of_rfc_7240(sent, respond_async, wait):
    preferences = preferences_of(make_mocked_request("GET", "/", {"Prefer": sent}))

    assert (preferences.respond_async, preferences.wait) == (respond_async, wait)
