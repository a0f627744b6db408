"""The partitions of the request log on a real PostgreSQL: added and dropped beside insertions, and isolated."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

from gateway.access.request_log.log import RequestLog
from gateway.access.request_log.pruning import prune_request_log
from gateway.contract.gateway_state import RequestSelection
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from tests.access.request_log.test_log import sent, written
from tests.connectors.conftest import Create, create, organization_id, store, stranger_id  # noqa: F401 - fixtures
from tests.harness.databases import created_database, url_of

DAY = 86400
MANY = 1_000_000
PARTITIONS = (
    "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'request_log'::regclass ORDER BY inhrelid"
)
INSERT = """
    INSERT INTO request_log (organization_id, connector_id, at, method, path, duration_ms, attempt, bytes_in, bytes_out)
    SELECT $1, $2, now() - make_interval(secs => $3), 'GET', '/' || number, 1, 1, 0, 0
    FROM generate_series(1, $4::integer) AS number
"""
DELETE_ROWS = "SELECT * FROM gateway_delete_rows($1, $2, NULL, now(), 100)"


@pytest.fixture
async def database_url(postgres_url: str, migrated_database: str) -> AsyncIterator[str]:
    """A migrated database for one test."""
    async with created_database(postgres_url, migrated_database) as name:
        yield url_of(postgres_url, name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database.open(database_url, command_timeout=10) as opened:
        yield opened


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """The role that migrates."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def partitions(database: Database) -> list[str]:
    async with database.system() as connection:
        return [row[0] for row in await connection.fetch(PARTITIONS)]


async def paths(database: Database, organization_id: UUID) -> list[str]:  # noqa: F811
    page = await RequestLog(database).find(organization_id, RequestSelection(), limit=1000)
    return [each.path for each in page.data]


async def test_the_log_continues_in_a_new_partition_after_an_eighth_of_the_rows(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()

    await written(database, *(sent(connector_id, path=f"/{number}") for number in range(5)))
    await prune_request_log(database, DAY, 48)
    before = await partitions(database)
    await written(database, sent(connector_id, path="/5"))
    await prune_request_log(database, DAY, 48)
    await written(database, sent(connector_id, path="/6"))

    assert before == ["request_log_0"]
    assert await partitions(database) == ["request_log_0", "request_log_7"]
    assert await paths(database, organization_id) == ["/6", "/5", "/4", "/3", "/2", "/1", "/0"]


async def test_the_oldest_partitions_beyond_the_rows_are_dropped(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()

    for number in range(12):
        await written(database, sent(connector_id, path=f"/{number}"))
        await prune_request_log(database, DAY, 8)

    assert await paths(database, organization_id) == ["/11", "/10", "/9", "/8", "/7", "/6", "/5"]
    assert len(await partitions(database)) == 8


async def test_a_partition_is_dropped_once_all_its_requests_are_old(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()
    yesterday = sent(connector_id, at=CLOCK.unix_time() - DAY - 60, path="/yesterday")

    await written(database, yesterday, sent(connector_id, path="/now"))
    await prune_request_log(database, DAY, MANY)
    await written(database, sent(connector_id, at=CLOCK.unix_time() - DAY - 60, path="/late"))
    await prune_request_log(database, DAY, MANY)
    await prune_request_log(database, DAY, MANY)

    assert await paths(database, organization_id) == ["/now", "/yesterday"]


async def test_a_log_without_requests_stays_as_it_is(database: Database):
    await prune_request_log(database, 0, 1000)

    assert await partitions(database) == ["request_log_0"]


async def test_requests_are_stored_after_a_long_downtime_and_after_a_clock_that_was_wrong(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id, now = await create(), CLOCK.unix_time()
    times = {"/month ago": now - 30 * DAY, "/future": now + 3650 * DAY, "/now": now}

    await written(database, sent(connector_id, at=times["/month ago"], path="/month ago"))
    await prune_request_log(database, DAY, MANY)
    await written(database, *(sent(connector_id, at=at, path=path) for path, at in times.items()))
    stored = await paths(database, organization_id)
    await prune_request_log(database, DAY, MANY)

    assert stored == ["/now", "/future", "/month ago", "/month ago"]
    assert await paths(database, organization_id) == ["/now", "/future", "/month ago"]


async def test_processes_that_prune_at_once_add_one_partition(
    database_url: str,
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    await written(database, sent(await create()))

    async with Database.open(database_url) as other:
        await asyncio.gather(*(prune_request_log(each, DAY, 8) for each in [database, other] * 5))

    assert await partitions(database) == ["request_log_0", "request_log_2"]


async def test_no_insertion_fails_while_partitions_come_and_go(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id, added = await create(), count()

    async def insert() -> None:
        for _ in range(40):
            async with database.system() as connection:
                await connection.execute(INSERT, organization_id, connector_id, 0, 25)
            next(added)

    async def prune() -> None:
        while not inserting.done():
            await prune_request_log(database, DAY, 40_000)
            async with database.system() as connection:
                await connection.fetchval("SELECT gateway_continue_request_log()")

    inserting = asyncio.gather(*(insert() for _ in range(4)))
    await asyncio.gather(inserting, prune(), prune())

    async with database.system() as connection:
        assert await connection.fetchval("SELECT count(DISTINCT id) FROM request_log") == 4 * 40 * 25
        assert next(added) == 160
    assert len(await partitions(database)) > 2


async def test_an_insertion_that_has_not_committed_delays_the_next_partition_and_is_not_lost(
    database: Database,
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()
    await written(database, sent(connector_id, path="/before"))

    async with database.system() as inserting, inserting.transaction():
        await inserting.execute(INSERT, organization_id, connector_id, 0, 1)
        await prune_request_log(database, DAY, 8)
        meanwhile = await partitions(database)
    await prune_request_log(database, DAY, 8)

    assert meanwhile == ["request_log_0"]
    assert await partitions(database) == ["request_log_0", "request_log_3"]
    assert await paths(database, organization_id) == ["/1", "/before"]


@pytest.mark.parametrize("verb", ["SELECT FROM", "DELETE FROM", "INSERT INTO", "TRUNCATE"])
async def test_the_gateways_role_has_no_right_to_a_partition(
    database: Database,
    create: Create,  # noqa: F811
    verb: str,
):
    await written(database, sent(await create()))
    await prune_request_log(database, DAY, 8)
    names = await partitions(database)

    for name in names:
        statement = f"{verb} {name}" + (" DEFAULT VALUES" if verb == "INSERT INTO" else "")
        async with database.system() as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    assert len(names) == 2


async def test_row_level_security_holds_in_a_partition_even_with_a_right_to_it(
    database: Database,
    owner: "asyncpg.Connection[asyncpg.Record]",
    organization_id: UUID,  # noqa: F811
    stranger_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()
    await written(database, sent(connector_id))
    await prune_request_log(database, DAY, 8)
    await written(database, sent(connector_id))

    seen = {}
    for name in await partitions(database):
        await owner.execute(f"GRANT SELECT ON {name} TO gateway_app")
        for whose in (organization_id, stranger_id):
            async with database.tenant(whose) as connection:
                seen[name, whose] = await connection.fetchval(f"SELECT count(*) FROM {name}")

    assert [count for (_, whose), count in seen.items() if whose == organization_id] == [1, 1]
    assert [count for (_, whose), count in seen.items() if whose == stranger_id] == [0, 0]


@pytest.mark.parametrize("name", ["request_log_0", "request_log", "audit", "jobs", "missing"])
async def test_only_partitions_that_are_not_the_last_one_can_be_dropped(
    database: Database, owner: "asyncpg.Connection[asyncpg.Record]", name: str
):
    tables = "SELECT array_agg(relname ORDER BY relname) FROM pg_class WHERE relkind IN ('r', 'p')"
    before = await owner.fetchval(tables)

    async with database.system() as connection:
        was_dropped = await connection.fetchval("SELECT gateway_drop_requests($1)", name)

    assert not was_dropped
    assert await owner.fetchval(tables) == before


async def test_the_rows_of_an_organization_are_deleted_from_all_partitions_and_no_others(
    database: Database,
    organization_id: UUID,  # noqa: F811
    stranger_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()
    async with database.system() as connection:
        for whose, other in ((organization_id, stranger_id), (stranger_id, organization_id)):
            await connection.execute(INSERT, whose, connector_id, 0, 3)
            await connection.execute(INSERT, other, connector_id, 0, 2)
            await connection.fetchval("SELECT gateway_continue_request_log()")

        deleted = dict(await connection.fetch(DELETE_ROWS, organization_id, uuid4()))

    assert deleted["request_log"] == 5
    assert not {name for name in deleted if name.startswith("request_log_")}
    assert await paths(database, organization_id) == []
    assert len(await paths(database, stranger_id)) == 5


def nodes(plan: dict) -> list[dict]:
    return [plan, *(node for part in plan.get("Plans", ()) for node in nodes(part))]


async def test_a_page_is_read_from_the_newest_partitions_only(
    database: Database,
    owner: "asyncpg.Connection[asyncpg.Record]",
    organization_id: UUID,  # noqa: F811
    create: Create,  # noqa: F811
):
    connector_id = await create()
    for _ in range(4):
        async with database.system() as connection:
            await connection.execute(INSERT, organization_id, connector_id, 0, 2000)
            await connection.fetchval("SELECT gateway_continue_request_log()")
    await owner.execute("ANALYZE request_log")
    query = "SELECT id FROM request_log WHERE organization_id = $1 AND connector_id = $2 ORDER BY id DESC LIMIT 101"
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {query}"

    async with database.tenant(organization_id) as connection:
        (found,) = (await connection.fetchrow(explain, organization_id, connector_id)).values()
    plan = nodes(msgspec.json.decode(found)[0]["Plan"])

    read = {node["Relation Name"] for node in plan if "Relation Name" in node and node["Actual Loops"]}
    assert {node["Node Type"] for node in plan} <= {"Limit", "Append", "Result", "Index Scan", "Index Only Scan"}
    assert read == {"request_log_6001", "request_log_8001"}
