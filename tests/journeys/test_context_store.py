"""Searching the copies: made with the connector, kept fresh, and told of writes made through the gateway."""

import asyncio

import pytest

PATIENCE = 60


async def synchronized(connector, *entities, full=False):
    """The result of a synchronization that has come to its end."""
    body = {"full": full} | ({"entities": list(entities)} if entities else {})
    accepted = await connector.api.post(f"{connector.path}/context-store/sync", body)
    assert accepted.status == 202, accepted.body
    answer = await connector.api.get(f"/api/v1/jobs/{accepted.json()['job']['id']}/result?wait={PATIENCE}")
    assert answer.status == 200, answer.body
    return {report["entity"]: report for report in answer.json()["result"]["entities"]}


async def search(connector, entity, filter_=None, **params):
    query = {"filter": filter_} if filter_ else {}
    return (await connector.execute(entity, "context_store_search", {"query": query, **params}))["result"]


async def test_a_new_connector_is_loaded_by_itself(support_desk):
    async with asyncio.timeout(PATIENCE):
        while not (found := await search(support_desk, "tickets", limit=1))["meta"]["synchronized"]:
            await asyncio.sleep(0.1)

    assert found["meta"]["total_synced"] == 500
    assert found["meta"]["as_of"]
    assert isinstance(found["meta"]["took_ms"], int)
