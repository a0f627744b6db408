"""Thousands of calls in flight: slow applications, noisy neighbours, many connectors, and the resources of a process.

    python -m tests.benchmarks.bench_thousands [--quick]

One front end on one core; the load, and an application that takes its time, on the other.
"""

import asyncio
import contextlib
import json
import random
import resource
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import asyncpg

from tests.benchmarks.bench_execute import (
    CONNECTIONS,
    Load,
    Stores,
    Target,
    front_end,
    opened_stores,
    relay,
)
from tests.benchmarks.plots import Bars, Plot
from tests.benchmarks.pressure import Callers, Outcome
from tests.benchmarks.processes import Server, application, beside_the_server, worker
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.caller import CREDENTIALS
from tests.harness.processes import free_port
from tests.harness.waiting import eventually

#: connectors that the callers share, all at one host, and the seconds that it takes for an answer
ACCOUNTS, SECONDS = 300, 1.0
#: callers that the front end can serve, and more than one core can do
CALLERS, CROWD = 600, 3000
#: calls that are all under way at once, of an application that takes so many seconds
IN_FLIGHT, LONG_SECONDS = 5000, 12.0
#: bounds: milliseconds until an answer and until a refusal, KiB a caller, PostgreSQL connections of a process
ANSWERED, REFUSED, KIB, POSTGRES_CONNECTIONS = 5000.0, 500.0, 40.0, 10.0
#: jobs of one connector, whose application takes 20 at a time, and of others; seconds within which those have to start
FLOOD, OTHERS, STARTED = 1500, 60, 3.0

_CONNECTORS = "/api/v1/integrations/connectors"
_SERVED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
_ARE_RUNNING = "SELECT count(*) >= $2 FROM jobs WHERE connector_id = $1 AND status = 'running'"
_ALL_STARTED = "SELECT NOT EXISTS (SELECT FROM jobs WHERE connector_id <> $1 AND started_at IS NULL)"
_STARTED = """
    SELECT extract(epoch FROM started_at - created_at)::float8 FROM jobs WHERE connector_id <> $1
"""


async def run(quick: bool = False) -> Report:
    """All figures."""
    _raise_file_limit()
    report = Report("Thousands in flight")
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, (await stack.enter_async_context(application(seconds=SECONDS))).url)
        await _slow_application(report, stores, 2.0 if quick else 8.0)
        await _in_flight(report, stores, 500 if quick else IN_FLIGHT)
        await _neighbours(report, stores, *((200, 20) if quick else (FLOOD, OTHERS)))
    await _connectors(report, (10, 1000) if quick else (10, 100, 1_000, 10_000), *((1.0, 1) if quick else (2.0, 3)))
    return report


def _raise_file_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@dataclass(frozen=True)
class Phase:
    """What callers got of a server, and what they cost it."""

    outcome: Outcome
    #: calls in a second of processor time, and KiB that a caller took
    a_cpu_second: float
    kib: float


async def _phase(served: Server, callers: Callers, connections: int, seconds: float) -> Phase:
    """So many callers, each of which asks again as soon as it is answered."""
    before = served.memory_mib()
    await callers.connect(connections)
    cpu = served.cpu_seconds()
    outcome = await callers.steady(3 * SECONDS, seconds)
    grown, cpu = served.memory_mib() - before, served.cpu_seconds() - cpu
    calls = outcome.accepted * (seconds + 3 * SECONDS)
    callers.close()
    return Phase(outcome, calls / cpu, grown * 1024 / connections)


async def _slow_application(report: Report, stores: Stores, seconds: float) -> None:
    """As many callers as the front end can serve, then more than its core can do, beside a bare relay."""
    async with contextlib.AsyncExitStack() as stack:
        upstream = stores.environment["GATEWAY_UPSTREAM_SUPPORT_DESK"]
        target = await front_end(stack, stores, free_port())
        bare = await stack.enter_async_context(relay("aiohttp", upstream))
        paths = [target.path]
        await _create(target, paths, ACCOUNTS)
        stack.enter_context(beside_the_server())
        few = await _phase(target.server, Callers(target.server.url, paths, target.headers), CALLERS, seconds)
        many = await _phase(target.server, Callers(target.server.url, paths, target.headers), CROWD, seconds)
        passed_on = await _phase(bare, Callers(bare.url, ["/"], {}), CROWD, seconds)
    report.figures += _slow_figures(few, many, passed_on)
    report.plots.append(_slow_plot(few, many, passed_on))
    report.notes.append(
        f"{CROWD:,} callers of an application that takes {SECONDS:g} s would be {CROWD / SECONDS:,.0f} calls/s: more "
        f"than a core can do, so its bound is what {CALLERS} callers cost ({few.a_cpu_second:,.0f} calls in a second "
        f"of processor time; the bare relay {passed_on.a_cpu_second:,.0f})"
    )
    report.notes.append(
        f"answers to {CROWD:,} callers: {_told(many.outcome)}; of the bare relay: {_told(passed_on.outcome)}"
    )


def _slow_figures(few: Phase, many: Phase, relay: Phase) -> list[Figure]:
    name, crowd = f"{CALLERS} callers of {ACCOUNTS} accounts", f"{CROWD:,} callers of {ACCOUNTS} accounts"
    bound = min(CROWD / SECONDS, few.a_cpu_second)
    refusals = many.outcome.refusals
    refused = refusals[int(len(refusals) * 0.99)] if refusals else 0.0
    answers = sum(few.outcome.answers.values())
    return [
        Figure(f"{name}: calls/s, beside the ideal", few.outcome.accepted, CALLERS / SECONDS, "/s", at_least=0.85),
        Figure(f"{name}: answers other than 200", answers - few.outcome.answers[200], answers, "", at_most=0),
        Figure(f"{crowd}: calls/s, beside the bound of the core", many.outcome.accepted, bound, "/s", at_least=0.7),
        Figure(f"{crowd}: calls/s, beside a bare relay", many.outcome.accepted, relay.outcome.accepted, "/s"),
        Figure(f"{crowd}: calls/s, beside the ideal", many.outcome.accepted, CROWD / SECONDS, "/s"),
        Figure(f"{crowd}: p99 (beside its bound)", many.outcome.p99, ANSWERED, "ms", at_most=1),
        Figure(f"{crowd}: p99 of refusals (beside its bound)", refused, REFUSED, "ms", at_most=1),
        Figure(f"{crowd}: memory of a caller (beside its bound)", many.kib, KIB, "KiB", at_most=1),
    ]


def _slow_plot(few: Phase, many: Phase, relay: Phase) -> Bars:
    groups = {
        f"{CALLERS} callers": {"gateway": few.outcome.accepted, "ideal": CALLERS / SECONDS},
        f"{CROWD:,} callers": {
            "gateway": many.outcome.accepted,
            "ideal": CROWD / SECONDS,
            "bare relay": relay.outcome.accepted,
        },
    }
    return Bars("slow_application", f"An application that takes {SECONDS:g} s", "calls/s", groups)


def _told(outcome: Outcome) -> str:
    return ", ".join(f"{status}: {count:,}" for status, count in sorted(outcome.answers.items()))


async def _in_flight(report: Report, stores: Stores, calls: int) -> None:
    """PostgreSQL connections of a process while so many calls of an application are under way."""
    name = f"thousands-{free_port()}"
    async with contextlib.AsyncExitStack() as stack:
        url = stores.environment["GATEWAY_DATABASE_URL"]
        changed = {
            "GATEWAY_UPSTREAM_SUPPORT_DESK": (await stack.enter_async_context(application(seconds=LONG_SECONDS))).url,
            "GATEWAY_DATABASE_URL": f"{url}{'&' if '?' in url else '?'}application_name={name}",
            # None of the callers is to find the ceiling: the last connections below it are for other accounts.
            "GATEWAY_MAX_UPSTREAM_CONNECTIONS": str(3 * calls),
        }
        target = await front_end(stack, replace(stores, environment={**stores.environment, **changed}), free_port())
        paths = [target.path]
        await _create(target, paths, ACCOUNTS)
        connection = await asyncpg.connect(url)
        stack.push_async_callback(connection.close)
        callers = Callers(target.server.url, paths, target.headers)
        stack.callback(callers.close)
        await callers.connect(calls)
        asking = asyncio.create_task(callers.once())
        served = 0
        while not asking.done():
            served = max(served, await connection.fetchval(_SERVED, name))
            await asyncio.sleep(0.1)
        outcome = await asking
    # Whoever is answered so late was under way when the last one was asked.
    together = outcome.answers.get(200, 0) if outcome.p99 < 2 * LONG_SECONDS * 1000 else 0
    report.figures += [
        Figure(f"{calls:,} calls at once: all under way together", float(together), float(calls), "calls", at_least=1),
        Figure(f"{calls:,} calls at once: PostgreSQL connections (beside their bound)", float(served),
               POSTGRES_CONNECTIONS, "", at_most=1),
    ]  # fmt: skip
    report.notes.append(
        f"{calls:,} calls of an application that takes {LONG_SECONDS:g} s: the last one was answered after "
        f"{outcome.seconds:.1f} s, p50 {outcome.p50 / 1000:.1f} s"
    )


async def _neighbours(report: Report, stores: Stores, flood: int, others: int) -> None:
    """One connector's jobs far beyond what its application takes at a time, then jobs of others."""
    async with contextlib.AsyncExitStack() as stack:
        target = await front_end(stack, stores, free_port())
        paths = [target.path]
        await _create(target, paths, others + 1)
        database = await asyncpg.connect(stores.environment["GATEWAY_DATABASE_URL"])
        stack.push_async_callback(database.close)
        noisy = paths[0].split("/")[-2]
        await _submit(target, [paths[0]] * flood, pause=0.0)
        await stack.enter_async_context(worker("gateway", "worker", environment=stores.environment))
        await eventually(lambda: database.fetchval(_ARE_RUNNING, noisy, CONNECTIONS // 2))
        await _submit(target, paths[1:], pause=0.05)
        await eventually(lambda: database.fetchval(_ALL_STARTED, noisy), within=120)
        started = [row[0] for row in await database.fetch(_STARTED, noisy)]
    name = f"{flood:,} jobs of one connector behind its limit: start of {len(started)} others"
    report.figures += [
        Figure(f"{name}, longest (beside its bound)", max(started) * 1000, STARTED * 1000, "ms", at_most=1),
        Figure(f"{name}, p50 (beside that bound)", statistics.median(started) * 1000, STARTED * 1000, "ms"),
    ]


async def _submit(target: Target, paths: Sequence[str], *, pause: float) -> None:
    """A job for each path, by many callers at once, or one after the other with a pause in between."""
    left = iter(paths)
    headers = {**target.headers, "Prefer": "respond-async"}

    async with aiohttp.ClientSession(target.server.url) as session:

        async def caller() -> None:
            for path in left:
                await _posted(session, path, target.body(SMALL), headers)
                await asyncio.sleep(pause)

        await asyncio.gather(*(caller() for _ in range(1 if pause else 16)))


async def _connectors(report: Report, sizes: Sequence[int], seconds: float, rounds: int) -> None:
    """Calls of connectors at random, each of which has to be opened from time to time."""
    measured: dict[int, list[Load]] = {size: [] for size in sizes}
    async with _fast_front_end() as target:
        paths = [target.path]
        for size in sizes:
            await _create(target, paths, size)
            measured[size].append(await _called(target, paths[:size], seconds))
        for _ in range(rounds):
            for size in (sizes[0], sizes[-1]):
                measured[size].append(await _called(target, paths[:size], seconds))
    name, (few, many) = f"{sizes[-1]:,} connectors beside {sizes[0]}", (measured[sizes[0]][1:], measured[sizes[-1]][1:])
    last, first = paired(many, few, lambda load: load.p50_ms)
    report.figures += [
        Figure(f"{name}: p50 at {CONNECTIONS} connections", last.p50_ms, first.p50_ms, "ms", at_most=1.3),
        Figure(f"{name}: requests/s", last.requests_per_second, first.requests_per_second, "/s", at_least=0.8),
        Figure(f"{name}: processor time of a request", last.cpu_us, first.cpu_us, "µs"),
    ]
    lines = {
        "p50": [(float(size), loads[0].p50_ms) for size, loads in measured.items()],
        "p99": [(float(size), loads[0].p99_ms) for size, loads in measured.items()],
    }
    report.plots.append(
        Plot(
            name="connectors",
            title="Execute with more connectors",
            x_label="connectors",
            y_label="ms",
            series=lines,
            is_logarithmic=True,
        )
    )


@asynccontextmanager
async def _fast_front_end() -> AsyncIterator[Target]:
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(application())
        target = await front_end(stack, await opened_stores(stack, upstream.url), free_port())
        stack.enter_context(beside_the_server())
        yield target


async def _create(target: Target, paths: list[str], size: int) -> None:
    """Connectors of their own credentials until there are `size` of them."""
    wanted = iter(range(len(paths), size))
    body = {"workspace_name": "w", "connector_type": "support-desk", "credentials": CREDENTIALS, "validate": False}

    async with aiohttp.ClientSession(target.server.url) as session:

        async def creator() -> None:
            for number in wanted:
                named = {**body, "name": f"c{number}-{target.server.pid}"}
                made = await _posted(session, _CONNECTORS, named, target.headers)
                paths.append(f"{_CONNECTORS}/{made['id']}/execute")

        await asyncio.gather(*(creator() for _ in range(16)))


async def _posted(session: aiohttp.ClientSession, path: str, body: Any, headers: dict[str, str]) -> Any:
    async with session.post(path, json=body, headers=headers) as response:
        document = await response.json()
        assert response.status < 300, document
    return document


async def _called(target: Target, paths: Sequence[str], seconds: float) -> Load:
    """What calls of these connectors at random come to."""
    body = json.dumps(target.body(SMALL)).encode()
    headers = {"Content-Type": "application/json", **target.headers}
    chance, latencies = random.Random(3), list[float]()
    async with aiohttp.ClientSession(target.server.url) as session:
        started, cpu = time.perf_counter(), target.server.cpu_seconds()

        async def caller() -> None:
            while (began := time.perf_counter()) - started < seconds:
                async with session.post(chance.choice(paths), data=body, headers=headers) as response:
                    await response.read()
                    assert response.status == 200, response.status
                latencies.append((time.perf_counter() - began) * 1000)

        await asyncio.gather(*(caller() for _ in range(CONNECTIONS)))
        took, cpu = time.perf_counter() - started, target.server.cpu_seconds() - cpu
    latencies.sort()
    p50, p99 = statistics.median(latencies), latencies[int(len(latencies) * 0.99)]
    return Load(len(latencies) / took, cpu / len(latencies) * 1e6, p50, p99)


if __name__ == "__main__":
    measured_alone(run, __doc__)
