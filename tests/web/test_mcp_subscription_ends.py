"""Subscriptions of agents' hosts that end: the receiver is told why (SEP-3415)."""

from collections.abc import AsyncIterator
from functools import partial
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api
from tests.harness.in_process import front_end
from tests.harness.waiting import eventually
from tests.web.subscribing import CREATED, Host

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


@pytest.fixture
def host(mcp, receiver) -> Host:
    return Host(mcp, receiver, f"/{uuid4().hex}")


async def _is_gone(sql, id_: str) -> bool:
    return not await sql("SELECT FROM webhooks WHERE subscription_id = $1", id_)


#: what ends a subscription → the reason
ENDS = {
    "UPDATE clients SET disabled_at = now() WHERE id = {client}": "the client was disabled",
    "DELETE FROM clients WHERE id = {client}": "the client was deleted",
    "UPDATE clients SET scopes = ARRAY['write'] WHERE id = {client}": "the client lost the scope read",
    "DELETE FROM client_organizations WHERE client_id = {client}": "the client no longer belongs to the organization",
    "UPDATE organizations SET disabled_at = now() WHERE id = {organization}": "the organization was disabled",
    "UPDATE organizations SET deletion_job = id WHERE id = {organization}": "the organization was deleted",
    "UPDATE webhooks SET grant_id = id WHERE client_id = {client}": "the grant was revoked",
    "UPDATE webhooks SET is_ending = true WHERE client_id = {client}": "an administrator deleted the subscription",
}


@pytest.mark.parametrize(("statement", "reason"), ENDS.items(), ids=ENDS.values())
async def test_a_receiver_is_told_why_its_subscription_ended(front, sql, receiver, host, deliveries, statement, reason):
    organization_id = await front.organization()
    client_id, secret = await front.client(organization_id)
    async with (
        Api.of(front.base_url, client_id, secret) as api,
        aiohttp.ClientSession(headers=api.headers) as session,
    ):
        leaver = Host(Raw(session, f"{front.base_url}/mcp"), receiver, host.path)
        subscribed = (await leaver.subscribe()).result
    await sql(statement.format(client=f"'{client_id}'", organization=f"'{organization_id}'"))
    front.services.events.deliverer.on_client(client_id)
    await soon(lambda: leaver.of_type("terminated"))

    [terminated] = leaver.of_type("terminated")
    assert terminated["error"] == {"code": -32024, "message": "Forbidden", "data": {"reason": reason}}
    await soon(partial(_is_gone, sql, subscribed["id"]))


async def test_the_events_of_a_connector_end_with_its_deletion(front, host, api, deliveries):
    connector = await api.connector()
    arguments = {"connector_id": connector.record["id"]}
    await host.subscribe("connector.deleted", arguments=arguments)
    await host.subscribe("connector.needs_reauth", arguments=arguments)
    await api.call("DELETE", f"/api/v1/integrations/connectors/{connector.record['id']}")

    async def are_told() -> bool:
        front.services.events.deliverer.on_client("")
        return len(host.of_type("terminated")) == 2

    await soon(are_told)

    [deleted] = host.events
    error = host.of_type("terminated")[0]["error"]
    assert (deleted["name"], host.messages[-1]["type"]) == ("connector.deleted", "terminated")
    assert (error["code"], error["data"]["kind"]) == (-32023, "connector")
    assert (await host.subscribe(arguments=arguments)).code == -32023


@pytest.mark.parametrize("method", ["events/subscribe", "events/stream", "events/poll"])
async def test_nobody_subscribes_to_a_connector_that_it_may_not_see(front, host, method):
    async with front.api() as other:
        theirs = (await other.connector()).record["id"]
    delivery = {"url": host.receiver.url + host.path, "secret": host.secret}

    refused = [
        await host.mcp(method, {"name": CREATED, "delivery": delivery, "arguments": {"connector_id": id_}})
        for id_ in (theirs, str(uuid4()))
    ]

    assert refused[0].document["error"] == refused[1].document["error"]
    assert refused[0].document["error"]["data"] == {"kind": "connector"}
    assert host.messages == []


async def test_a_person_gets_no_events_of_workspaces_that_it_has_lost(front, sql, host, api, deliveries):
    subscribed = (await host.subscribe()).result
    [row] = await sql(
        "UPDATE webhooks SET owner_id = client_id WHERE subscription_id = $1 RETURNING client_id, organization_id",
        subscribed["id"],
    )
    await sql("INSERT INTO people (client_id, login) VALUES ($1, $2)", row["client_id"], subscribed["id"])
    await sql("UPDATE clients SET workspaces = '{one}' WHERE id = $1", row["client_id"])
    async with front.api(row["organization_id"]) as other:
        await other.connector(workspace_name="other")
        kept = await other.connector(workspace_name="one")
    await soon(lambda: host.events)

    assert [each["data"]["connector_id"] for each in host.events] == [kept.record["id"]]


async def test_a_subscription_that_is_refreshed_while_its_receiver_is_told_goes_on(front, sql, host, api, deliveries):
    subscribed = (await host.subscribe()).result
    told = []

    async def refreshed(event):
        if event.get("type") == "terminated" and not told:
            told.append(await host.subscribe())
        return web.Response(status=204)

    host.receiver.answers[host.path] = refreshed
    await sql("UPDATE webhooks SET grant_id = id WHERE subscription_id = $1", subscribed["id"])
    front.services.events.deliverer.on_client("")
    await soon(lambda: told)
    await front.services.events.deliverer.close()
    connector = await api.connector()
    await sql("UPDATE webhooks SET lease_until = NULL WHERE subscription_id = $1", subscribed["id"])
    await soon(lambda: host.events)

    assert told[0].result["id"] == subscribed["id"]
    assert [each["data"]["connector_id"] for each in host.events] == [connector.record["id"]]
