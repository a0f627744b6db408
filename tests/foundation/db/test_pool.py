"""Connections: bound to a tenant or blind, and gone PostgreSQL is an answer of ours."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from gateway.access.identity.store import IdentityStore
from gateway.errors import Unavailable
from gateway.foundation.db.pool import Database
from tests.harness.waiting import eventually

TENANT_TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
      AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'organization_id')
    ORDER BY relname
"""


@pytest.fixture
async def two_tenants(database: Database):
    store = IdentityStore(database)
    ids = [(await store.create_organization(f"o-{uuid4().hex}")).id for _ in range(2)]
    for each in ids:
        await store.workspace_named(each, "w")
    return ids


async def test_the_gateway_works_as_a_role_that_owns_nothing(database: Database):
    async with database.system() as connection:
        role = await connection.fetchrow(
            "SELECT rolname, rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname = current_user"
        )
        owned = await connection.fetchval("SELECT count(*) FROM pg_class WHERE relowner = current_user::regrole")

    assert tuple(role) == ("gateway_app", False, False, False)
    assert owned == 0


async def test_a_connection_sees_the_rows_of_its_tenant_only(database: Database, two_tenants):
    async with database.tenant(two_tenants[0]) as connection:
        seen = await connection.fetch("SELECT DISTINCT organization_id FROM workspaces")

    assert [row["organization_id"] for row in seen] == [two_tenants[0]]


async def test_a_connection_without_a_tenant_sees_nothing(database_url: str, two_tenants):
    connection = await asyncpg.connect(database_url)
    await connection.execute("SET ROLE gateway_app")

    seen = await connection.fetchval("SELECT count(*) FROM workspaces")
    await connection.close()

    assert seen == 0


async def test_a_tenant_cannot_write_rows_of_another(database: Database, two_tenants):
    async with database.tenant(two_tenants[0]) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(
                "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, 'theirs')", uuid4(), two_tenants[1]
            )


async def test_a_connection_that_comes_back_is_bound_to_its_next_user(database_url: str, two_tenants):
    async with Database.open(database_url, size=1) as narrow:
        async with narrow.system() as connection:
            everybodys = await connection.fetchval("SELECT count(*) FROM workspaces")
        async with narrow.tenant(two_tenants[1]) as connection:
            its_own = await connection.fetchval("SELECT count(*) FROM workspaces")

    assert everybodys >= 2
    assert its_own == 1


async def test_a_connection_that_comes_back_is_bound_to_the_person_of_its_next_use(database_url: str):
    organization_id, person, another = uuid4(), uuid4(), uuid4()

    async with Database.open(database_url, size=1) as narrow:
        uses = [
            narrow.all_copies(organization_id),
            narrow.tenant(organization_id, person),
            narrow.tenant(organization_id, another),
            narrow.tenant(organization_id),
            narrow.system(),
            narrow.tenant(organization_id),
        ]
        named = []
        for use in uses:
            async with use as connection:
                named.append(await connection.fetchval("SELECT current_setting('gateway.person')"))

    assert named == ["*", str(person), str(another), "", "*", ""]


async def test_every_table_of_tenants_is_held_to_row_level_security(database_url: str):
    connection = await asyncpg.connect(database_url)

    tables = {row["relname"] for row in await connection.fetch(TENANT_TABLES)}
    secured = {
        row["relname"]
        for row in await connection.fetch(
            "SELECT relname FROM pg_class WHERE relrowsecurity AND oid IN (SELECT polrelid FROM pg_policy)"
        )
    }
    await connection.close()

    assert len(tables) >= 10
    assert tables - secured == set()


async def test_a_server_that_is_not_there_is_unavailable_and_its_address_a_secret():
    with pytest.raises(Unavailable) as away:
        async with Database.open("postgresql://user:CANARY@127.0.0.1:1/gateway"):
            pass

    assert away.value.retry_after
    assert "CANARY" not in str(away.value)


async def test_a_connection_that_is_cut_while_used_is_unavailable(database: Database, database_url: str):
    server = await asyncpg.connect(database_url)

    with pytest.raises(Unavailable, match="it is unavailable"):  # noqa: PT012  the block is what is cut
        async with database.system() as connection:
            await server.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
            await connection.execute("SELECT pg_sleep(30)")

    await server.close()
    async with database.system() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_connection_that_is_lost_before_a_statement_is_executed_is_unavailable(database: Database):
    with pytest.raises(Unavailable):  # noqa: PT012  the block is what is cut
        async with database.system() as connection:
            connection.terminate()
            raise AttributeError("'NoneType' object has no attribute 'bind_execute'")  # as asyncpg does then

    with pytest.raises(AttributeError):
        async with database.system() as connection:
            raise AttributeError("a fault of ours")


async def test_a_wrong_call_of_a_statement_is_a_bug_and_no_outage(database: Database):
    with pytest.raises(asyncpg.InterfaceError, match="the server expects 1 argument"):
        async with database.system() as connection:
            await connection.fetchval("SELECT $1::integer", 1, 2)


async def test_a_statement_of_a_connection_that_was_closed_is_unavailable(database: Database):
    with pytest.raises(Unavailable) as lost:  # noqa: PT012  the block is what is cut
        async with database.system() as connection, connection.transaction():
            connection.terminate()
            await connection.execute("SELECT 1")

    assert lost.value.was_sent


async def test_a_pool_that_is_closed_is_unavailable_and_nothing_was_sent(database_url: str):
    async with Database.open(database_url, size=1) as closed:
        pass

    with pytest.raises(Unavailable) as refused:
        async with closed.system():
            pass

    assert not refused.value.was_sent


async def test_a_pool_with_nothing_free_is_unavailable_soon(database_url: str):
    async with Database.open(database_url, size=1) as narrow, narrow.system():
        with pytest.raises(Unavailable):
            async with narrow.system():
                pass


async def test_a_command_that_takes_too_long_is_given_up(database_url: str):
    async with Database.open(database_url, size=1, command_timeout=0.1) as hasty:
        with pytest.raises(Unavailable):
            async with hasty.system() as connection:
                await connection.execute("SELECT pg_sleep(30)")


async def test_a_slow_statement_is_waited_for_because_postgres_is_there(database_url: str):
    async with Database.open(database_url, size=1) as patient, patient.system() as connection:
        assert await connection.fetchval("SELECT 1 FROM pg_sleep(3)") == 1


async def test_who_waits_for_a_connection_that_a_slow_statement_holds_gets_it(database_url: str):
    async with Database.open(database_url, size=1) as narrow:

        async def run(statement: str) -> int:
            async with narrow.system() as connection:
                return await connection.fetchval(statement)

        assert await asyncio.gather(run("SELECT 1 FROM pg_sleep(3.5)"), run("SELECT 2")) == [1, 2]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("53100", "its disk is full"),
        ("53200", "it is out of memory"),
        ("53300", "it has too many connections"),
        ("25006", "it is read-only"),
        ("58030", "its disk fails"),
        ("40P01", "statements blocked each other"),
        ("40001", "statements blocked each other"),
    ],
)
async def test_what_postgres_cannot_do_for_now_is_unavailable_and_certainly_not_done(database, state, reason):
    with pytest.raises(Unavailable, match=reason) as unavailable:
        async with database.system() as connection:
            await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$")

    assert unavailable.value.retry_after
    assert not unavailable.value.was_sent


async def test_what_was_cut_while_it_ran_may_have_been_done(database: Database, database_url: str):
    server = await asyncpg.connect(database_url)

    with pytest.raises(Unavailable) as cut:  # noqa: PT012  the block is what is cut
        async with database.system() as connection:
            await server.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
            await connection.execute("SELECT pg_sleep(30)")
    await server.close()

    assert cut.value.was_sent


async def test_a_server_that_became_read_only_is_trouble_until_it_takes_writes_again(database_url: str):
    server = await asyncpg.connect(database_url)
    name = await server.fetchval("SELECT quote_ident(current_database())")
    await server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with Database.open(database_url, size=1) as standby:
        during = await standby.trouble()
    await server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    async with Database.open(database_url, size=1) as primary:
        after = await primary.trouble()
    await server.close()

    assert (during, after) == ("it is read-only", None)


async def test_a_full_disk_is_trouble_until_there_is_room(database_url: str):
    server = await asyncpg.connect(database_url)
    name = await server.fetchval("SELECT quote_ident(current_database())")
    await server.execute(f"ALTER DATABASE {name} SET temp_file_limit = 0")
    async with Database.open(database_url, size=1) as opened:
        with pytest.raises(Unavailable):
            async with opened.system() as connection:
                await connection.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$")
        at_once = await opened.trouble()
        later = await eventually(lambda: _other_trouble(opened, at_once))
        await server.execute(f"ALTER DATABASE {name} RESET temp_file_limit")
        await eventually(lambda: _is_well(opened))
    await server.close()

    assert (at_once, later) == ("its disk is full", "it lacks resources")


async def _other_trouble(database: Database, than: str | None) -> str | None:
    trouble = await database.trouble()
    return None if trouble == than else trouble


async def _is_well(database: Database) -> bool:
    return await database.trouble() is None


async def test_a_mistake_in_sql_is_not_taken_for_an_outage(database: Database):
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.system() as connection:
            await connection.execute("SELECT * FROM nothing_of_ours")
