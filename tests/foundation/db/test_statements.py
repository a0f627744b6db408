"""No statement outlives its caller, and no organization takes the pool from the others."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.errors import Unavailable
from gateway.foundation.db.pool import Connection, Database
from tests.harness.waiting import eventually

LONG = "SELECT pg_sleep(600)"
_ACTIVE = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"
#: seconds within which PostgreSQL ends a statement, on a busy machine too
SOON = 30.0


@pytest.fixture
async def server(database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection that looks at the others."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[Database]:
    async with Database.open(database_url, size=1) as opened:
        yield opened


async def backend_of(database: Database) -> int:
    async with database.system() as connection:
        return connection.get_server_pid()


async def is_active(server: Connection, backend: int) -> bool:
    return bool(await server.fetchval(_ACTIVE, backend))


async def run(database: Database, organization_id: UUID, statement: str = LONG) -> None:
    async with database.tenant(organization_id) as connection:
        await connection.execute(statement)


async def test_a_statement_ends_when_its_caller_leaves(narrow: Database, server: Connection):
    backend = await backend_of(narrow)
    calling = asyncio.create_task(run(narrow, uuid4()))
    await eventually(lambda: is_active(server, backend))

    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)

    assert await backend_of(narrow) == backend
    assert not await is_active(server, backend)


async def test_a_statement_ends_when_its_time_is_over(database_url: str, server: Connection):
    async with Database.open(database_url, size=1, command_timeout=0.2) as hasty:
        backend = await backend_of(hasty)
        with pytest.raises(Unavailable):
            await run(hasty, uuid4())

        assert await backend_of(hasty) == backend
        assert not await is_active(server, backend)


async def test_a_statement_ends_when_the_connection_of_its_process_is_gone(narrow: Database, server: Connection):
    backend = await backend_of(narrow)
    async with narrow.system() as connection:
        running = asyncio.create_task(connection.execute(LONG))
        await eventually(lambda: is_active(server, backend))
        connection.terminate()
        await asyncio.gather(running, return_exceptions=True)

    async def has_ended() -> bool:
        return not await is_active(server, backend)

    await eventually(has_ended, within=SOON)


async def test_postgresql_ends_what_a_process_that_was_cut_off_left_behind(narrow: Database):
    limits = ("statement_timeout", "idle_in_transaction_session_timeout", "client_connection_check_interval")
    async with narrow.system() as connection:
        values = [await connection.fetchval(f"SHOW {limit}") for limit in limits]

    assert values == ["65s", "1min", "2s"]


async def test_a_statement_that_postgresql_ended_was_not_done_and_can_be_repeated(narrow: Database):
    with pytest.raises(Unavailable, match="took too long") as ended:
        await run(narrow, uuid4(), "SET statement_timeout = '50ms'; SELECT pg_sleep(600)")

    assert ended.value.retry_after
    assert not ended.value.was_sent


async def test_one_organizations_statements_leave_connections_to_the_others(database_url: str):
    greedy, other, used = uuid4(), uuid4(), list[int]()
    async with Database.open(database_url, size=8, command_timeout=2) as database:
        await run(database, other, "SELECT 1")  # an organization that is alone may use all of them
        calls = [asyncio.create_task(run(database, greedy)) for _ in range(30)]
        while not any(call.done() for call in calls):
            await run(database, other, "SELECT 1")
            async with database.system() as connection:
                await connection.execute("SELECT 1")
            used.append(database.shares.used(str(greedy)))
        ends = await asyncio.gather(*calls, return_exceptions=True)

    assert max(used) == 3
    refusals = [str(end) for end in ends if isinstance(end, Unavailable) and end.retry_after]
    assert len(refusals) == 30
    assert any("the organization uses" in refusal for refusal in refusals)


async def test_organizations_leave_connections_to_claims_leases_and_sign_ins(database_url: str):
    async with Database.open(database_url, size=8, command_timeout=2) as database:
        calls = [asyncio.create_task(run(database, uuid4())) for _ in range(30)]
        await eventually(lambda: database.use["used"] == 6)

        async with asyncio.timeout(1):
            await asyncio.gather(database.read_clock(), database.read_clock())

        assert database.use["used"] == 6
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
