"""`events/subscribe` of the Model Context Protocol (SEP-3415): a receiver gets the events that a host subscribed to."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from standardwebhooks.webhooks import Webhook

from gateway.access.identity.model import Scope
from gateway.contract.events import EventType
from gateway.events.recording import add_event
from gateway.foundation.aio.loops import every, running
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api
from tests.harness.databases import waits_for_lock
from tests.harness.in_process import front_end
from tests.harness.waiting import eventually
from tests.web.subscribing import CREATED, Host, new_secret, willing

soon = partial(eventually, within=20)


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url, redis_url, receiver):
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, webhook_origins=(receiver.url,)) as opened:
        yield opened


@pytest.fixture
async def mcp(front, api) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(headers=api.headers) as session:
        yield Raw(session, f"{front.base_url}/mcp")


BAD_SECRETS = ["whsec_" + "A" * 1_000_000, "whsec_!" + "A" * 43, "whsec_\u0660" + "A" * 43, "A" * 44, ""]
BAD_URLS = [
    "https://user:word@proxy.example.com/h",
    "https://proxy.example.com/h#part",
    "https://pr\u00f6xy.example.com/h",
    "https://169.254.169.254/latest",
    "https://[::ffff:169.254.169.254]/",
    "https://0xa9fea9fe/",
    "https://localhost./",
    "https://proxy.example.com/" + "x" * 1_000_000,
    "https://proxy.example.com:99999/",
    "",
]


@pytest.fixture
def host(mcp, receiver) -> Host:
    return Host(mcp, receiver, f"/{uuid4().hex}")


async def test_a_receiver_gets_the_events_from_now_on_in_the_form_of_the_protocol(host, api, deliveries):
    await api.connector()
    subscribed = (await host.subscribe()).result
    connector = await api.connector()
    await soon(lambda: host.events)

    [event] = host.events
    headers = host.receiver.headers[host.path][-1]
    assert (event["name"], event["data"]["connector_id"]) == (CREATED, connector.record["id"])
    assert set(event) == {"eventId", "name", "timestamp", "data", "cursor"}
    assert event["cursor"] == event["eventId"] == headers["webhook-id"]
    assert headers["X-MCP-Subscription-Id"] == subscribed["id"]
    assert headers["Content-Type"] == "application/json"
    assert subscribed["resultType"] == "complete"
    assert set(subscribed) >= {"id", "refreshBefore", "cursor", "truncated"}
    assert "deliveryStatus" not in subscribed


async def test_the_challenge_is_signed_and_is_sent_once_for_a_receiver_of_a_client(host):
    first = (await host.subscribe()).result
    await host.subscribe("connector.deleted")
    await host.subscribe()

    [challenge] = host.of_type("verification")
    assert set(challenge) == {"type", "challenge"}
    assert host.receiver.headers[host.path][-1]["X-MCP-Subscription-Id"] == first["id"]
    assert host.receiver.ids[host.path][0].startswith("msg_verification_")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda event: 204, "challenge_failed"),
        (lambda event: web.json_response({"challenge": "another"}), "challenge_failed"),
        (lambda event: web.json_response(["challenge"]), "challenge_failed"),
        (lambda event: web.Response(text=event["challenge"]), "challenge_failed"),
        (lambda event: web.json_response({"challenge": event["challenge"] + "\n"}), "challenge_failed"),
        (lambda event: web.json_response({"challenge": event["challenge"].swapcase()}), "challenge_failed"),
        (lambda event: web.json_response({"challenge": "\ud800"}), "challenge_failed"),
        (lambda event: web.Response(body=json.dumps(event).encode("utf-16")), "challenge_failed"),
        (lambda event: web.Response(text="[" * 2000), "challenge_failed"),
        (lambda event: web.Response(status=307, headers={"Location": event["challenge"]}), "http_4xx"),
        (lambda event: 404, "http_4xx"),
        (lambda event: 302, "http_4xx"),
        (lambda event: 500, "http_5xx"),
    ],
)
async def test_a_receiver_that_does_not_return_the_challenge_gets_nothing(host, answer, reason):
    host.receiver.answers[host.path] = answer

    refused = await host.subscribe()

    assert (refused.code, refused.document["error"]["data"]) == (-32027, {"reason": reason})
    assert (await host.unsubscribe()).code == -32023


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "email.received"}, -32023),
        ({"name": None}, -32602),
        ({"arguments": {"folder": "inbox"}}, -32602),
        ({"cursor": "x"}, -32602),
        ({"ttlMs": -1}, -32602),
        ({"ttlMs": "1"}, -32602),
        ({"maxAgeMs": -1}, -32602),
        ({"delivery": None}, -32602),
        ({"delivery": {"url": "https://proxy.example.com/h"}}, -32602),
        ({"delivery": {"url": "http://proxy.example.com/h", "secret": new_secret()}}, -32602),
        ({"delivery": {"url": "https://10.0.0.7/h", "secret": new_secret()}}, -32602),
        ({"delivery": {"url": "https://proxy.example.com/h", "secret": "whsec_c2hvcnQ="}}, -32602),
        *(({"delivery": {"url": "https://proxy.example.com/h", "secret": each}}, -32602) for each in BAD_SECRETS),
        *(({"delivery": {"url": each, "secret": new_secret()}}, -32602) for each in BAD_URLS),
        *(({"ttlMs": each}, -32602) for each in (1.5, True, [], {})),
        ({"maxAgeMs": 1.5}, -32602),
        ({"arguments": {f"a{number}": "x" for number in range(50_000)}}, -32602),
        ({"arguments": {"connector_id": "-" * 1_000_000 + str(uuid4())}}, -32602),
        ({"name": "record.created", "arguments": {"entity": "x" * 1_000_000}}, -32602),
        ({"name": "record.created", "arguments": {"entity": "a\0b"}}, -32602),
        ({"name": "record.created", "arguments": {"entity": {"a": {}}}}, -32602),
        ({"name": "x" * 1_000_000}, -32023),
        ({"delivery": {"url": "https://proxy.example.com/h", "secret": new_secret(), "mode": "push"}}, -32026),
    ],
)
async def test_a_request_that_is_not_valid_subscribes_nobody(host, change, code):
    delivery = {"mode": "webhook", "url": host.receiver.url + host.path, "secret": host.secret}

    refused = await host.mcp("events/subscribe", {"name": CREATED, "delivery": delivery, **change})

    assert refused.code == code
    assert len(json.dumps(refused.document)) < 2_000
    assert host.messages == []


@pytest.mark.parametrize("method", ["subscribe", "unsubscribe"])
async def test_a_client_without_the_scope_is_forbidden(front, receiver, host, method):
    client_id, secret = await front.client(scopes=[Scope.ADMIN])
    async with (
        Api.of(front.base_url, client_id, secret) as api,
        aiohttp.ClientSession(headers=api.headers) as session,
    ):
        stranger = Host(Raw(session, f"{front.base_url}/mcp"), receiver, host.path)
        refused = await getattr(stranger, method)()

    assert (refused.code, host.messages) == (-32024, [])


async def test_another_organization_has_another_subscription_and_gets_no_events_of_the_first(
    front, host, receiver, api, deliveries
):
    async with front.api() as other, aiohttp.ClientSession(headers=other.headers) as session:
        stranger = Host(Raw(session, f"{front.base_url}/mcp"), receiver, f"{host.path}/theirs")
        theirs = (await stranger.subscribe()).result
        ours = (await host.subscribe()).result
        await api.connector()
        await soon(lambda: host.events)

        assert theirs["id"] != ours["id"]
        assert stranger.events == []
        assert (await stranger.unsubscribe()).result["resultType"] == "complete"
        assert (await stranger.unsubscribe()).document["error"]["data"] == {"kind": "subscription"}
    assert (await host.subscribe()).result["deliveryStatus"]["active"] is True


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ({"ttlMs": 3_600_000}, 3500, 3600),
        ({"ttlMs": 1}, 50, 60),
        ({"ttlMs": 0}, 50, 60),
        ({"ttlMs": 10**18}, 2_591_900, 2_592_000),
        ({"ttlMs": 10**30}, 2_591_900, 2_592_000),
        ({}, 86_000, 86_400),
    ],
)
async def test_a_subscription_expires_when_the_answer_says(sql, host, asked, least, most):
    subscribed = (await host.subscribe(**asked)).result

    [row] = await sql(
        "SELECT extract(epoch FROM expires_at - now())::float8 AS left FROM webhooks WHERE subscription_id = $1",
        subscribed["id"],
    )
    assert least <= row["left"] <= most
    assert subscribed["refreshBefore"] is not None


async def test_a_host_may_ask_for_no_expiry_and_change_its_mind(host):
    assert (await host.subscribe(ttlMs=None)).result["refreshBefore"] is None
    assert (await host.subscribe(ttlMs=60_000)).result["refreshBefore"] is not None


async def test_an_expired_subscription_gets_nothing_and_begins_at_the_cursor_when_it_is_made_again(
    sql, host, api, deliveries
):
    first = (await host.subscribe()).result
    await sql("UPDATE webhooks SET expires_at = now() - interval '1 s' WHERE subscription_id = $1", first["id"])
    missed = await api.connector()

    again = (await host.subscribe(cursor=first["cursor"])).result
    await soon(lambda: host.events)

    assert (again["id"], again["truncated"], "deliveryStatus" in again) == (first["id"], False, False)
    assert [each["data"]["connector_id"] for each in host.events] == [missed.record["id"]]


async def test_a_replay_leaves_out_older_events_and_says_so(host, api, deliveries):
    begin = (await host.mcp("events/poll", {"name": CREATED})).result["cursor"]
    await api.connector()

    old = (await host.subscribe(cursor=begin, maxAgeMs=0)).result
    await host.unsubscribe()
    new = (await host.subscribe(cursor=begin, maxAgeMs=600_000)).result

    assert (old["truncated"], new["truncated"]) == (True, False)
    assert int(old["cursor"]) > int(new["cursor"]) == int(begin)


async def test_a_cursor_of_deleted_events_continues_at_the_oldest_event(front, sql, host, api, deliveries):
    begin = (await host.mcp("events/poll", {"name": CREATED})).result["cursor"]
    await api.connector()
    newest = (await host.mcp("events/poll", {"name": CREATED})).result["cursor"]
    organization_id = (await front.services.identity.organizations())[-1].id
    await sql("UPDATE event_feeds SET pruned_id = $2 WHERE organization_id = $1", organization_id, int(newest))

    subscribed = (await host.subscribe(cursor=begin)).result

    assert (subscribed["truncated"], subscribed["cursor"]) == (True, newest)


async def test_a_cursor_beyond_the_newest_event_continues_at_it(host, api, deliveries):
    newest = (await host.mcp("events/poll", {"name": CREATED})).result["cursor"]

    subscribed = (await host.subscribe(cursor="999999")).result
    connector = await api.connector()
    await soon(lambda: host.events)

    assert (subscribed["truncated"], subscribed["cursor"]) == (True, newest)
    assert [each["data"]["connector_id"] for each in host.events] == [connector.record["id"]]


async def test_a_gap_between_two_refreshes_is_told(front, sql, host, api, deliveries):
    subscribed = (await host.subscribe()).result
    organization_id = (await front.services.identity.organizations())[-1].id
    await sql("UPDATE webhooks SET held_until = 'infinity' WHERE subscription_id = $1", subscribed["id"])
    await api.connector()
    newest = (await host.mcp("events/poll", {"name": CREATED})).result["cursor"]
    await sql("UPDATE event_feeds SET pruned_id = $2 WHERE organization_id = $1", organization_id, int(newest))
    await sql("UPDATE webhooks SET held_until = '-infinity' WHERE subscription_id = $1", subscribed["id"])
    await soon(lambda: host.of_type("gap"))

    assert host.of_type("gap")[0] == {"type": "gap", "cursor": newest}
    kept = await api.connector()
    await soon(lambda: host.events)
    assert host.events[0]["data"]["connector_id"] == kept.record["id"]


async def test_the_cursor_does_not_pass_an_event_that_is_not_acknowledged(host, api, deliveries):
    first = (await host.subscribe("connector.created")).result
    connectors = [(await api.connector()).record["id"] for _ in range(2)]
    host.receiver.answers[host.path] = lambda event: 500 if event["data"]["connector_id"] == connectors[0] else 204
    await soon(lambda: len(host.events) == 1)

    [event] = host.events
    refreshed = (await host.subscribe("connector.created")).result
    assert event["data"]["connector_id"] == connectors[1]
    # The event has the cursor of the moment at which it was sent.
    assert int(first["cursor"]) <= int(event["cursor"]) <= int(refreshed["cursor"]) < int(event["eventId"]) - 1
    assert refreshed["deliveryStatus"]["lastDeliveryAt"] is not None


#: a turn ends in which the receiver accepted the second of two events
TURN = """
    WITH webhook AS (
        UPDATE webhooks SET position = position + 2 WHERE subscription_id = $1 RETURNING id, organization_id, position)
    INSERT INTO webhook_deliveries (webhook_id, organization_id, event_id, subject, event, status)
    SELECT id, organization_id, position - 1, 'subject', '{}', 'pending' FROM webhook
"""


async def test_the_cursor_does_not_pass_an_event_of_a_turn_that_ends_at_the_same_moment(host, database):
    subscribed = (await host.subscribe()).result
    async with database.system() as connection, connection.transaction():
        await connection.execute(TURN, subscribed["id"])
        refreshing = asyncio.create_task(host.subscribe())
        await soon(lambda: waits_for_lock(database))
    refreshed = (await refreshing).result

    assert refreshed["cursor"] == subscribed["cursor"]


#: deliveries of a subscription that are not sent again
ENDED = """
    SELECT webhook_deliveries.status, attempts FROM webhook_deliveries JOIN webhooks ON webhooks.id = webhook_id
    WHERE subscription_id = $1 AND webhook_deliveries.status <> 'pending' ORDER BY event_id
"""


@pytest.mark.parametrize("status", [410, 413])
async def test_a_refused_event_is_not_sent_again_and_the_subscription_goes_on(sql, host, api, deliveries, status):
    subscribed = (await host.subscribe()).result
    host.receiver.answers[host.path] = lambda event: status
    await api.connector()
    await soon(lambda: len(host.receiver.ids[host.path]) == 2)
    host.receiver.answers[host.path] = willing
    await sql("UPDATE webhooks SET held_until = '-infinity' WHERE subscription_id = $1", subscribed["id"])
    accepted = await api.connector()
    await soon(lambda: host.events)

    async def are_stored() -> bool:
        return len(await sql(ENDED, subscribed["id"])) == 2

    await soon(are_stored)

    assert [each["data"]["connector_id"] for each in host.events] == [accepted.record["id"]]
    [row] = await sql("SELECT status FROM webhooks WHERE subscription_id = $1", subscribed["id"])
    assert row["status"] == "active"
    ended = await sql(ENDED, subscribed["id"])
    assert [(each["status"], each["attempts"]) for each in ended] == [("failed", 1), ("succeeded", 1)]


async def test_a_suspended_subscription_goes_on_with_its_events_when_it_is_refreshed(sql, host, api, deliveries):
    subscribed = (await host.subscribe()).result
    host.receiver.answers[host.path] = lambda event: 503
    connector = await api.connector()
    await soon(lambda: len(host.receiver.ids[host.path]) >= 2)
    await sql(
        "UPDATE webhooks SET failing_since = now() - interval '2 hours', held_until = '-infinity', retry_at = now()"
        " WHERE subscription_id = $1",
        subscribed["id"],
    )
    await sql("UPDATE webhook_deliveries SET next_attempt_at = now() WHERE status = 'pending'")

    async def is_suspended() -> bool:
        [row] = await sql("SELECT status FROM webhooks WHERE subscription_id = $1", subscribed["id"])
        return bool(row["status"] == "disabled")

    await soon(is_suspended)
    host.receiver.answers[host.path] = willing
    status = (await host.subscribe()).result["deliveryStatus"]
    await soon(lambda: host.events)

    assert (status["active"], status["lastError"], "failedSince" in status) == (False, "http_5xx", True)
    assert [each["data"]["connector_id"] for each in host.events] == [connector.record["id"]]


#: deliveries of a subscription that failed
FAILED = """
    SELECT FROM webhook_deliveries JOIN webhooks ON webhooks.id = webhook_id
    WHERE subscription_id = $1 AND failure IS NOT NULL
"""
REASONS = {"connection_refused", "timeout", "tls_error", "http_4xx", "http_5xx", "challenge_failed", None}


@pytest.mark.parametrize(("status", "category"), [(307, "http_4xx"), (404, "http_4xx"), (500, "http_5xx")])
async def test_the_last_error_is_a_category_without_any_text_of_the_receiver(host, api, deliveries, status, category):
    await host.subscribe()
    said = {"reason": "told by status", "text": "told by body", "headers": {"Location": "/told-by-header"}}
    host.receiver.answers[host.path] = lambda event: web.Response(status=status, **said)
    await api.connector()
    states = []

    async def has_failed() -> bool:
        states.append((await host.subscribe()).document)
        return states[-1]["result"]["deliveryStatus"]["lastError"] is not None

    await soon(has_failed)

    assert states[-1]["result"]["deliveryStatus"]["lastError"] == category in REASONS
    assert "told" not in json.dumps(states)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_of_a_delivery_is_not_followed(sql, host, api, deliveries, status):
    elsewhere = Host(host.mcp, host.receiver, f"{host.path}/elsewhere")
    subscribed = (await host.subscribe()).result
    headers = {"Location": host.receiver.url + elsewhere.path}
    host.receiver.answers[host.path] = lambda event: web.Response(status=status, headers=headers)
    await api.connector()

    async def has_failed() -> bool:
        return bool(await sql(FAILED, subscribed["id"]))

    await soon(has_failed)

    assert host.receiver.ids[elsewhere.path] == host.events == []


async def test_a_subscription_survives_a_restart(tmp_path, database_url, redis_url, receiver, host):
    def opened(name: str) -> Any:
        return front_end(tmp_path / name, database_url, redis_url, webhook_origins=(receiver.url,))

    async with opened("first") as before:
        client = await before.client()
        async with Api.of(before.base_url, *client) as api, aiohttp.ClientSession(headers=api.headers) as session:
            host.mcp = Raw(session, f"{before.base_url}/mcp")
            first = (await host.subscribe(ttlMs=None)).result
    async with opened("second") as after, Api.of(after.base_url, *client) as api:
        missed = await api.connector()
        async with running(every(0, after.services.events.deliverer.deliver, name="deliveries")):
            await soon(lambda: host.events)
        await after.services.events.deliverer.close()

    assert [each["data"]["connector_id"] for each in host.events] == [missed.record["id"]]
    assert host.receiver.headers[host.path][-1]["X-MCP-Subscription-Id"] == first["id"]
    assert len(host.of_type("verification")) == 1


async def test_a_new_member_of_an_event_type_ends_no_subscription(front, sql, host, api, deliveries):
    subscribed = (await host.subscribe()).result
    organization_id = (await front.services.identity.organizations())[-1].id
    async with front.services.database.tenant(organization_id) as connection:
        await add_event(connection, organization_id, EventType.CONNECTOR_CREATED, {"name": "n", "added_later": 1})
    front.services.events.deliverer.on_client("")
    await soon(lambda: host.events)

    assert [each["data"]["added_later"] for each in host.events] == [1]
    assert host.of_type("terminated") == []
    assert (await host.subscribe()).result["id"] == subscribed["id"]


async def test_a_subscription_without_expiry_ends_after_its_receiver_has_failed_for_long(front, sql, host, deliveries):
    ended, kept = (await host.subscribe(ttlMs=None)).result, (await host.subscribe("job.failed", ttlMs=None)).result
    await sql(
        "UPDATE webhooks SET status = 'disabled', failing_since = now() - interval '1 year' WHERE subscription_id = $1",
        ended["id"],
    )
    front.services.events.deliverer.on_client("")
    await soon(partial(_is_gone, sql, ended["id"]))

    [terminated] = host.of_type("terminated")
    assert (terminated["error"]["code"], terminated["error"]["data"]["reason"]) == (-32027, "connection_refused")
    assert not await _is_gone(sql, kept["id"])


async def test_a_new_secret_signs_beside_the_old_one(host, api, deliveries):
    await host.subscribe()
    before, host.secret = host.secret, new_secret()
    await host.subscribe()
    host.receiver.secrets[host.path] = host.secret
    await api.connector()
    await soon(lambda: host.events)

    signatures = host.receiver.headers[host.path][-1]["webhook-signature"].split()
    assert len(signatures) == 2
    assert Webhook(before) is not None


async def test_an_administrator_sees_and_deletes_a_subscription_and_changes_nothing_else(
    front, sql, host, api, deliveries
):
    subscribed = (await host.subscribe()).result
    [listed] = (await api.get("/api/v1/webhooks")).json()["data"]
    address = f"/api/v1/webhooks/{listed['id']}"

    assert listed["subscription_id"] == subscribed["id"]
    assert (await api.call("PATCH", address, json={"status": "disabled"})).status == 409
    assert (await api.post(f"{address}/rotate")).status == 409
    assert (await api.call("DELETE", address)).status == 204
    front.services.events.deliverer.on_webhook(listed["id"])
    await soon(lambda: host.of_type("terminated"))
    await soon(partial(_is_gone, sql, subscribed["id"]))


async def _is_gone(sql, id_: str) -> bool:
    return not await sql("SELECT FROM webhooks WHERE subscription_id = $1", id_)


async def test_two_requests_at_once_are_one_subscription(host):
    answers = await asyncio.gather(*(host.subscribe() for _ in range(5)))

    assert len({each.result["id"] for each in answers}) == 1


async def test_an_organization_has_ten_thousand_subscriptions_at_most(sql, host):
    first = (await host.subscribe()).result["id"]
    await sql(
        "INSERT INTO webhooks SELECT (jsonb_populate_record(webhook, jsonb_build_object("
        "'id', gen_random_uuid(), 'subscription_id', 'sub_' || number))).* "
        "FROM webhooks AS webhook, generate_series(1, 9999) AS number WHERE subscription_id = $1", first,
    )  # fmt: skip

    refused = await host.subscribe("connector.deleted")

    assert refused.document["error"]["data"] == {"limit": "subscriptions", "max": 10_000}
    assert (await host.subscribe()).result["id"] == first
    await sql("DELETE FROM webhooks WHERE subscription_id LIKE 'sub_%' AND length(subscription_id) < 20")


async def test_a_list_change_is_not_promised(mcp):
    discovered = (await mcp("server/discover")).result

    assert discovered["capabilities"]["extensions"]["io.modelcontextprotocol/events"] == {}
