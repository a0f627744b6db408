"""Through PgBouncer in transaction mode: every transaction has its tenant, and leaves nothing to the next."""

import asyncio
import os
import pwd
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.access.identity.store import IdentityStore
from gateway.context_store import entities, records
from gateway.context_store.layout import Layout
from gateway.contract.jobs import JobStatus
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.foundation.db.migrate import migrate, pending
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.jobs.leases import JobOutcome, Leases
from gateway.jobs.model import NewJob
from gateway.jobs.store import JobStore
from tests.harness.clusters import with_cluster
from tests.harness.folders import short_path
from tests.harness.in_process import front_end
from tests.harness.processes import free_port
from tests.harness.waiting import eventually
from tests.jobs.conftest import UNSEALED

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
#: fewer connections than there are users, so that they change hands all the time
CONFIGURATION = """
[databases]
gateway = host={sockets} dbname=gateway user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
"""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(PROGRAM is None, reason="there is no PgBouncer: apt-get install pgbouncer"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL whose socket PgBouncer can get to."""
    with short_path() as folder:
        folder.chmod(0o755)
        postgres = with_cluster(EmbeddedPostgres(folder / "postgres", durable=False))
        postgres.start()
        (folder / "postgres").chmod(0o755)
        yield postgres
        postgres.stop()


@pytest.fixture(scope="module")
async def pooled_url(server: EmbeddedPostgres) -> AsyncIterator[str]:
    """The migrated database through PgBouncer."""
    await migrate(server.url)
    port, folder = free_port(), server.directory.parent
    (folder / "pgbouncer.ini").write_text(CONFIGURATION.format(sockets=server.sockets, port=port))
    owner = pwd.getpwuid(server.sockets.stat().st_uid).pw_name
    as_owner = ("-u", owner) if os.geteuid() == 0 else ()
    process = await asyncio.create_subprocess_exec(str(PROGRAM), "-q", *as_owner, str(folder / "pgbouncer.ini"))
    url = f"postgresql://anybody@127.0.0.1:{port}/gateway"
    await eventually(lambda: _answers(url))
    yield url
    process.terminate()
    await process.wait()


async def _answers(url: str) -> bool:
    try:
        await (await asyncpg.connect(url, statement_cache_size=0)).close()
    except OSError:
        return False
    return True


@pytest.fixture
async def pooled(pooled_url: str) -> AsyncIterator[Database]:
    async with Database.open(pooled_url, size=20, has_pooler=True) as database:
        yield database


@pytest.fixture
async def organization_id(pooled: Database) -> UUID:
    return (await IdentityStore(pooled).create_organization(f"o-{uuid4().hex}")).id


async def test_everybody_sees_their_own_rows_while_connections_change_hands(pooled: Database) -> None:
    store = IdentityStore(pooled)
    ours = [(await store.create_organization(f"o-{uuid4().hex}")).id for _ in range(10)]
    for each in ours:
        await store.workspace_named(each, "w")

    async def seen(organization_id: UUID) -> set[tuple[UUID, str]]:
        async with pooled.tenant(organization_id) as connection:
            found = [await connection.fetch("SELECT organization_id, current_user FROM workspaces") for _ in range(20)]
        return {(row["organization_id"], row["current_user"]) for rows in found for row in rows}

    answers = await asyncio.gather(*(seen(each) for each in ours))

    assert answers == [{(each, "gateway_app")} for each in ours]


async def test_a_transaction_leaves_no_role_tenant_or_person_to_the_next(pooled: Database, pooled_url: str) -> None:
    async with pooled.tenant(uuid4(), uuid4()) as connection:
        await connection.fetchval("SELECT 1")
        with pytest.raises(asyncpg.DivisionByZeroError):
            await connection.fetchval("SELECT 1 / 0")
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with connection.transaction():
                await connection.execute("SELECT 1 / 0")

    strangers = [await asyncpg.connect(pooled_url, statement_cache_size=0) for _ in range(3)]
    for each in strangers:
        left = await each.fetchrow(
            "SELECT current_user, current_setting('gateway.tenant', true), current_setting('gateway.person', true)"
        )
        await each.close()
        assert [value or "" for value in left] == ["postgres", "", ""]


async def test_postgresql_limits_the_statements_of_every_transaction(pooled: Database) -> None:
    async with pooled.system() as connection:
        limit = await connection.fetchval("SHOW statement_timeout")
        disconnect_check = await connection.fetchval("SHOW client_connection_check_interval")

    assert (limit, disconnect_check) == ("65s", "2s")


async def test_a_block_is_one_transaction_and_a_nested_one_a_savepoint(pooled: Database, organization_id: UUID) -> None:
    insert = "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, $3)"

    async with pooled.tenant(organization_id) as connection, connection.transaction():
        await connection.execute(insert, uuid4(), organization_id, "kept")
        with pytest.raises(asyncpg.UniqueViolationError):
            async with connection.transaction():
                await connection.execute(insert, uuid4(), organization_id, "kept")

    async with pooled.tenant(organization_id) as connection:
        assert await connection.fetchval("SELECT count(*) FROM workspaces") == 1


async def test_every_transaction_has_its_person(pooled: Database, organization_id: UUID) -> None:
    people = [uuid4(), None, uuid4()]

    async def named(person: UUID | None) -> set[str]:
        async with pooled.tenant(organization_id, person) as connection:
            return {await connection.fetchval("SELECT current_setting('gateway.person', true)") for _ in range(20)}

    answers = await asyncio.gather(*(named(person) for person in people))
    async with pooled.all_copies(organization_id) as connection:
        own_work = await connection.fetchval("SELECT current_setting('gateway.person', true)")

    assert answers == [{"" if person is None else str(person)} for person in people]
    assert own_work == "*"


async def test_what_is_no_tenant_or_person_never_becomes_part_of_a_statement(pooled: Database) -> None:
    injected = "'; DROP TABLE jobs; --"
    for whose in ((injected, None), (uuid4(), injected)):
        with pytest.raises(ValueError, match="UUID"):
            async with pooled.tenant(*whose):  # type: ignore[arg-type]
                pass


async def test_jobs_run_and_records_are_stored(pooled: Database, organization_id: UUID) -> None:
    jobs, leases = JobStore(pooled, 60, UNSEALED), Leases(pooled, 60, UNSEALED)
    new = NewJob(id=uuid4(), organization_id=organization_id, entity="tickets", action="list")
    job = (await jobs.accept(new, claimed_by="a worker")).job

    assert await leases.heartbeat("a worker", [(job.id, job.fence)]) == {(job.id, job.fence): False}
    await leases.progress(job, 1, 2, "half")
    await leases.finish(
        job, JobOutcome(status=JobStatus.SUCCEEDED, result={"result": None, "collected": "$", "meta": {}})
    )

    assert (await jobs.get(organization_id, job.id)).status is JobStatus.SUCCEEDED
    assert [event.event for event in await jobs.events(await jobs.get(organization_id, job.id), 0)]


async def test_a_front_end_serves_calls_and_hears_of_changes(
    pooled_url: str, server: EmbeddedPostgres, redis_url: str, tmp_path: Path
) -> None:
    settings = {"database_direct_url": server.url}
    async with front_end(tmp_path, pooled_url, redis_url, **settings) as front, front.api() as api:
        connector = await api.connector()

        listed = await connector.execute("tickets", "list", {"per_page": 1})
        headers = {"Idempotency-Key": uuid4().hex}
        body = {"ticket": {"subject": "s", "comment": {"body": "b"}}}
        answers = [await connector.send("tickets", "create", body, headers=headers) for _ in range(2)]
        await api.call("PATCH", connector.path, json={"status": "disabled"})

        async def is_refused() -> bool:
            return (await connector.send("tickets", "list")).status == 409

        await eventually(is_refused)

    assert listed["status"] == "success"
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].json()["result"] == answers[1].json()["result"]


async def test_where_nothing_can_be_listened_to_everything_is_looked_at_again() -> None:
    looked = asyncio.Event()
    notifications = NotificationListener(None)
    notifications.subscribe({}, looked.set)

    async with notifications.listening():
        assert await asyncio.wait_for(looked.wait(), 10)


async def test_what_is_missing_is_reported_through_the_pooler_too(pooled_url: str) -> None:
    assert await pending(pooled_url) == []


async def test_records_are_stored_and_found(pooled: Database, organization_id: UUID) -> None:
    workspace_id = await IdentityStore(pooled).workspace_named(organization_id, "w")
    connector_id = uuid4()
    async with pooled.tenant(organization_id) as connection:
        await connection.execute(
            "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)"
            " VALUES ($1, $2, $3, 'k', 'c', 'active')",
            connector_id,
            organization_id,
            workspace_id,
        )
        entity = await entities.register(connection, connector_id, organization_id, "tickets", Layout())
        written = await records.upsert(connection, entity, [(str(n), b'{"id": 1}') for n in range(1500)])

    assert written.added == 1500
