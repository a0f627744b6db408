"""A page reads a few rows, however many there are: PostgreSQL's plans, as the role and tenant of a caller."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.access.audit.log import Audit, EntryFilter
from gateway.access.identity.store import IdentityStore
from gateway.connectors.store import ConnectorStore
from gateway.foundation.db.page_bytes import PAGE_BYTES, page_of_rows
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.vault.vault import Vault
from gateway.jobs.model import MAX_COUNTED, JobFilter
from gateway.jobs.store import JobStore
from gateway.run.monitoring.statistics import read_work_in_progress
from tests.jobs.conftest import UNSEALED

#: rows of the organization, of each table, and those that one statement may read
ROWS, MAX_READ = 20_000, 2_100
DATA = (
    "INSERT INTO organizations (id, name) VALUES ($1::uuid, $1::uuid::text)",
    "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $1, 'w')",
    f"""
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)
    SELECT gen_random_uuid(), $1, $1, 'kind ' || n % 4, 'c', 'active' FROM generate_series(1, {ROWS} / 10) AS n
    """,
    f"""
    INSERT INTO audit (organization_id, at, what, outcome, took_ms)
    SELECT $1, now() - n * interval '1 minute', 'tickets.list', 'succeeded', 40 FROM generate_series(1, {ROWS}) AS n
    """,
    f"""
    INSERT INTO audit (organization_id, at, what, outcome, entry_kind, call_id)
    SELECT $1, now() - n * interval '1 minute', 'tickets.update', CASE half WHEN 1 THEN NULL ELSE 'succeeded' END,
           CASE half WHEN 1 THEN 'intent' ELSE 'settlement' END, md5($1::uuid::text || n)::uuid
    FROM generate_series(1, {ROWS}) AS n CROSS JOIN generate_series(1, 2) AS half
    ORDER BY n, half
    """,
    f"""
    INSERT INTO jobs (id, organization_id, workspace_name, entity, status, created_at)
    SELECT gen_random_uuid(), $1, 'w', 'tickets', CASE WHEN n % 5 = 0 THEN 'failed' ELSE 'succeeded' END,
           now() - n * interval '1 minute'
    FROM generate_series(1, {ROWS}) AS n
    """,
)


class Plans(Database):
    """A database that notes how many rows each statement reads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.rows_read: list[int] = []
        self.replica = None

    @asynccontextmanager
    async def tenant(self, organization_id: UUID | str, person: UUID | None = None) -> AsyncIterator[Connection]:
        async with self._database.tenant(organization_id, person) as connection:
            yield _Explained(connection, self.rows_read)  # type: ignore[misc]

    @asynccontextmanager
    async def all_copies(self, organization_id: UUID) -> AsyncIterator[Connection]:
        async with self._database.all_copies(organization_id) as connection:
            yield _Explained(connection, self.rows_read)  # type: ignore[misc]


class _Explained:
    def __init__(self, connection: Connection, rows_read: list[int]) -> None:
        self._connection, self._rows_read = connection, rows_read

    async def fetch(self, query: str, *args: Any) -> Any:
        plan = await self._connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {query}", *args)
        self._rows_read.append(sum(_read(json.loads(plan)[0]["Plan"])))
        return await self._connection.fetch(query, *args)

    async def fetchrow(self, query: str, *args: Any) -> Any:
        return (await self.fetch(query, *args))[0]


def _read(node: dict[str, Any]) -> Iterator[float]:
    """Rows that the scans of a plan look at, whether or not they are in the answer."""
    if "Relation Name" in node:
        yield (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    for inner in node.get("Plans", ()):
        yield from _read(inner)


@pytest.fixture(scope="module")
async def organization_id(database_url: str) -> UUID:
    """An organization with many rows."""
    created = uuid4()
    owner = await asyncpg.connect(database_url)
    for statement in DATA:
        await owner.execute(statement, created)
    await owner.execute("ANALYZE")
    await owner.close()
    return created


@pytest.fixture
def plans(database: Database) -> Plans:
    return Plans(database)


NOTHING = uuid4()
MIDDLE = datetime.now(UTC) - timedelta(minutes=ROWS / 2)


@pytest.mark.parametrize(
    "filters",
    [{}, {"connector_id": NOTHING}, {"actor": NOTHING}, {"since": MIDDLE}, {"until": MIDDLE},
     {"actor": NOTHING, "until": MIDDLE}, {"actor_name": "x"}, {"operation": "x"}, {"target": "x"}, {"outcome": "x"},
     {"outcome": "unknown"}, {"request_id": "x"}],
)  # fmt: skip
async def test_a_page_of_the_audit_log(plans: Plans, organization_id: UUID, filters: dict[str, Any]):
    await Audit(plans).find(organization_id, EntryFilter(**filters))

    assert max(plans.rows_read) <= MAX_READ


async def test_a_later_page_of_the_audit_log(plans: Plans, organization_id: UUID):
    await Audit(plans).find(organization_id, before=ROWS // 2)

    assert max(plans.rows_read) <= MAX_READ


@pytest.mark.parametrize(
    "job_filter",
    [
        JobFilter(),
        JobFilter(statuses=["failed"]),
        JobFilter(statuses=["failed", "unknown"]),
        JobFilter(connector_id=NOTHING),
        JobFilter(workspace_name="x"),
        JobFilter(entity="x"),
        JobFilter(created_before=MIDDLE),
    ],
)
async def test_a_page_of_jobs(plans: Plans, organization_id: UUID, job_filter: JobFilter):
    await JobStore(plans, 60, UNSEALED).page(organization_id, job_filter, None, 100)

    assert max(plans.rows_read) <= MAX_READ


@pytest.mark.parametrize(("days", "step"), [(13, 1400), (13, 86_400), (1 / 24, 10)])
async def test_usage(plans: Plans, organization_id: UUID, days: float, step: int):
    points = await Audit(plans).usage(organization_id, datetime.now(UTC) - timedelta(days=days), step)

    assert sum(point.calls for point in points) > 50
    assert max(plans.rows_read) <= MAX_READ


async def test_usage_of_workspaces_reads_entries_of_their_connectors_only(plans: Plans, organization_id: UUID):
    since = datetime.now(UTC) - timedelta(days=1)

    await Audit(plans).usage(organization_id, since, 600, workspaces=["x"])
    await Audit(plans).usage_by(organization_id, since, "client", workspaces=["x"])

    assert max(plans.rows_read) <= MAX_READ


async def test_what_an_organization_has_in_progress(plans: Plans, organization_id: UUID):
    await read_work_in_progress(plans, organization_id)

    assert max(plans.rows_read) <= MAX_READ


async def test_what_an_organization_has_ended_without_success(plans: Plans, organization_id: UUID):
    ended = await JobStore(plans, 60, UNSEALED).ended(organization_id, None, MIDDLE, MAX_COUNTED)

    assert ended.shown == ("1000 or more", "0")
    assert max(plans.rows_read) <= MAX_READ


async def test_a_page_of_workspaces(plans: Plans, organization_id: UUID):
    await IdentityStore(plans).workspaces(organization_id, "w", None, 100)

    assert max(plans.rows_read) <= 2 * MAX_READ  # and their connectors, which are counted


async def test_the_connectors_of_each_kind(plans: Plans, organization_id: UUID):
    store = ConnectorStore(plans, Vault([("k1", bytes(32))]))

    found = await store.latest_of_each_kind(organization_id, 3)

    assert len(found) == 12
    assert max(plans.rows_read) <= 2 * MAX_READ  # each connector once, with its workspace
    created = "SELECT max(created_at) FROM connectors WHERE organization_id = $1"
    async with plans.tenant(organization_id) as connection:
        (latest,) = await connection.fetch(created, organization_id)
        assert max(record.created_at for record in found) == latest["max"]


async def test_a_page_ends_at_a_number_of_bytes_and_has_a_row_at_least(database: Database):
    sizes = [PAGE_BYTES // 2, 10, 10, 10, 2 * PAGE_BYTES, 10]
    query = """
        SELECT number, repeat('x', size) AS text
        FROM unnest($1::integer[]) WITH ORDINALITY AS row (size, number) WHERE number > $2 ORDER BY number LIMIT $3
    """
    pages, after, has_more = [], 0, True
    async with database.system() as connection:
        while has_more:
            page, has_more = await page_of_rows(connection, query, [sizes, after, 4], ["text"], 3)
            pages.append([row["number"] for row in page])
            after = pages[-1][-1]
        alone, _ = await page_of_rows(connection, query, [sizes[4:], 0, 2], ["text"], 1)
        nothing = await page_of_rows(connection, query, [[], 0, 2], ["text"], 1)

    assert pages == [[1, 2, 3], [4, 5], [6]]
    assert [set(row) for row in alone] == [{"number", "text"}]
    assert nothing == ([], False)
