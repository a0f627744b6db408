"""What SEP-3415 obliges a server to, each with the test that shows it; and the tests that are nowhere else."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import EventSubscription
from gateway.agents.mcp.messages import Message
from gateway.agents.tools.events import FeedEvents
from gateway.contract.events import EventPage
from tests.agents.mcp.conftest import Raw

TESTS = Path(__file__).parents[1]
SUBSCRIPTIONS, EVENTS = "web/test_mcp_subscriptions.py", "web/test_mcp_events.py"
HERE = "web/test_mcp_events_obligations.py"
OBLIGATIONS = {
    "a stream without events is kept alive": (HERE, "test_a_stream_without_events_sends_heartbeats_with_the_position"),
    "a canceled request stops": ("agents/mcp/test_http.py", "test_closing_the_stream_cancels_the_call"),
    "a bad secret is refused": ("events/test_subscription.py", "test_a_secret_is_one_of_standard_webhooks"),
    "no expiry only if it is asked for": (
        "events/test_subscription.py",
        "test_a_lifetime_is_at_most_what_the_client_suggests_unless_it_is_too_short",
    ),
    "who may not read is forbidden": (SUBSCRIPTIONS, "test_a_client_without_the_scope_is_forbidden"),
    "no principal, no subscription": (HERE, "test_nobody_subscribes_without_a_principal"),
    "the key has the principal": (
        SUBSCRIPTIONS,
        "test_another_organization_has_another_subscription_and_gets_no_events_of_the_first",
    ),
    "410 and 413 are final": (SUBSCRIPTIONS, "test_a_refused_event_is_not_sent_again_and_the_subscription_goes_on"),
    "an error is a category": (
        SUBSCRIPTIONS,
        "test_a_suspended_subscription_goes_on_with_its_events_when_it_is_refreshed",
    ),
    "callback URLs are checked": (SUBSCRIPTIONS, "test_a_request_that_is_not_valid_subscribes_nobody"),
    "and again at each delivery": ("events/test_deliveries.py", "test_a_private_address_is_never_connected_to"),
    "https only": ("events/test_deliveries.py", "test_a_url_that_is_not_https_at_a_public_address_is_refused"),
    "no redirect is followed": (SUBSCRIPTIONS, "test_a_receiver_that_does_not_return_the_challenge_gets_nothing"),
    "nothing before the challenge": (SUBSCRIPTIONS, "test_a_receiver_that_does_not_return_the_challenge_gets_nothing"),
    "deliveries are signed and name the subscription": (
        SUBSCRIPTIONS,
        "test_a_receiver_gets_the_events_from_now_on_in_the_form_of_the_protocol",
    ),
    "a retry has the same id": (
        "events/test_deliveries.py",
        "test_a_delivery_that_is_not_answered_2xx_is_sent_again_with_the_same_id",
    ),
    "no cursor is null": (HERE, "test_a_cursor_that_is_absent_is_null"),
    "a replay that begins later says so": (SUBSCRIPTIONS, "test_a_replay_leaves_out_older_events_and_says_so"),
    "no redirect of a delivery is followed": (SUBSCRIPTIONS, "test_a_redirect_of_a_delivery_is_not_followed"),
    "a retry has its own timestamp and signature": (
        "events/test_deliveries.py",
        "test_a_retry_has_a_timestamp_and_a_signature_of_its_own",
    ),
    "the last error has no raw text": (
        SUBSCRIPTIONS,
        "test_the_last_error_is_a_category_without_any_text_of_the_receiver",
    ),
    "a subscription survives a restart": (SUBSCRIPTIONS, "test_a_subscription_survives_a_restart"),
    "the id survives a restart": ("events/test_subscription.py", "test_the_id_stays_the_same_in_later_versions"),
    "an additive change ends nothing": (SUBSCRIPTIONS, "test_a_new_member_of_an_event_type_ends_no_subscription"),
    "no expiry is cleaned up": (
        SUBSCRIPTIONS,
        "test_a_subscription_without_expiry_ends_after_its_receiver_has_failed_for_long",
    ),
    "a closed connection ends the stream": (EVENTS, "test_a_client_ends_its_stream_by_closing_the_connection"),
    "a position beyond the newest event is truncated": (
        EVENTS,
        "test_a_cursor_beyond_the_newest_event_continues_at_it_and_says_so",
    ),
    "a stream is no request in progress": (
        "web/test_slots.py",
        "test_streams_take_no_slot_of_a_request_and_leave_streams_for_others",
    ),
    "the end of a subscription is told": (
        "web/test_mcp_subscription_ends.py",
        "test_a_receiver_is_told_why_its_subscription_ended",
    ),
    "who subscribes may see what it names": (
        "web/test_mcp_subscription_ends.py",
        "test_nobody_subscribes_to_a_connector_that_it_may_not_see",
    ),
    "a gap is told": (SUBSCRIPTIONS, "test_a_gap_between_two_refreshes_is_told"),
}


@pytest.mark.parametrize(("module", "test"), OBLIGATIONS.values(), ids=OBLIGATIONS)
def test_each_obligation_has_a_test(module, test):
    assert f"def {test}(" in (TESTS / module).read_text("utf-8")


@pytest.fixture
async def mcp(front, api) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(headers=api.headers) as session:
        yield Raw(session, f"{front.base_url}/mcp")


async def test_a_cursor_that_is_absent_is_null(mcp, api):
    await api.connector()

    absent = (await mcp("events/poll", {"name": "connector.created"})).result
    null = (await mcp("events/poll", {"name": "connector.created", "cursor": None})).result

    assert (absent["cursor"], absent["events"]) == (null["cursor"], null["events"])
    assert absent["events"] == []


@pytest.mark.parametrize("method", ["events/subscribe", "events/unsubscribe"])
async def test_nobody_subscribes_without_a_principal(front, method):
    url = f"https://proxy.example.com/{uuid4()}"
    async with aiohttp.ClientSession() as session:
        refused = await Raw(session, f"{front.base_url}/mcp")(
            method, {"name": "connector.created", "delivery": {"url": url, "secret": "whsec_x"}}
        )

    assert refused.status == 401


class Quiet:
    """A feed without events."""

    async def read(self, *_: Any) -> EventPage:
        return EventPage([], "7", 7, None)

    async def follow(self, *_: Any) -> AsyncGenerator[EventPage, None]:
        for position in ("8", "9"):
            yield EventPage([], position, int(position), None)


async def test_a_stream_without_events_sends_heartbeats_with_the_position():
    context = Context(message=Message(1, "events/stream"), version="2026-07-28", send=None)
    subscription = EventSubscription("connector.created", {}, None, None)

    active, *heartbeats = [each async for each in FeedEvents(Quiet()).stream(context, subscription)]

    assert active["method"] == "notifications/events/active"
    assert [each["method"] for each in heartbeats] == ["notifications/events/heartbeat"] * 2
    assert [each["params"]["cursor"] for each in heartbeats] == ["8", "9"]
