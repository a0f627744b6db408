"""Decisions by 1,000 policies, beside Cedar over the whole set, and a replay of the audit log by them.

python -m tests.benchmarks.bench_policies [--quick]
"""

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import cedarpy

from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.language import statements_of
from gateway.access.policy.model import PolicyCall, Target
from gateway.contract.policies import Surface
from gateway.kinds.loading import load_catalog
from gateway.upstream.prepared import prepare
from tests.benchmarks.bench_execute import front_end, opened_stores
from tests.benchmarks.processes import worker
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.caller import Api
from tests.harness.processes import free_port

#: statements of the organization, and clients that they are about
STATEMENTS, CLIENTS = 1000, 100
#: microseconds of the median decision
P50_US = 50.0
#: seconds that a replay may take, connectors of the organization, and the time over which its calls are spread
REPLAY_S, CONNECTORS, WEEK = 60.0, 20, timedelta(days=7)
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
FORBID = """
    forbid(principal == Client::"{client}", action in Action::"idempotent", resource)
    when {{ context.params has ticket_id && context.params.ticket_id == {number} }};
"""
#: statements of one policy, whose text is bounded
_IN_A_POLICY = 200
_CONNECTORS = """
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status, auth_method)
    SELECT lpad(to_hex(n), 32, '0')::uuid, organization_id, workspace_id, kind, name || n, status, auth_method
    FROM connectors CROSS JOIN generate_series(1, $1) AS n
"""
# Calls of all clients, connectors and operations in turn.
_CALLS = """
    INSERT INTO audit (organization_id, at, actor, connector_id, kind, what, outcome, took_ms)
    SELECT $1, now() - n * $4::interval, lpad(to_hex(n % $5), 32, '0')::uuid,
           lpad(to_hex(1 + n / 7 % $6), 32, '0')::uuid, 'support-desk',
           (ARRAY['tickets.list', 'tickets.get', 'tickets.update', 'tickets.create'])[1 + n / 3 % 4], 'succeeded',
           n % 700
    FROM generate_series($2::integer, $3) AS n
"""


async def run(quick: bool = False) -> Report:
    """The median of decisions that read a param, and of those that read none; and the time of a replay."""
    forbids = [FORBID.format(client=UUID(int=number % CLIENTS), number=number) for number in range(1, STATEMENTS)]
    statements = ["permit(principal, action, resource);", *forbids]
    text = "".join(statements)
    decided, whole = DecidedSet(statements_of("main", text)), cedarpy.PolicySet.from_str(text)
    reading, plain = _call(5), _call(CLIENTS)
    request = {**decided.about(reading).request, "context": {"params": {"ticket_id": 0}}}
    entities = cedarpy.Entities.from_json_str(json.dumps(decided.about(reading).entities))
    rounds = 200 if quick else 5000
    ours = _median(lambda: decided.decide(reading, NOW), rounds)
    of_no_param = _median(lambda: decided.decide(plain, NOW), rounds)
    of_cedar = _median(lambda: cedarpy.is_authorized(request, whole, entities), rounds // 20)
    report = Report("Policies")
    report.figures += [
        Figure("p50 of a decision that reads a param, against its aim", ours, P50_US, "µs", at_most=1),
        Figure("p50 of a decision that reads no param, against its aim", of_no_param, P50_US, "µs", at_most=1),
        Figure("p50 of a decision that reads a param, against Cedar over the whole set", ours, of_cedar, "µs"),
    ]
    entries = 50_000 if quick else 1_000_000
    seconds = await _replay(statements, entries)
    report.figures.append(
        Figure(f"replay of {entries:,} audit entries, against its aim", seconds, REPLAY_S, "s", at_most=1)
    )
    report.notes.append(
        f"{STATEMENTS} statements of an organization, of which {STATEMENTS // CLIENTS} are about the client of the "
        "call and have a condition."
    )
    return report


async def _replay(statements: Sequence[str], entries: int) -> float:
    """Seconds from the request until one worker has decided the calls of a week by policies given with it."""
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, "http://127.0.0.1:1")
        target = await front_end(stack, stores, free_port(), core=None)
        server = await asyncpg.connect(stores.environment["GATEWAY_DATABASE_URL"])
        stack.push_async_callback(server.close)
        organization_id = await server.fetchval("SELECT organization_id FROM connectors")
        api = await stack.enter_async_context(Api.of(target.server.url, stores.client.id, stores.client.secret))
        await server.execute(_CONNECTORS, CONNECTORS)
        for first in range(1, entries + 1, 100_000):
            last = min(entries, first + 99_999)
            await server.execute(_CALLS, organization_id, first, last, WEEK / entries, CLIENTS, CONNECTORS)
        await server.execute("VACUUM ANALYZE")
        await stack.enter_async_context(worker("gateway", "worker", environment=stores.environment))
        since = (datetime.now(UTC) - WEEK).isoformat()
        policies = [
            {"name": f"part-{first}", "cedar": "".join(statements[first : first + _IN_A_POLICY])}
            for first in range(0, len(statements), _IN_A_POLICY)
        ]
        started = time.perf_counter()
        job = (await api.post("/api/v1/policies/replay", {"since": since, "policies": policies})).document(202)["job"]
        while job["status"] in ("queued", "running"):
            await asyncio.sleep(0.1)
            job = (await api.get(f"/api/v1/jobs/{job['id']}")).document()
        seconds = time.perf_counter() - started
        effect = (await api.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]
        assert effect["undecided"] > entries / 5, effect
        return seconds


def _call(client: int) -> PolicyCall:
    operation = load_catalog().kind("support-desk").operation("tickets", "update")
    prepared = prepare(operation, {"ticket_id": 0, "ticket": {"status": "open"}})
    return PolicyCall(
        client_id=UUID(int=client),
        target=Target(connector_id=UUID(int=1), name="Desk", workspace_name="emea", kind="support-desk"),
        entity="tickets",
        action="update",
        effect=prepared.effect,
        surface=Surface.HTTP,
        params=prepared.params,
        operation=operation,
    )


def _median(decide: Callable[[], object], rounds: int) -> float:
    """Microseconds of the median round, after one that is not counted."""
    decide()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        decide()
        times.append((time.perf_counter() - started) * 1e6)
    return statistics.median(times)


if __name__ == "__main__":
    measured_alone(run, __doc__)
