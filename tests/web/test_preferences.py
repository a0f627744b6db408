"""The preferences (RFC 7240) and the idempotency key in the headers of a request."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gateway.errors import MalformedRequest
from gateway.web.bodies import call_headers, preferences_of


@pytest.mark.parametrize(
    ("sent", "respond_async", "wait"),
    [
        ("wait=1", False, 1),
        ('WAIT = "1"', False, 1),
        ("respond-async; of=ours, wait=5", True, 5),
        # the first of two with the same name counts
        ("wait=1, wait=2", False, 1),
        ("return=minimal", False, None),
        # parameters and quoted values are no preferences
        ("handling=lenient; wait=5", False, None),
        ('of="ours, respond-async", wait=5', False, 5),
        ('of="\\", respond-async", wait=5', False, 5),
        (", ,wait=5", False, 5),
    ],
)
def test_preferences_are_read_by_the_rules_of_rfc_7240(sent, respond_async, wait):
    preferences = preferences_of(make_mocked_request("GET", "/", {"Prefer": sent}))

    assert (preferences.respond_async, preferences.wait) == (respond_async, wait)


@pytest.mark.parametrize("second", ["b", "a, b"])
def test_two_idempotency_keys_are_refused(second):
    headers = CIMultiDict([("Idempotency-Key", "a"), ("Idempotency-Key", second)])

    with pytest.raises(MalformedRequest):
        call_headers(make_mocked_request("POST", "/", headers))


def test_an_idempotency_key_may_be_repeated():
    headers = CIMultiDict([("Idempotency-Key", "a"), ("Idempotency-Key", "a")])

    assert call_headers(make_mocked_request("POST", "/", headers)).idempotency_key == "a"
