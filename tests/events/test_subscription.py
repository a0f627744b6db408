"""Subscriptions of the Model Context Protocol by webhook: ids, lifetimes, secrets and cursors."""

import base64
from uuid import UUID

import msgspec
import pytest

from gateway.events.subscription import (
    ChallengePace,
    granted_lifetime,
    safe_cursor,
    secret_fault,
    subscription_id,
)

ORGANIZATION, CLIENT = UUID(int=1), UUID(int=2)
URL = "https://proxy.example.com/hooks/1"


def id_of(organization=ORGANIZATION, client=CLIENT, url=URL, name="record.updated", **arguments: str) -> str:
    return subscription_id(organization, client, url, name, arguments)


def test_the_id_is_the_same_for_the_same_key_in_any_order():
    assert id_of(entity="tickets", connector_id="c") == id_of(connector_id="c", entity="tickets")


def test_the_id_stays_the_same_in_later_versions():
    assert id_of(entity="tickets") == "sub_acc7de2f199316e5811962e993ade360"


@pytest.mark.parametrize(
    "other",
    [
        {"organization": UUID(int=9)},
        {"client": UUID(int=9)},
        {"url": f"{URL}0"},
        {"name": "record.deleted"},
        {"entity": "users"},
        {"connector_id": "c"},
    ],
)
def test_each_part_of_the_key_makes_another_id(other):
    assert id_of(**{"entity": "tickets", **other}) != id_of(entity="tickets")


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (msgspec.UNSET, 86_400),
        (None, None),
        (3_600_000, 3600),
        (1, 60),
        (0, 60),
        (10**15, 30 * 86_400),
    ],
)
def test_a_lifetime_is_at_most_what_the_client_suggests_unless_it_is_too_short(asked, seconds):
    assert granted_lifetime(asked) == seconds


@pytest.mark.parametrize(
    ("secret", "is_valid"),
    [
        (f"whsec_{base64.b64encode(bytes(24)).decode()}", True),
        (f"whsec_{base64.b64encode(bytes(64)).decode()}", True),
        (f"whsec_{base64.b64encode(bytes(23)).decode()}", False),
        (f"whsec_{base64.b64encode(bytes(65)).decode()}", False),
        (base64.b64encode(bytes(32)).decode(), False),
        (f"whsec_{'ä' * 40}", False),
        (f"whsec_{'A' * 33}", False),
        ("whsec_", False),
        ("", False),
    ],
)
def test_a_secret_is_one_of_standard_webhooks(secret, is_valid):
    assert (secret_fault(secret) is None) is is_valid


@pytest.mark.parametrize(
    ("event", "unfinished", "cursor"),
    [
        (7, {7}, 7),
        (7, {7, 9}, 7),
        (7, {5, 7}, 4),
        (7, {3, 5, 7, 9}, 2),
    ],
)
def test_a_cursor_is_never_after_an_event_that_is_neither_acknowledged_nor_given_up(event, unfinished, cursor):
    assert safe_cursor(event, unfinished) == cursor


def test_a_host_gets_so_many_challenges_in_a_minute_and_another_host_is_not_concerned():
    pace = ChallengePace()

    def taken(holder: str, now: float = 100.0) -> int:
        return next(number for number in range(100) if pace.wait("a.example.com", holder, now))

    assert [taken(holder) for holder in "abcdefgh"] == [30, 15, 7, 4, 2, 1, 1, 0]
    assert pace.wait("a.example.com", "a", now=130.5) == pace.wait("a.example.com", "new", now=130.5) == 30
    assert pace.wait("b.example.com", "a", now=130.5) == 0
    assert taken("h", now=160.0) == 30
