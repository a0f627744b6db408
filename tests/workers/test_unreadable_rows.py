"""A row that cannot be decoded costs its organization that row, and the loops that serve all organizations go on."""

import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.connectors.imports.store import ImportedKindStore
from gateway.connectors.key_rotation.rotation import Rotation
from gateway.connectors.model import REFERENCE, binding
from gateway.connectors.reference_checks import checked_references
from gateway.connectors.secret_values import open_secret_values
from gateway.context_store.sync import schedule as synchronization
from gateway.contract.cursors import read_time_cursor
from gateway.contract.kinds import Effect
from gateway.contract.schedules import ScheduleDefinition
from gateway.errors import InternalError, Unavailable
from gateway.events.store import WebhookStore
from gateway.events.subscription_store import SubscriptionStore
from gateway.foundation.vault.vault import Vault
from gateway.jobs.claims import Claims, Shares
from gateway.jobs.maintenance import Maintenance
from gateway.jobs.model import JobFilter, NewJob
from gateway.jobs.removal import JobRemoval
from gateway.jobs.sealing import JobSealing
from gateway.jobs.store import JobStore
from gateway.jobs.tasks import DELETE_ORGANIZATION
from gateway.operations.schedules.model import Schedule
from gateway.operations.schedules.store import ScheduleStore
from gateway.run.sealed_tables import SEALED_TABLES
from gateway.run.services import Services
from tests.harness.catalog import shipped_catalog

KEYS = [("k1", bytes(32))]
#: deeper than Python decodes; PostgreSQL accepts it
DEEP = "[" * 3000 + "]" * 3000
#: damage of sealed columns: another key's, shorter than a nonce, altered
SEALED = ("key_id = 'gone'", "wrapped_key = '\\x00'", "sealed = '\\x00'")


@dataclass
class Bench:
    """A worker's services with direct access to the database."""

    services: Services
    sql: Callable[..., Awaitable[list[Any]]]
    vault: Vault = field(default_factory=lambda: Vault(KEYS))

    async def organization(self) -> UUID:
        return (await self.services.identity.create_organization(f"o-{uuid4().hex}")).id

    async def connector(self) -> tuple[UUID, UUID]:
        organization_id, connector_id = await self.organization(), uuid4()
        workspace_id = await self.services.identity.workspace_named(organization_id, "main")
        await self.sql(
            "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status) "
            "VALUES ($1, $2, $3, 'support-desk', 'desk', 'active')",
            connector_id, organization_id, workspace_id,
        )  # fmt: skip
        return organization_id, connector_id

    async def job(self, **members: Any) -> UUID:
        usual = {"id": uuid4(), "organization_id": await self.organization(), "client_id": uuid4(), "entity": "tickets"}
        return (await self.services.jobs.store.accept(NewJob(**{**usual, **members}))).job.id

    async def one(self, query: str, *arguments: Any) -> Any:
        return (await self.sql(query, *arguments))[0][0]


class Loop:
    """A loop that serves all organizations, and the rows that it reads."""

    table = ""
    key = "id"
    damages: tuple[str, ...] = ()

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    async def row(self) -> Any:
        """Add a row of another organization that is due; returns its id."""
        raise NotImplementedError

    async def run(self) -> None:
        """One round of the loop."""
        raise NotImplementedError

    async def went_on(self, row: Any) -> bool:
        """Whether the loop did its work for this row."""
        raise NotImplementedError

    async def cost(self, row: Any) -> bool:
        """Whether the row's own work was not done, and is not tried again at once."""
        return not await self.went_on(row)


class ClaimsOfJobs(Loop):
    table = "jobs"
    damages = (
        "key_id = 'gone', wrapped_key = '\\x00'", "params = 'sealed:AAAA'", "params = 'sealed:%'", "params = '{'",
        "selection = '{'", "effect = 'odd'", "surface = 'odd'", "approval = '{'", "session = '5'",
        f"labels = '{DEEP}'",
    )  # fmt: skip

    async def row(self) -> UUID:
        return await self.bench.job(effect=Effect.WRITE, params={"subject": "a"})

    async def run(self) -> None:
        claims = Claims(self.bench.services.database, self.bench.services.jobs.sealing)
        self.claimed = [job.id for job in await claims.claim("here", 100, Shares(75, 75))]

    async def went_on(self, row: UUID) -> bool:
        return row in self.claimed


class LostJobs(ClaimsOfJobs):
    damages = (*ClaimsOfJobs.damages, "state = '[]'", 'session = \'{"client_id": "odd"}\'')

    async def row(self) -> UUID:
        job_id = await super().row()
        await self.bench.sql(
            "UPDATE jobs SET status = 'running', worker = 'gone', worker_losses = 5, "
            "lease_until = now() - interval '1 s' WHERE id = $1",
            job_id,
        )
        return job_id

    async def run(self) -> None:
        services = self.bench.services
        await Maintenance(services.database, 3600, services.jobs.sealing, timeout=0).reap()

    async def went_on(self, row: UUID) -> bool:
        return bool(
            await self.bench.one("SELECT error::json ->> 'code' FROM jobs WHERE id = $1", row) == "worker_crashed"
        )

    async def cost(self, row: UUID) -> bool:
        return bool(await self.bench.one("SELECT status IN ('failed', 'unknown') FROM jobs WHERE id = $1", row))


class DueSchedules(Loop):
    table = "schedules"
    damages = (
        *SEALED, "selection = '{'", f"labels = '{DEEP}'", "cron = 'odd'", "timezone = 'No/Where'",
    )  # fmt: skip

    async def row(self) -> UUID:
        schedule = Schedule(
            id=uuid4(),
            organization_id=await self.bench.organization(),
            client_id=uuid4(),
            workspace_name="main",
            kind="support-desk",
            definition=ScheduleDefinition(
                name="Often", connector_id=uuid4(), entity="tickets", action="list", cron="* * * * *"
            ),
            next_run_at=datetime.now(UTC) - timedelta(minutes=1),
        )
        await ScheduleStore(self.bench.services.database, self.bench.vault).insert(schedule)
        return schedule.id

    async def run(self) -> None:
        await self.bench.services.operations.due_runs.start()

    async def went_on(self, row: UUID) -> bool:
        """Its connector is gone, which is why the slot is not run."""
        reason = await self.bench.one("SELECT missed_reason FROM schedules WHERE id = $1 AND next_run_at > now()", row)
        return bool(reason == "its connector was deleted")

    async def cost(self, row: UUID) -> bool:
        query = """
            SELECT missed_reason LIKE 'a schedule cannot be read: %' AND EXISTS (
                       SELECT FROM events WHERE data::json ->> 'schedule_id' = schedules.id::text)
                   AND (next_run_at > now() OR NOT is_enabled AND next_run_at IS NULL)
            FROM schedules WHERE id = $1
        """
        return bool(await self.bench.one(query, row))


class DueWebhooks(Loop):
    table = "webhooks"
    damages = (*SEALED, "types = '{odd}'")

    async def row(self) -> UUID:
        store = WebhookStore(self.bench.services.database, self.bench.vault)
        columns = dict.fromkeys(
            ("id", "organization_id", "client_id", "is_callback", "url", "description", "types", "connector_id",
             "workspace_name", "entity", "workspaces", "include_record")
        )  # fmt: skip
        given = {"id": uuid4(), "organization_id": await self.bench.organization(), "client_id": uuid4()}
        given |= {"is_callback": False, "url": "https://hooks.test/", "types": ["job.failed"], "include_record": False}
        webhook = await store.create(columns | given, "whsec_AAAA")
        await self.bench.sql("UPDATE webhooks SET retry_at = now() WHERE id = $1", webhook.id)
        return webhook.id

    async def run(self) -> None:
        store = WebhookStore(self.bench.services.database, self.bench.vault)
        self.claimed = [each.webhook.id for each in await store.claim("here", 8, 200, {})]

    async def went_on(self, row: UUID) -> bool:
        return row in self.claimed

    async def cost(self, row: UUID) -> bool:
        held = "SELECT failing_since IS NOT NULL AND held_until > now() FROM webhooks WHERE id = $1"
        return row not in self.claimed and bool(await self.bench.one(held, row))


class EndedSubscriptions(DueWebhooks):
    async def row(self) -> UUID:
        webhook_id = await super().row()
        await self.bench.sql(
            "UPDATE webhooks SET is_ending = true, subscription_id = $1 WHERE id = $2", uuid4().hex, webhook_id
        )
        return webhook_id

    async def run(self) -> None:
        store = SubscriptionStore(self.bench.services.database, self.bench.vault)
        self.claimed = [each.claimed.webhook.id for each in await store.claim_ended("here", 8, 60, 200)]

    async def cost(self, row: UUID) -> bool:
        return not await self.bench.sql("SELECT FROM webhooks WHERE id = $1", row)


class PendingDeliveries(Loop):
    """Of one webhook."""

    table = "webhook_deliveries"
    key = "event_id"
    damages = ("event = '{'", "event = '{}'", f"event = '{DEEP}'", "failure = failure, event = '\"x\"'")

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.number = 0

    async def row(self) -> int:
        if not self.number:
            self.webhook_id = await DueWebhooks(self.bench).row()
        self.number += 1
        event = {"id": self.number, "type": "job.failed", "at": "2026-01-01T00:00:00Z", "data": {}}
        event |= {"organization_id": str(uuid4()), "connector_id": None, "workspace_name": None}
        await self.bench.sql(
            "INSERT INTO webhook_deliveries (webhook_id, event_id, organization_id, subject, event, status) "
            "SELECT id, $2, organization_id, '', $3, 'pending' FROM webhooks WHERE id = $1",
            self.webhook_id, self.number, json.dumps(event),
        )  # fmt: skip
        return self.number

    async def run(self) -> None:
        store = WebhookStore(self.bench.services.database, self.bench.vault)
        [webhook] = [
            each.webhook for each in await store.claim("here", 8, 200, {}) if each.webhook.id == self.webhook_id
        ]
        self.pending = [each.event.id for each in await store.pending(webhook)]

    async def went_on(self, row: int) -> bool:
        return row in self.pending

    async def cost(self, row: int) -> bool:
        status = await self.bench.one(
            "SELECT status FROM webhook_deliveries WHERE webhook_id = $1 AND event_id = $2", self.webhook_id, row
        )
        return bool(status == "failed")


class DueSynchronizations(Loop):
    table = "connectors"
    damages = (f"environment = '{DEEP}'",)

    async def row(self) -> UUID:
        organization_id, connector_id = await self.bench.connector()
        async with self.bench.services.database.system() as connection:
            kind = shipped_catalog().kind("support-desk")
            await synchronization.register_all(connection, connector_id, organization_id, kind, ["tickets"])
        return connector_id

    async def run(self) -> None:
        await self.bench.services.copy.synchronization.enqueue_due()

    async def went_on(self, row: UUID) -> bool:
        return bool(await self.bench.sql("SELECT FROM jobs WHERE connector_id = $1 AND task = 'synchronize'", row))


class NoticedRecords(DueSynchronizations):
    async def row(self) -> UUID:
        organization_id, connector_id = await self.bench.connector()
        await self.bench.sql(
            "INSERT INTO inbound_changes (connector_id, entity, record_id, organization_id) "
            "VALUES ($1, 'tickets', '7', $2)",
            connector_id, organization_id,
        )  # fmt: skip
        return connector_id

    async def run(self) -> None:
        await self.bench.services.copy.notices.bring_forward()

    async def cost(self, row: UUID) -> bool:
        left = await self.bench.sql("SELECT FROM inbound_changes WHERE connector_id = $1", row)
        return not left and not await self.went_on(row)


class ServedKinds(Loop):
    table = "imported_kinds"
    key = "kind"
    damages = (f"document = '{DEEP}'",)

    async def row(self) -> str:
        kind = f"k-{uuid4().hex}"
        await self.bench.sql(
            "INSERT INTO imported_kinds (kind, version, source, document, report, importing_organization, "
            "importing_client, served_at) VALUES ($1, 1, '', '{}', '', $2, $2, now())",
            kind, uuid4(),
        )  # fmt: skip
        return kind

    async def run(self) -> None:
        self.served = [each.kind for each in await ImportedKindStore(self.bench.services.database).served()]

    async def went_on(self, row: str) -> bool:
        return row in self.served


class DeletedOrganizations(Loop):
    table = "jobs"
    damages = ("params = 'sealed:AAAA'", "params = '{'")

    async def row(self) -> UUID:
        params = {"name": "o", "kept_client": str(uuid4()), "clients": []}
        job_id = await self.bench.job(task=DELETE_ORGANIZATION.name, params=params)
        await self.bench.sql("UPDATE jobs SET status = 'failed' WHERE id = $1", job_id)
        await self.bench.sql(
            "UPDATE organizations SET deletion_job = $1 WHERE id = (SELECT organization_id FROM jobs WHERE id = $1)",
            job_id,
        )
        return job_id

    async def run(self) -> None:
        await self.bench.services.operations.organization_deletion.resume()

    async def went_on(self, row: UUID) -> bool:
        query = """
            SELECT deletion_job <> $1 FROM organizations WHERE id = (SELECT organization_id FROM jobs WHERE id = $1)
        """
        return bool(await self.bench.one(query, row))


class RefusedApprovals(Loop):
    table = "jobs"
    damages = ("approval = '{'", "approval = '[]'", 'approval = \'{"id": "odd"}\'')

    async def row(self) -> UUID:
        job_id = await self.bench.job(effect=Effect.WRITE)
        await self.bench.sql("UPDATE jobs SET status = 'waiting' WHERE id = $1", job_id)
        await self.bench.sql(
            "INSERT INTO approvals (id, organization_id, job_id, status, reason, rules, digest, account_id, items, "
            "document, expires_at) SELECT $2, organization_id, id, 'pending', '', '[]', '', $2, 1, '', now() "
            "FROM jobs WHERE id = $1",
            job_id, uuid4(),
        )  # fmt: skip
        await self.bench.sql("UPDATE approvals SET status = 'denied' WHERE job_id = $1", job_id)
        return job_id

    async def run(self) -> None:
        await self.bench.services.operations.approvals.end_jobs()

    async def went_on(self, row: UUID) -> bool:
        return bool(await self.bench.one("SELECT status = 'canceled' FROM jobs WHERE id = $1", row))

    async def cost(self, row: UUID) -> bool:
        """It ends like the others."""
        return await self.went_on(row)


class JobsOfDeletedConnector(Loop):
    """Of one connector, whose jobs have begun."""

    table = "jobs"
    status = "queued"
    damages = (*LostJobs.damages, "error = '{'", "error = '[]'", f"error = '{DEEP}'")

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.organization_id: UUID | None = None
        self.connector_id = uuid4()
        self.removal = JobRemoval(bench.services.database, 3600, bench.services.jobs.sealing)

    async def row(self) -> UUID:
        self.organization_id = self.organization_id or await self.bench.organization()
        job_id = await self.bench.job(
            organization_id=self.organization_id, connector_id=self.connector_id, effect=Effect.WRITE
        )
        await self.bench.sql("UPDATE jobs SET status = $2, in_flight_since = now() WHERE id = $1", job_id, self.status)
        return job_id

    async def run(self) -> None:
        await self.removal.cancel(self.organization_id, self.connector_id)
        jobs = await self.removal.after(self.organization_id, self.connector_id, UUID(int=0))
        await self.removal.empty(self.organization_id, [job_id for job_id, _ in jobs])

    async def went_on(self, row: UUID) -> bool:
        query = """
            SELECT status IN ('failed', 'unknown') AND error LIKE '%the connector of this job was deleted%'
               AND params = '{}' FROM jobs WHERE id = $1
        """
        return bool(await self.bench.one(query, row))

    async def cost(self, row: UUID) -> bool:
        """It ends like the others."""
        return await self.went_on(row)


class RunningJobsOfDeletedConnector(JobsOfDeletedConnector):
    status = "running"

    async def run(self) -> None:
        await self.removal.end_running(self.organization_id, self.connector_id)
        await super().run()


class CheckedReferences(Loop):
    table = "connector_secrets"
    key = "connector_id"
    damages = SEALED

    async def row(self) -> UUID:
        organization_id, connector_id = await self.bench.connector()
        reference = {REFERENCE + "api_token": "vault://vault.test/kv/desk#token"}
        sealed = self.bench.vault.seal(reference, binding(organization_id, connector_id, "support-desk", {}))
        await self.bench.sql(
            "INSERT INTO connector_secrets (connector_id, organization_id, key_id, wrapped_key, sealed) "
            "VALUES ($1, $2, $3, $4, $5)",
            connector_id, organization_id, sealed.key_id, sealed.wrapped_key, sealed.sealed,
        )  # fmt: skip
        return connector_id

    async def run(self) -> None:
        async with open_secret_values({}) as values:
            checked = checked_references(self.bench.services.database, self.bench.vault, values)
            self.checked = [each.connector_id async for each in checked]

    async def went_on(self, row: UUID) -> bool:
        return row in self.checked


class CheckedConnectors(CheckedReferences):
    table = "connectors"
    key = "id"
    damages = (f"environment = '{DEEP}'",)


class RotatedKeys(Loop):
    table = "schedules"
    damages = ("wrapped_key = '\\x00'", "key_id = 'gone'")

    async def row(self) -> UUID:
        return await DueSchedules(self.bench).row()

    async def run(self) -> None:
        vault = Vault([("k2", b"2" * 32), *KEYS])
        self.rotation = Rotation(self.bench.services.database, vault, SEALED_TABLES)
        assert [rows async for rows in self.rotation.run()]

    async def went_on(self, row: UUID) -> bool:
        return bool(await self.bench.one("SELECT key_id = 'k2' FROM schedules WHERE id = $1", row))

    async def cost(self, row: UUID) -> bool:
        return any(str(row) in failure for failure in self.rotation.failures)


LOOPS = (
    ClaimsOfJobs, LostJobs, DueSchedules, DueWebhooks, EndedSubscriptions, PendingDeliveries, DueSynchronizations,
    NoticedRecords, ServedKinds, DeletedOrganizations, RefusedApprovals, JobsOfDeletedConnector,
    RunningJobsOfDeletedConnector, CheckedReferences, CheckedConnectors, RotatedKeys,
)  # fmt: skip


@pytest.fixture(autouse=True)
async def empty(sql):
    for table in ("jobs", "schedules", "webhooks", "connectors", "imported_kinds"):
        await sql(f"DELETE FROM {table}")


@pytest.mark.parametrize("kind_of_loop", LOOPS)
async def test_a_row_that_cannot_be_decoded_costs_only_itself(services: Services, sql, kind_of_loop):
    loop = kind_of_loop(Bench(services, sql))
    damaged = {damage: await loop.row() for damage in loop.damages}
    other = await loop.row()
    for damage, row in damaged.items():
        await sql(f"UPDATE {loop.table} SET {damage} WHERE {loop.key} = $1", row)

    await loop.run()

    assert await loop.went_on(other)
    assert [damage[:40] for damage, row in damaged.items() if not await loop.cost(row)] == []


@pytest.mark.parametrize("kind_of_loop", LOOPS)
async def test_a_round_in_which_no_row_can_be_decoded_ends(services: Services, sql, kind_of_loop):
    loop = kind_of_loop(Bench(services, sql))
    row = await loop.row()
    await sql(f"UPDATE {loop.table} SET {loop.damages[0]} WHERE {loop.key} = $1", row)

    await loop.run()

    assert await loop.cost(row)


#: the loops that decrypt, and what a round without the keys must leave as it was
DECRYPTING = (ClaimsOfJobs, LostJobs, DueSchedules, DueWebhooks, EndedSubscriptions)


@pytest.fixture
def forgotten(services: Services):
    """The vault of the services, which has its keys again after the test."""
    vault = services.keys.vault
    yield vault
    vault.hold(dict(services.keys.all))


@pytest.mark.parametrize("kind_of_loop", DECRYPTING)
async def test_while_the_keys_are_forgotten_every_row_waits_for_them(services: Services, sql, forgotten, kind_of_loop):
    loop = kind_of_loop(Bench(services, sql, forgotten))
    row = await loop.row()
    query = f"SELECT * FROM {loop.table} WHERE {loop.key} = $1"
    before = await sql(query, row)

    forgotten.forget([key_id for key_id, _ in services.keys.all])
    with contextlib.suppress(Unavailable):
        await loop.run()
    waiting = await sql(query, row)
    forgotten.hold(dict(services.keys.all))
    await loop.run()

    assert waiting == before
    assert await loop.went_on(row)


@pytest.mark.parametrize("kind_of_loop", DECRYPTING)
async def test_while_an_older_key_is_forgotten_only_the_rows_that_it_wraps_wait(
    services: Services, sql, forgotten, kind_of_loop
):
    loop = kind_of_loop(Bench(services, sql, forgotten))
    row, other = await loop.row(), await loop.row()
    query = f"SELECT * FROM {loop.table} WHERE {loop.key} = $1"
    await sql(f"UPDATE {loop.table} SET key_id = 'older' WHERE {loop.key} = $1", row)
    before = await sql(query, row)

    forgotten.forget(["older"])
    await loop.run()
    waiting, went_on = await sql(query, row), await loop.went_on(other)
    forgotten.hold({"older": dict(services.keys.all)[forgotten.newest]})
    await loop.run()

    assert (waiting, went_on) == (before, True)
    assert await loop.went_on(row)


async def test_a_stored_job_whose_key_is_forgotten_is_unavailable_for_a_time(services: Services, sql, forgotten):
    bench = Bench(services, sql)
    job_id = await bench.job(params={"subject": "a"})
    organization_id = await bench.one("SELECT organization_id FROM jobs WHERE id = $1", job_id)
    restarted = JobStore(services.database, services.settings.job_retention, JobSealing(forgotten))

    forgotten.forget([key_id for key_id, _ in services.keys.all])
    with pytest.raises(Unavailable, match="encryption keys"):
        await restarted.get_stored(organization_id, job_id)
    forgotten.hold(dict(services.keys.all))

    assert (await restarted.get_stored(organization_id, job_id)).params == {"subject": "a"}


#: damage of an error: no JSON, no object, without its members, deeper than Python decodes
ERRORS = ("{", "[]", '{"code": 5}', DEEP)


@pytest.mark.parametrize("error", ERRORS, ids=range(len(ERRORS)))
async def test_a_job_whose_error_cannot_be_read_is_seen_and_canceled(services: Services, sql, error):
    bench = Bench(services, sql)
    job_id = await bench.job(params={"subject": "a"})
    organization_id = await bench.one(
        "UPDATE jobs SET status = 'waiting', error = $2 WHERE id = $1 RETURNING organization_id", job_id, error
    )
    store = services.jobs.store

    seen = await store.get(organization_id, job_id)
    listed = await store.page(organization_id, JobFilter(), None, 10)
    canceled = await store.request_cancel(organization_id, job_id)

    assert seen.error == {"code": "internal_error", "detail": "the error of this job cannot be read"}
    assert [each.id for each in listed.jobs] == [job_id]
    assert canceled is not None
    assert canceled.status == "canceled"


async def test_pages_of_jobs_are_without_the_one_that_cannot_be_read(services: Services, sql):
    bench, store = Bench(services, sql), services.jobs.store
    organization_id = await bench.organization()
    jobs = [await bench.job(organization_id=organization_id) for _ in range(3)]
    await sql("UPDATE jobs SET surface = 'odd' WHERE id = $1", jobs[1])

    pages = [await store.page(organization_id, JobFilter(), None, 1)]
    while (cursor := read_time_cursor(pages[-1].next_cursor)) is not None:
        pages.append(await store.page(organization_id, JobFilter(), cursor, 1))

    assert [[each.id for each in page.jobs] for page in pages] == [[jobs[2]], [], [jobs[0]]]
    with pytest.raises(InternalError, match="a job cannot be read"):
        await store.get(organization_id, jobs[1])
