"""Reads of an organization with a million audit entries and jobs and ten thousand connectors.

    python -m tests.benchmarks.bench_reads [--quick]

One front end on one core; each read by one caller, one after another. The rows are made by SQL.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import aiohttp
import asyncpg
from yarl import URL

from tests.benchmarks.bench_execute import Target, front_end, opened_stores
from tests.benchmarks.processes import beside_the_server, cpu_of_children
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.processes import free_port

#: milliseconds that each read may take
USAGE_MS, PAGE_MS, CONSOLE_MS = 50.0, 200.0, 100.0
MONTH = timedelta(days=31)

# Rows with a number from $2 to $3.
_WORKSPACES = """
    INSERT INTO workspaces (id, organization_id, name)
    SELECT gen_random_uuid(), $1, 'workspace ' || n FROM generate_series($2::integer, $3) AS n
"""
_CONNECTORS = """
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status, auth_method)
    SELECT gen_random_uuid(), $1, workspaces.id, 'support-desk', 'connector ' || n, 'active', 'api_token'
    FROM generate_series($2::integer, $3) AS n
    JOIN workspaces ON workspaces.organization_id = $1 AND workspaces.name = 'workspace ' || 1 + n % 500
"""
_AUDIT = """
    INSERT INTO audit (organization_id, at, actor, what, target, outcome, took_ms)
    SELECT $1, now() - n * interval '2.6 seconds', $1, (ARRAY['tickets.list', 'tickets.create'])[1 + n % 2],
           CASE WHEN n % 10 = 0 THEN 'target ' || n % 1000 END,
           CASE WHEN n % 50 = 0 THEN 'upstream_error' ELSE 'succeeded' END, n % 700
    FROM generate_series($2::integer, $3) AS n
"""
_JOBS = """
    INSERT INTO jobs (id, organization_id, workspace_name, kind, entity, action, status, created_at, started_at,
                      finished_at, expires_at)
    SELECT gen_random_uuid(), $1, 'workspace ' || 1 + n % 500, 'support-desk', 'tickets', 'list',
           CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'succeeded' END, moment, moment, moment, now() + interval '7 days'
    FROM generate_series($2::integer, $3) AS n, LATERAL (SELECT now() - n * interval '0.5 seconds') AS span (moment)
"""


@dataclass(frozen=True)
class Read:
    """Something to read, and the milliseconds that it may take."""

    name: str
    path: str
    at_most_ms: float = PAGE_MS


async def run(quick: bool = False) -> Report:
    """The time of each read against its limit."""
    many, rounds = (20_000, 3) if quick else (1_000_000, 30)
    report = Report("Reads of large organizations")
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, "http://127.0.0.1:1")
        target = await front_end(stack, stores, free_port())
        server = await asyncpg.connect(stores.environment["GATEWAY_DATABASE_URL"])
        stack.push_async_callback(server.close)
        organization_id = await server.fetchval("SELECT organization_id FROM connectors")
        stack.enter_context(beside_the_server())
        jar = aiohttp.CookieJar(unsafe=True)
        session = await stack.enter_async_context(aiohttp.ClientSession(target.server.url, cookie_jar=jar))
        await _sign_in(session, stores.client.id, stores.client.secret)

        await _filled(
            server, organization_id, (_WORKSPACES, 500), (_CONNECTORS, 1_000), (_JOBS, 10_000), (_AUDIT, many)
        )
        size = f"1,000 connectors, 10,000 jobs, {many:,} audit entries"
        report.figures += [await _figure(target, session, read, size, rounds) for read in _console()]

        await _filled(server, organization_id, (_CONNECTORS, 10_000), (_JOBS, many), start=10_001)
        size = f"10,000 connectors, {many:,} jobs and audit entries"
        report.figures += [await _figure(target, session, read, size, rounds) for read in _api()]
    report.notes.append(f"processor time of the front end and PostgreSQL, mean of {rounds} requests one after another")
    return report


async def _sign_in(session: aiohttp.ClientSession, client_id: str, secret: str) -> None:
    form = {"client_id": client_id, "client_secret": secret}
    async with session.post("/console/sign-in", data=form, allow_redirects=False) as response:
        assert response.status == 303, response.status


async def _filled(
    server: "asyncpg.Connection[asyncpg.Record]", organization_id: UUID, *tables: tuple[str, int], start: int = 1
) -> None:
    """Rows of each table up to that number, in steps that show no statement for minutes."""
    for statement, last in tables:
        for first in range(1 if last < start else start, last + 1, 100_000):
            await server.execute(statement, organization_id, first, min(last, first + 99_999))
    await server.execute("VACUUM ANALYZE")


def _console() -> Sequence[Read]:
    pages = ("", "?span=week", "/connectors", "/jobs", "/jobs?status=failed", "/audit", "/search", "/playground",
             "/settings", "/health")  # fmt: skip
    return [Read(f"console{page}", f"/console{page}", CONSOLE_MS) for page in pages]


def _api() -> Sequence[Read]:
    now, nothing = datetime.now(UTC), uuid4()
    middle = (now - MONTH / 2).strftime("%Y-%m-%dT%H:%M:%SZ")
    month = (now - MONTH).strftime("%Y-%m-%dT%H:%M:%SZ")
    audit, jobs, connectors = "/api/v1/audit", "/api/v1/jobs", "/api/v1/integrations/connectors"
    return [
        Read("usage of a month", f"/api/v1/usage?since={month}&step=1400", USAGE_MS),
        Read("usage of an hour", "/api/v1/usage", USAGE_MS),
        Read("audit", audit),
        Read("audit, a connector without entries", f"{audit}?connector_id={nothing}"),
        Read("audit, an actor without entries", f"{audit}?actor={nothing}"),
        Read("audit, until the middle of the month", f"{audit}?until={middle}"),
        Read("jobs", jobs),
        Read("jobs that failed", f"{jobs}?status=failed"),
        Read("jobs, a status without any", f"{jobs}?status=canceled"),
        Read("jobs of a connector without any", f"{jobs}?connector_id={nothing}"),
        Read("jobs of a workspace", f"{jobs}?workspace_name=workspace%207"),
        Read("jobs of an entity without any", f"{jobs}?entity=nothing"),
        Read("connectors, a page of 100", f"{connectors}?limit=100"),
        Read("connectors of a workspace", f"{connectors}?workspace_name=workspace%207"),
        Read("workspaces by a part of their name", "/api/v1/workspaces?name_contains=99"),
        Read("operations for a task", "/api/v1/operations?query=close%20a%20ticket"),
    ]


async def _figure(target: Target, session: aiohttp.ClientSession, read: Read, size: str, rounds: int) -> Figure:
    """The processor time of the front end and PostgreSQL for one request, which does not depend on who else works."""
    await _read(session, read.path, target.headers)
    before = _cpu_seconds(target)
    for _ in range(rounds):
        await _read(session, read.path, target.headers)
    milliseconds = (_cpu_seconds(target) - before) / rounds * 1000
    return Figure(f"{size}: {read.name}, against its limit", milliseconds, read.at_most_ms, "ms", at_most=1)


def _cpu_seconds(target: Target) -> float:
    return target.server.cpu_seconds() + cpu_of_children("postgres")


async def _read(session: aiohttp.ClientSession, path: str, headers: dict[str, str]) -> None:
    async with session.get(URL(path, encoded=True), headers=headers) as response:
        body = await response.read()
        assert response.status == 200, (path, response.status, body[:500])


if __name__ == "__main__":
    measured_alone(run, __doc__)
