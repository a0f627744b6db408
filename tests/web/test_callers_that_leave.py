"""A request that changes nothing ends on the server when its caller leaves; one that may change something goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.foundation.db.pool import Database
from tests.harness.caller import Api, ConnectorApi
from tests.harness.databases import waits_for_lock
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually


@asynccontextmanager
async def locked(database: Database, table: str) -> AsyncIterator[None]:
    """No statement that reads or writes the table ends within the block."""
    async with database.system() as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


async def left(database: Database, call: Any) -> None:
    """Send a request, and disconnect when its statement waits."""
    calling = asyncio.ensure_future(call)
    await eventually(lambda: waits_for_lock(database), within=20)
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)


async def test_the_statement_of_a_read_ends(api: Api, database: Database):
    async with locked(database, "webhooks"):
        await left(database, api.get("/api/v1/webhooks"))

        await eventually(lambda: _none_waits(database), within=5)


async def test_the_statement_of_a_search_ends(support_desk: ConnectorApi, database: Database):
    async with locked(database, "context_entities"):
        await left(database, support_desk.send("tickets", "context_store_search", {"query": {"filter": {}}}))

        await eventually(lambda: _none_waits(database), within=5)


async def test_a_change_goes_on(api: Api, sql: Callable[..., Any], database: Database, front: FrontEnd):
    body = {"url": "https://app.example.com/hooks", "types": ["record.*"], "description": "goes on"}
    async with locked(database, "webhooks"):
        await left(database, api.post("/api/v1/webhooks", body))

    await eventually(lambda: sql("SELECT 1 FROM webhooks WHERE description = 'goes on'"), within=20)


async def _none_waits(database: Database) -> bool:
    return not await waits_for_lock(database)


@pytest.fixture(autouse=True)
async def no_webhooks_left(sql: Callable[..., Any]) -> AsyncIterator[None]:
    yield
    await sql("DELETE FROM webhooks")
