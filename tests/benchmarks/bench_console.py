"""Every page of the console for an organization with 10,000 jobs and 1,000 connectors.

    python -m tests.benchmarks.bench_console [--quick]

One front end on one core; each page is read by one caller, one after another. The rows are made by SQL; what a page
with an id is of is made by the API.
"""

import contextlib
import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import asyncpg

from gateway.web.console.routes import CONSOLE_ROUTES
from tests.benchmarks.bench_execute import front_end, opened_stores
from tests.benchmarks.bench_reads import (
    _AUDIT,
    _CONNECTORS,
    _JOBS,
    _WORKSPACES,
    CONSOLE_MS,
    Read,
    _figure,
    _filled,
    _sign_in,
)
from tests.benchmarks.processes import beside_the_server
from tests.benchmarks.report import Report, measured_alone
from tests.harness.caller import Api
from tests.harness.processes import free_port

# As the rows of bench_reads: $1 organization, the rows from $2 to $3. Jobs and calls of the connectors.
_OF_CONNECTORS = """
    WITH numbered AS (
        SELECT id, row_number() OVER (ORDER BY created_at, id) AS number FROM connectors WHERE organization_id = $1
    ), placed AS (
        SELECT jobs.id, row_number() OVER (ORDER BY jobs.created_at, jobs.id) AS number FROM jobs
        WHERE organization_id = $1
    )
    UPDATE jobs SET connector_id = numbered.id FROM placed JOIN numbered ON numbered.number = 1 + placed.number % 1000
    WHERE jobs.id = placed.id AND placed.number BETWEEN $2::integer AND $3::integer
"""
_COPIES = """
    INSERT INTO context_entities (connector_id, organization_id, entity, layout, status, records, last_synced_at,
                                  next_sync_at)
    SELECT numbered.id, $1, entity, '{"keys": [], "worded": []}',
           CASE WHEN number % 50 = 0 THEN 'failed' ELSE 'ready' END, 100, now(), now() + interval '1 day'
    FROM (SELECT id, row_number() OVER (ORDER BY created_at, id) AS number FROM connectors
          WHERE organization_id = $1) AS numbered,
         unnest(ARRAY['tickets', 'users', 'organizations', 'groups', 'macros']) AS entity
    WHERE number BETWEEN $2::integer AND $3::integer ON CONFLICT DO NOTHING
"""
_CALLS = """
    INSERT INTO audit (organization_id, at, actor, connector_id, what, outcome, took_ms)
    SELECT $1, now() - n * interval '0.3 seconds', $1, (SELECT id FROM connectors WHERE organization_id = $1
           ORDER BY created_at, id LIMIT 1), 'tickets.get', 'succeeded', n % 700
    FROM generate_series($2::integer, $3) AS n
"""
_CEDAR = '@id("no-writes")\nforbid(principal, action in Action::"write", resource);'
#: pages with a query, beside those of the routes
_QUERIES = (
    "/console?span=month&by=connector",
    "/console?span=month&by=client",
    "/console/jobs?status=failed&period=month",
    "/console/jobs?workspace=workspace%207",
    "/console/connectors?query=99",
    "/console/connectors?status=needs_reauth",
    "/console/connectors/{connector_id}?span=month",
    "/console/connectors/{connector_id}?tab=copies",
    "/console/connectors/{connector_id}?tab=operations",
    "/console/audit?outcome=upstream_error",
    "/console/playground?operation=support-desk.tickets.create",
    "/console/schedules/new?connector={connector_id}&operation=support-desk.tickets.list",
    "/console/batches?connector={connector_id}",
)
#: of another kind of resource: files, imported kinds, approvals
_NOT_MEASURED = re.compile(r"\.csv$|\.zip$|/result$|\{page:|\{kind\}|\{approval_id\}|^/console/sandbox$|^/console/me$")


async def run(quick: bool = False) -> Report:
    """The time of each page against its limit."""
    entries, rounds = (20_000, 3) if quick else (200_000, 20)
    report = Report("Pages of the console")
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, "http://127.0.0.1:1")
        target = await front_end(stack, stores, free_port())
        server = await asyncpg.connect(stores.environment["GATEWAY_DATABASE_URL"])
        stack.push_async_callback(server.close)
        organization_id = await server.fetchval("SELECT organization_id FROM connectors")
        await _filled(
            server,
            organization_id,
            (_WORKSPACES, 500),
            (_CONNECTORS, 1_000),
            (_JOBS, 10_000),
            (_AUDIT, entries),
            (_OF_CONNECTORS, 10_000),
            (_COPIES, 1_000),
            (_CALLS, entries // 10),
        )
        api = await stack.enter_async_context(Api.of(target.server.url, str(stores.client.id), stores.client.secret))
        ids = await _resources(api, server, organization_id, str(stores.client.id))
        stack.enter_context(beside_the_server())
        jar = aiohttp.CookieJar(unsafe=True)
        session = await stack.enter_async_context(aiohttp.ClientSession(target.server.url, cookie_jar=jar))
        await _sign_in(session, str(stores.client.id), stores.client.secret)
        size = f"1,000 connectors, 10,000 jobs, {entries:,} audit entries"
        report.figures += [await _figure(target, session, read, size, rounds) for read in _pages(ids)]
    report.notes.append(f"processor time of the front end and PostgreSQL, mean of {rounds} requests one after another")
    return report


def _pages(ids: dict[str, Any]) -> Sequence[Read]:
    routes = [route.path for route in CONSOLE_ROUTES if route.method == "GET" and not route.is_open]
    paths = [*(path for path in routes if not _NOT_MEASURED.search(path)), *_QUERIES]
    return [Read(path, path.format(**ids), CONSOLE_MS) for path in paths]


async def _resources(
    api: Api, server: "asyncpg.Connection[asyncpg.Record]", organization_id: UUID, client_id: str
) -> dict[str, Any]:
    """The ids of what pages are of."""
    connector_id = await server.fetchval(
        "SELECT id FROM connectors WHERE organization_id = $1 ORDER BY created_at, id LIMIT 1", organization_id
    )
    job_id = await server.fetchval("SELECT id FROM jobs WHERE organization_id = $1 LIMIT 1", organization_id)
    schedule = {"name": "Mornings", "connector_id": str(connector_id), "entity": "tickets", "action": "list"}
    webhook = {"url": "https://receiver.invalid/webhooks", "types": ["job.*"]}
    person = {"name": f"Ada {uuid4()}", "workspaces": ["workspace 1"], "scopes": ["read"]}
    await api.call("PUT", "/api/v1/policies/no-writes", json={"cedar": _CEDAR, "mode": "shadow"})
    return {
        "connector_id": connector_id,
        "job_id": job_id,
        "schedule_id": (await api.post("/api/v1/schedules", {**schedule, "cron": "@daily"})).document(201)["id"],
        "webhook_id": (await api.post("/api/v1/webhooks", webhook)).document(201)["id"],
        "person_id": (await api.post("/api/v1/people", person)).document(201)["id"],
        "client_id": client_id,
        "name": "no-writes",
    }


if __name__ == "__main__":
    measured_alone(run, __doc__)
