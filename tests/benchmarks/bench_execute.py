"""Execute beside a bare relay: what a request costs the front end, and the latency it adds.

    python -m tests.benchmarks.bench_execute [--quick]

Relays and gateway are processes on one core; the load and the application, canned so that each server is as busy as it
can be, are on another. Cost is the server's CPU time a request; requests per second are beside it.
"""

import asyncio
import contextlib
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from gateway import connect
from tests.benchmarks.plots import Bars
from tests.benchmarks.pressure import Callers
from tests.benchmarks.processes import Server, application, beside_the_server, server
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.caller import CREDENTIALS, Api
from tests.harness.clients import NewClient, new_client_in
from tests.harness.processes import KEYS, free_port
from tests.harness.stores import own_stores

CONNECTIONS = 32
SIZES = {"2 KB": SMALL, "100 KB": 100}
#: seconds of load before it counts
WARM = 0.3


@dataclass(frozen=True)
class Load:
    """The result of one run of requests."""

    requests_per_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Target:
    """A server under load, and its request."""

    server: Server
    path: str
    headers: dict[str, str]

    def body(self, records: int) -> Any:
        """A request for so many records."""
        return {"entity": "tickets", "action": "list", "params": {"per_page": records}}

    async def load(self, records: int, connections: int, seconds: float) -> Load:
        callers = Callers(self.server.url, [self.path], self.headers, self.body(records))
        await callers.connect(connections)
        callers.begin()
        await asyncio.sleep(WARM)
        cpu = self.server.cpu_seconds()
        outcome = await callers.counted(seconds)
        cpu = self.server.cpu_seconds() - cpu
        callers.close()
        assert set(outcome.answers) == {200}, outcome.answers
        return Load(outcome.accepted, cpu / outcome.answers[200] * 1e6, outcome.p50, outcome.p99)


async def run(quick: bool = False) -> Report:
    """The figures of PERFORMANCE for execute."""
    seconds, rounds = (1.0, 1) if quick else (2.0, 6)
    report = Report("Execute")
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(application())
        bare = await stack.enter_async_context(relay("aiohttp", upstream.url))
        other = await stack.enter_async_context(relay("starlette", upstream.url))
        stores = await opened_stores(stack, upstream.url)
        gateway = await front_end(stack, stores, free_port())
        unlogged = await front_end(stack, stores.changed(GATEWAY_REQUEST_LOG_RETENTION="0"), free_port())
        targets = {"relay": Target(bare, "/", {}), "starlette": Target(other, "/", {}), "gateway": gateway}
        stack.enter_context(beside_the_server())
        loads: dict[str, dict[str, list[Load]]] = {size: {name: [] for name in targets} for size in SIZES}
        for size, records in SIZES.items():
            for _ in range(rounds):
                for name, target in targets.items():
                    loads[size][name].append(await target.load(records, CONNECTIONS, seconds))
            report.figures += _figures(size, loads[size])
        logs: dict[str, list[Load]] = {"with": [], "without": []}
        for _ in range(rounds):
            logs["with"].append(await gateway.load(SMALL, CONNECTIONS, seconds))
            logs["without"].append(await unlogged.load(SMALL, CONNECTIONS, seconds))
        report.figures.append(_cost_of_log(logs))
        alone = {name: await target.load(SMALL, 1, seconds) for name, target in targets.items()}
        report.figures.append(_added_latency(alone["gateway"], alone["relay"]))
    report.figures.append(await _in_process(seconds))
    report.plots += _plots(loads)
    report.notes.append("cost: CPU time of the server process a request; the relays do nothing but pass bytes on")
    report.notes.append(f"of {rounds} rounds, in each of which all take their turn, the one with the median ratio")
    return report


def _cost(load: Load) -> float:
    return load.cpu_us


def _plots(loads: dict[str, dict[str, list[Load]]]) -> list[Bars]:
    def of(member: str) -> dict[str, dict[str, float]]:
        return {
            size: {name: statistics.median(getattr(load, member) for load in runs) for name, runs in by_name.items()}
            for size, by_name in loads.items()
        }

    return [
        Bars("throughput", f"Execute at {CONNECTIONS} connections", "requests/s", of("requests_per_second")),
        Bars("latency", f"Execute at {CONNECTIONS} connections", "p99 ms", of("p99_ms")),
    ]


def _figures(size: str, loads: dict[str, list[Load]]) -> list[Figure]:
    ours, relay = paired(loads["gateway"], loads["relay"], _cost)
    beside, starlette = paired(loads["gateway"], loads["starlette"], _cost)
    return [
        Figure(f"{size}: requests a CPU second, beside a bare aiohttp relay", 1e6 / ours.cpu_us, 1e6 / relay.cpu_us,
               "req", at_least=0.6),
        Figure(f"{size}: requests a CPU second, beside starlette + httpx", 1e6 / beside.cpu_us,
               1e6 / starlette.cpu_us, "req", at_least=6 if size == "2 KB" else None),
        Figure(f"{size}: requests/s at {CONNECTIONS} connections", ours.requests_per_second,
               relay.requests_per_second, "req/s"),
        Figure(f"{size}: p99 at {CONNECTIONS} connections", ours.p99_ms, relay.p99_ms, "ms", at_most=2.0),
    ]  # fmt: skip


def _cost_of_log(logs: dict[str, list[Load]]) -> Figure:
    """What the log of requests to applications costs the front end, beside `GATEWAY_REQUEST_LOG_RETENTION=0`."""
    logged, unlogged = paired(logs["with"], logs["without"], _cost)
    return Figure(
        "2 KB: processor time of a call, beside one without the request log", logged.cpu_us, unlogged.cpu_us, "µs"
    )


def _added_latency(gateway: Load, relay: Load) -> Figure:
    """Held to one millisecond: the baseline is the bound."""
    return Figure(
        "added latency at one connection (baseline: 1 ms)", gateway.p50_ms - relay.p50_ms, 1.0, "ms", at_most=0.5
    )


def relay(what: str, upstream: str) -> AbstractAsyncContextManager[Server]:
    """A server of that library that only relays bytes."""
    port = free_port()
    return server("tests.benchmarks.relays", what, str(port), upstream, port=port)


async def own_gateway(stack: contextlib.AsyncExitStack, port: int, upstream: str) -> Target:
    """A front end on stores of its own, with a connector to the application."""
    return await front_end(stack, await opened_stores(stack, upstream), port)


@dataclass(frozen=True)
class Stores:
    """The stores that processes of one gateway share: their settings, and a client that is known there."""

    environment: dict[str, str]
    client: NewClient

    def changed(self, **settings: str) -> "Stores":
        """The same stores, for a process with other settings."""
        return Stores({**self.environment, **settings}, self.client)


async def opened_stores(stack: contextlib.AsyncExitStack, upstream: str) -> Stores:
    """Servers of their own, for as long as the stack is open."""
    stores = await stack.enter_async_context(own_stores())
    environment = {
        "GATEWAY_DATABASE_URL": stores.postgres.url,
        "GATEWAY_REDIS_URL": stores.redis.url,
        "GATEWAY_DATA_DIR": str(stores.directory / "data"),
        "GATEWAY_ENCRYPTION_KEYS": KEYS,
        "GATEWAY_UPSTREAM_SUPPORT_DESK": upstream,
        "GATEWAY_SYNCHRONIZE": "false",
        "GATEWAY_LOG_LEVEL": "warning",
    }
    return Stores(environment, await new_client_in(stores.postgres.url))


async def front_end(stack: contextlib.AsyncExitStack, stores: Stores, port: int, *, core: int | None = 0) -> Target:
    """A front end with a connector of its own."""
    environment = {**stores.environment, "GATEWAY_BIND": f"127.0.0.1:{port}"}
    running = await stack.enter_async_context(
        server("gateway", "serve", port=port, environment=environment, core=core, path="/healthz")
    )
    return await target_of(running, stores.client)


async def target_of(running: Server, client: NewClient) -> Target:
    """A new connector of a client's organization."""
    async with Api.of(running.url, client.id, client.secret) as api:
        connector = await api.connector("support-desk", validate=False)
        return Target(running, f"{connector.path}/execute", api.headers)


async def _in_process(seconds: float) -> Figure:
    """`execute` in this process beside the public SDK's own executor, one call after another."""
    async with application(core=0) as upstream:
        async with connect("support-desk", CREDENTIALS, upstream=upstream.url) as desk:

            async def ours() -> None:
                _ = (await desk.execute("tickets", "list", {"per_page": SMALL})).answer.result

            mine = await _calls_per_cpu_second(ours, seconds)
        theirs = await _calls_per_cpu_second(await _sdk_call(upstream.url), seconds)
    return Figure("2 KB: in-process calls a CPU second, beside the public SDK's", mine, theirs, "calls", at_least=10)


async def _sdk_call(upstream: str) -> Callable[[], Awaitable[None]]:
    from airbyte_agent_sdk.connectors.zendesk_support import ZendeskSupportConnector
    from airbyte_agent_sdk.connectors.zendesk_support.models import ZendeskSupportApiTokenAuthConfig

    connector = ZendeskSupportConnector(
        auth_config=ZendeskSupportApiTokenAuthConfig(email="agent@example.com", api_token="token"), subdomain="acme"
    )
    connector._executor.http_client.base_url = f"{upstream}/api/v2"

    async def theirs() -> None:
        await connector.execute("tickets", "list", {"per_page": SMALL})

    await theirs()
    return theirs


async def _calls_per_cpu_second(call: Callable[[], Awaitable[None]], seconds: float) -> float:
    await call()
    calls, began, deadline = 0, time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        await call()
        calls += 1
    return calls / (time.process_time() - began)


if __name__ == "__main__":
    measured_alone(run, __doc__)
