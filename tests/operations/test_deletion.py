"""Deletion on a real PostgreSQL and Redis: nothing is left, whatever dies in between, and nothing comes back."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest
from msgspec.structs import replace

from gateway.access.audit.log import Audit, EntryFilter
from gateway.access.identity.directory import Directory
from gateway.access.identity.people import People
from gateway.access.request_log.log import RequestLog
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.model import ConnectorRecord, NewConnector
from gateway.context_store import entities, records
from gateway.context_store.layout import Layout
from gateway.contract.jobs import JobStatus
from gateway.contract.people import NewPerson
from gateway.errors import GatewayError, NotFound, ResultExpired
from gateway.jobs import results
from gateway.jobs.leases import JobOutcome, Leases, LostLease
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.removal import JobRemoval
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.store import IdempotencyKey, JobStore
from gateway.jobs.stored_files.blobs import FolderBlobs
from gateway.jobs.stored_files.store import StoredFiles
from gateway.jobs.wakeup import Wakeup
from gateway.operations.deletion import Deletion
from gateway.upstream.run_context import Effects
from tests.connectors.consent.conftest import World, catalog, opening, server, world  # noqa: F401 - fixtures
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually
from tests.jobs.conftest import UNSEALED

RETENTION = 3600
STEPS = 6
CANARY = "CANARY-of-the-application"
#: columns of a job that stay with its row: words of the gateway and of the kind, ids, and the name of the workspace
STAYING = {
    "action", "effect", "entity", "key_id", "kind", "policies", "request_id", "session", "status", "surface", "task",
    "traceparent", "worker", "workspace_name", "wrapped_key",
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A world with everything that a deletion touches."""

    world: World
    deletion: Deletion
    jobs: JobStore
    leases: Leases
    folder: Path

    async def connector(self, owner_id: UUID | None = None) -> ConnectorRecord:
        """A connector with a grant, a record, a finished job, and a stored file of that job."""
        record = await self.world.connector("work-management", self.world.server.pair(), owner_id=owner_id)
        organization_id = record.organization_id
        async with self.world.database.all_copies(organization_id) as connection:
            entity = await entities.register(connection, record.id, organization_id, "tasks", Layout())
            await records.upsert(connection, entity, [("1", f'{{"id": "1", "name": "{CANARY}"}}'.encode())])
        job = await self.running(record, key=IdempotencyKey("k", b"f", 60))
        await self.leases.progress(job, 1, 2, CANARY)
        result = {"result": None, "collected": "$", "meta": {"next": CANARY}, "parts": 1}
        await self.leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED, result=result, part=1, lines=CANARY))
        await FolderBlobs(self.folder).put(f"{organization_id}/{job.id}.{job.fence}", _pieces())
        return record

    async def running(self, record: ConnectorRecord, key: IdempotencyKey | None = None) -> StoredJob:
        """A job of the connector that a worker runs."""
        new = NewJob(
            id=uuid4(),
            organization_id=record.organization_id,
            client_id=self.world.caller.client_id,
            connector_id=record.id,
            params={"name": CANARY},
            labels={"label": CANARY},
        )
        return (await self.jobs.accept(new, key, claimed_by="a worker")).job

    async def left(self, connector_id: UUID) -> dict[str, int]:
        """What is still there of a connector, by what it is."""
        tables = {
            "connectors": "connectors WHERE id = $1",
            "secrets": "connector_secrets WHERE connector_id = $1",
            "entities": "context_entities WHERE connector_id = $1",
            "records": "context_records JOIN context_entities AS e ON e.id = entity_id WHERE e.connector_id = $1",
            "results": "job_results JOIN jobs ON jobs.id = job_id WHERE connector_id = $1",
            "events": "job_events JOIN jobs ON jobs.id = job_id WHERE connector_id = $1 AND task = 'operation'",
            "keys": "idempotency_keys WHERE connector_id = $1",
            "words": f"jobs WHERE connector_id = $1 AND jobs::text LIKE '%{CANARY}%'",
        }
        counts = {name: await self.world.sql(f"SELECT count(*) FROM {it}", connector_id) for name, it in tables.items()}
        counts["files"] = len([path for path in self.folder.rglob("*") if path.is_file()])
        return {name: int(str(count)) for name, count in counts.items() if count}

    async def carry_out(self, job: StoredJob) -> JobRunContext:
        """What a worker does with a deletion's job that it has claimed, up to the statement that ends it."""
        await self.world.sql("UPDATE jobs SET status = 'running', fence = 1 WHERE id = $1", job.id)
        job = replace(job, fence=1)
        run = {
            "delete_connector": self.deletion.run_delete_connector,
            "delete_workspace": self.deletion.run_delete_workspace,
            "delete_person": self.deletion.run_delete_person,
        }
        run_context = JobRunContext(self.leases, job)
        await run[job.task](job, run_context)
        return run_context

    @property
    def revoked(self) -> int:
        """How many grants the application was asked to end."""
        return len([each for each in self.world.server.seen if each.path == "/-/oauth_revoke"])


async def _pieces() -> AsyncIterator[bytes]:
    yield CANARY.encode()


@pytest.fixture
async def setting(world: World, redis_url: str, tmp_path: Path) -> AsyncIterator[Setting]:  # noqa: F811
    database, jobs = world.database, JobStore(world.database, RETENTION, UNSEALED)
    async with Wakeup.open(redis_url) as wakeup:
        deletion = Deletion(
            audit=Audit(database),
            database=database,
            connectors=world.connectors,
            access=ConnectorAccess(world.connectors, world.identity, world.catalog),
            identity=world.identity,
            directory=Directory(Audit(database), People(database, world.identity), world.identity),
            jobs=jobs,
            job_removal=JobRemoval(database, RETENTION, UNSEALED),
            files=StoredFiles(FolderBlobs(tmp_path), database, 1 << 20),
            authorizers=world.oauth.authorizers,
            wakeup=wakeup,
            request_log=RequestLog(database),
            forget=lambda connector_id: None,
            timeout=0.0,
        )
        yield Setting(world, deletion, jobs, Leases(database, RETENTION, UNSEALED), tmp_path)


async def test_a_deleted_connector_leaves_nothing(setting: Setting) -> None:
    record = await setting.connector()
    before, forgotten = set(await setting.left(record.id)), list[str]()

    deletion = dataclasses.replace(setting.deletion, forget=forgotten.append)
    job = await deletion.delete_connector(setting.world.caller, record.id)
    await setting.carry_out(job)

    assert before == {"connectors", "secrets", "entities", "records", "results", "keys", "words", "files", "events"}
    assert await setting.left(record.id) == {}
    assert (setting.revoked, forgotten) == (1, [str(record.id)])


async def test_the_own_connectors_of_a_deleted_person_are_hidden_at_once_and_leave_nothing(setting: Setting) -> None:
    person = await setting.deletion.directory.create(setting.world.caller, NewPerson(name="Ada"))
    own = await setting.connector(UUID(person.id))
    shared = await setting.world.connector("work-management", setting.world.server.pair())

    job = await setting.deletion.delete_person(setting.world.caller, UUID(person.id))
    with pytest.raises(NotFound):
        await setting.world.again(own.id)
    await setting.carry_out(job)

    assert await setting.left(own.id) == {}
    assert (await setting.world.again(shared.id)).id == shared.id


async def test_no_connector_is_created_for_a_person_who_was_deleted_meanwhile(setting: Setting) -> None:
    record = await setting.connector()
    person = await setting.deletion.directory.create(setting.world.caller, NewPerson(name="Ada"))
    new = NewConnector(
        workspace_id=record.workspace_id,
        kind=record.kind,
        settings={"name": "Late"},
        auth_method=record.auth_method or "",
        environment={},
        credentials={},
        owner_id=UUID(person.id),
    )
    await setting.deletion.delete_person(setting.world.caller, UUID(person.id))

    with pytest.raises(NotFound, match="the person was suspended or deleted meanwhile"):
        await setting.world.connectors.create(record.organization_id, new)


@pytest.mark.parametrize("done", range(STEPS + 1))
async def test_a_worker_that_dies_after_any_step_is_followed_by_one_that_ends_it(setting: Setting, done: int) -> None:
    record = await setting.connector()
    job = await setting.deletion.delete_connector(setting.world.caller, record.id)
    steps = setting.deletion.steps(record.organization_id, record.id)

    for step in steps[:done]:
        await step()
    await setting.carry_out(job)

    assert len(steps) == STEPS
    assert await setting.left(record.id) == {}
    assert setting.revoked >= 1


async def test_what_is_deleted_is_there_until_its_job_is_written(setting: Setting, database_url: str) -> None:
    record = await setting.connector()

    async with _no_deletions(database_url):
        with pytest.raises((asyncpg.PostgresError, GatewayError)):
            await setting.deletion.delete_connector(setting.world.caller, record.id)
        with pytest.raises((asyncpg.PostgresError, GatewayError)):
            await setting.deletion.delete_workspace(setting.world.caller, record.workspace_id)

    assert (await setting.world.again(record.id)).workspace_name == record.workspace_name


async def test_a_deletion_whose_job_ended_undone_gets_another_and_only_one(setting: Setting) -> None:
    connector, workspace = await setting.connector(), await setting.connector()
    alone = await setting.deletion.delete_connector(setting.world.caller, connector.id)
    all_of_it = await setting.deletion.delete_workspace(setting.world.caller, workspace.workspace_id)
    await setting.world.sql("UPDATE jobs SET status = 'failed' WHERE id = ANY ($1)", [alone.id, all_of_it.id])
    await setting.world.sql("UPDATE connectors SET deleted_at = now() - interval '1 hour' WHERE deleted_at IS NOT NULL")
    await setting.world.sql(
        "UPDATE workspaces SET deletion_began_at = now() - interval '1 hour' WHERE deletion_began_at < now()"
    )

    resumed = [await setting.deletion.resume(), await setting.deletion.resume()]

    assert resumed == [1, 0]  # both lie in the workspace, whose job deletes all
    (job_id,) = await _queued(setting)
    await setting.carry_out(await setting.jobs.get_stored(setting.world.organization_id, job_id))
    assert await setting.left(connector.id) == await setting.left(workspace.id) == {}


async def test_a_job_that_runs_on_cannot_store_its_result(setting: Setting) -> None:
    record = await setting.connector()
    running = await setting.running(record)

    await setting.carry_out(await setting.deletion.delete_connector(setting.world.caller, record.id))

    with pytest.raises(LostLease):
        await setting.leases.finish(running, JobOutcome(status=JobStatus.SUCCEEDED, result={"result": CANARY}))
    assert (await setting.jobs.get(record.organization_id, running.id)).status is JobStatus.CANCELED
    assert await setting.left(record.id) == {}


async def test_a_call_that_outlasts_its_connector_becomes_no_job(setting: Setting) -> None:
    record = await setting.connector()
    new = NewJob(id=uuid4(), organization_id=record.organization_id, connector_id=record.id)
    before = await setting.jobs.accept(new, claimed_by="a worker", needs_connector=True)

    await setting.deletion.delete_connector(setting.world.caller, record.id)
    with pytest.raises(NotFound):
        await setting.jobs.accept(replace(new, id=uuid4()), claimed_by="a worker", needs_connector=True)

    assert before.job.status is JobStatus.RUNNING


async def test_a_write_that_was_out_ends_unknown(setting: Setting) -> None:
    record = await setting.connector()
    running = await setting.running(record)
    await setting.world.sql("UPDATE jobs SET effect = 'write', in_flight_since = now() WHERE id = $1", running.id)

    await setting.carry_out(await setting.deletion.delete_connector(setting.world.caller, record.id))

    ended = await setting.jobs.get(record.organization_id, running.id)
    assert ended.status is JobStatus.UNKNOWN
    error = ended.error or {}
    assert (error["code"], error["outcome"], error["safe_to_retry"]) == ("outcome_unknown", "unknown", False)
    assert set(error["known"]) == {"request_sent", "sent_at"}


@pytest.mark.parametrize("is_canceled", [False, True], ids=["waiting", "canceled before"])
@pytest.mark.parametrize("is_open", [False, True], ids=["all ended", "one under way"])
async def test_partly_done_work_that_waits_ends_with_what_is_known(
    setting: Setting, is_open: bool, is_canceled: bool
) -> None:
    record = await setting.connector()
    job = await setting.running(record)
    await setting.world.sql("UPDATE jobs SET effect = 'write' WHERE id = $1", job.id)
    effects = Effects(known={"items": 100, "items_done": 40}, is_open=is_open, summary="40 of 100 done")
    await setting.leases.checkpoint(job, effects.document(), {})
    await setting.leases.defer(job, 3600, "limited")
    await setting.world.sql("UPDATE jobs SET cancel_requested = $2 WHERE id = $1", job.id, is_canceled)

    await setting.carry_out(await setting.deletion.delete_connector(setting.world.caller, record.id))

    ended = await setting.jobs.get(record.organization_id, job.id)
    assert ended.status is (JobStatus.UNKNOWN if is_open else JobStatus.CANCELED)
    assert ended.error is not None
    assert (ended.error["known"]["items"], ended.error["known"]["items_done"]) == (100, 40)
    assert ended.error["safe_to_retry"] is False
    (end,) = await Audit(setting.world.database).find(record.organization_id, EntryFilter(outcome=ended.status.value))
    assert end.connector_id == record.id


async def test_a_result_of_a_deleted_connector_has_expired(setting: Setting) -> None:
    record = await setting.connector()
    (job_id,) = await _of(setting, record.id)

    await setting.carry_out(await setting.deletion.delete_connector(setting.world.caller, record.id))

    ended = await setting.jobs.get(record.organization_id, job_id)
    assert ended.status is JobStatus.SUCCEEDED
    with pytest.raises(ResultExpired):
        results.require_result(ended, await setting.jobs.head(ended))


async def test_every_other_column_of_a_deleted_connectors_job_is_emptied(setting: Setting) -> None:
    job = await setting.running(await setting.connector())
    document = f'{{"detail": "{CANARY}"}}'
    async with setting.world.database.tenant(job.organization_id) as connection:
        types: dict[str, str] = dict(await connection.fetch(_COLUMNS))
        filled = ", ".join(f"{name} = '{document}'::{of}" for name, of in types.items() if name not in STAYING)
        await connection.execute(f"UPDATE jobs SET {filled} WHERE id = $1", job.id)

    await JobRemoval(setting.world.database, RETENTION, UNSEALED).empty(job.organization_id, [job.id])

    async with setting.world.database.tenant(job.organization_id) as connection:
        row = await connection.fetchrow("SELECT * FROM jobs WHERE id = $1", job.id)
    assert types.keys() > STAYING
    assert [name for name, value in dict(row).items() if CANARY in str(value)] == []


@pytest.mark.parametrize("malformed", ["", "{", "null", '{"a": 1}', '{"code": 1e999}', "x" * 100_000])
async def test_a_malformed_error_does_not_keep_other_jobs_from_being_emptied(setting: Setting, malformed: str) -> None:
    record = await setting.connector()
    first, other = await setting.running(record), await setting.running(record)
    known = {"request_id": "r", "items_done": 4}
    error = {"code": "outcome_unknown", "detail": CANARY, "known": known, "safe_to_retry": False, "errors": [CANARY]}
    for job, text in ((first, malformed), (other, json.dumps(error))):
        await setting.world.sql("UPDATE jobs SET error = $2 WHERE id = $1", job.id, text)

    await JobRemoval(setting.world.database, RETENTION, UNSEALED).empty(record.organization_id, [first.id, other.id])

    detail = "the connector of this job was deleted"
    emptied = [await setting.jobs.get(record.organization_id, job.id) for job in (first, other)]
    assert [job.error for job in emptied] == [
        {"code": "internal_error", "detail": detail},
        {"code": "outcome_unknown", "detail": detail, "known": known, "safe_to_retry": False},
    ]


async def test_a_deletion_cannot_be_canceled(setting: Setting) -> None:
    record = await setting.connector()
    job = await setting.deletion.delete_connector(setting.world.caller, record.id)

    assert await setting.jobs.request_cancel(record.organization_id, job.id) is None


async def test_a_deleted_workspace_takes_all_its_connectors_with_it(setting: Setting) -> None:
    first, second = await setting.connector(), await setting.connector()

    job = await setting.deletion.delete_workspace(setting.world.caller, first.workspace_id)
    hidden = await setting.world.identity.workspaces(first.organization_id, None, None, 10)
    run_context = await setting.carry_out(job)

    assert (hidden, job.workspace_name) == ([], "w")
    assert run_context.reported == (2, 2, "2 of 2 connectors deleted")
    assert await setting.left(first.id) == await setting.left(second.id) == {}
    assert await setting.world.sql("SELECT count(*) FROM workspaces WHERE id = $1", first.workspace_id) == 0
    with pytest.raises(NotFound):
        await setting.deletion.delete_workspace(setting.world.caller, first.workspace_id)


async def test_a_workspace_that_is_being_deleted_is_given_no_connector(setting: Setting) -> None:
    record = await setting.connector()
    new = NewConnector(
        workspace_id=record.workspace_id,
        kind="work-management",
        settings={"name": "late"},
        auth_method="oauth",
        environment={},
        credentials={"access_token": "late"},
    )
    await setting.deletion.delete_workspace(setting.world.caller, record.workspace_id)

    with pytest.raises(NotFound):
        await setting.world.connectors.create(record.organization_id, new)


async def test_the_deletion_of_a_workspace_waits_for_a_connector_that_is_being_made_in_it(setting: Setting) -> None:
    record = await setting.connector()
    new = NewConnector(
        workspace_id=record.workspace_id,
        kind="work-management",
        settings={"name": "late"},
        auth_method="oauth",
        environment={},
        credentials={"access_token": "late"},
    )
    async with setting.world.database.tenant(record.organization_id) as connection, connection.transaction():
        late = await setting.world.connectors.create_within(connection, record.organization_id, new)
        deleting = asyncio.create_task(setting.deletion.delete_workspace(setting.world.caller, record.workspace_id))
        await eventually(lambda: waits_for_lock(setting.world.database))

    await setting.carry_out(await deleting)

    assert await setting.left(late.id) == {}
    assert setting.revoked == 2


async def test_the_name_of_a_workspace_that_is_being_deleted_is_free(setting: Setting) -> None:
    record = await setting.connector()
    await setting.deletion.delete_workspace(setting.world.caller, record.workspace_id)

    again = await setting.world.identity.workspace_named(record.organization_id, record.workspace_name)

    assert again != record.workspace_id


async def test_a_strangers_connector_and_workspace_are_not_there(setting: Setting) -> None:
    record = await setting.connector()
    stranger = await setting.world.identity.create_organization(f"o-{uuid4().hex}")
    caller = replace(setting.world.caller, organization_id=stranger.id)

    with pytest.raises(NotFound):
        await setting.deletion.delete_connector(caller, record.id)
    with pytest.raises(NotFound):
        await setting.deletion.delete_workspace(caller, record.workspace_id)


#: the columns of jobs that may hold what an application or a caller sent, with their types
_COLUMNS = """
    SELECT column_name, data_type FROM information_schema.columns
    WHERE table_name = 'jobs' AND data_type IN ('text', 'jsonb', 'bytea', 'ARRAY')
"""


@asynccontextmanager
async def _no_deletions(database_url: str) -> AsyncIterator[None]:
    """PostgreSQL takes no job that deletes."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("ALTER TABLE jobs ADD CONSTRAINT no_deletions CHECK (task = 'operation') NOT VALID")
    yield
    await connection.execute("ALTER TABLE jobs DROP CONSTRAINT no_deletions")
    await connection.close()


async def _queued(setting: Setting) -> list[UUID]:
    async with setting.world.database.tenant(setting.world.organization_id) as connection:
        return [row["id"] for row in await connection.fetch("SELECT id FROM jobs WHERE status = 'queued'")]


async def _of(setting: Setting, connector_id: UUID) -> list[UUID]:
    async with setting.world.database.tenant(setting.world.organization_id) as connection:
        return [
            row["id"] for row in await connection.fetch("SELECT id FROM jobs WHERE connector_id = $1", connector_id)
        ]
