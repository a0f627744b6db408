"""Calls of people with own connectors: those of an organization of 10,000 people beside those of one person.

    python -m tests.benchmarks.bench_people [--quick]

Both organizations are of the same gateway, and take turns. A person has five connectors and calls one of them, over
HTTP by its id and by a tool of an agent without it. One front end on one core; the load and the application on another.
"""

import asyncio
import contextlib
import json
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import aiohttp

from gateway.access.identity.tokens import new_secret
from gateway.foundation.mcp import VERSIONS
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, headers_of
from tests.benchmarks.bench_execute import CONNECTIONS, Load, Stores, front_end, opened_stores
from tests.benchmarks.pressure import LIST
from tests.benchmarks.processes import Server, application, beside_the_server
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.faults.people import KINDS, connector_of
from tests.harness.caller import Api
from tests.harness.clients import NewClient, new_client_in
from tests.harness.people import add_people, copy_connector
from tests.harness.processes import free_port

#: people of the larger organization
PEOPLE = 10_000
#: the most that a call of one of many people may cost beside that of a person alone
AT_MOST = 1.1
_LIFE = 14_400
_TOOL = {"name": "read", "arguments": {"operation": "support-desk.tickets.list", "params": LIST["params"]}}


@dataclass
class Organization:
    """An organization and the requests of its people: the path and headers of a call over HTTP, and a token."""

    client: NewClient
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)


async def run(quick: bool = False) -> Report:
    """The figures of people."""
    people, seconds, rounds = (500, 1.0, 1) if quick else (PEOPLE, 4.0, 5)
    report = Report("People")
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, (await stack.enter_async_context(application())).url)
        server = (await front_end(stack, stores, free_port())).server
        url = stores.environment["GATEWAY_DATABASE_URL"]
        many, one = Organization(stores.client), Organization(await new_client_in(url))
        await _populate(server, stores, many, people)
        await _populate(server, stores, one, 1)
        stack.enter_context(beside_the_server())
        for name, is_agent in (("HTTP", False), ("MCP", True)):
            measured: dict[str, list[Load]] = {"many": [], "one": []}
            first = await _called(server, iter(many.requests), is_agent=is_agent)
            for _ in range(rounds):
                for key, organization in (("many", many), ("one", one)):
                    load = await _called(server, _at_random(organization, seconds), is_agent=is_agent)
                    measured[key].append(load)
            title = f"{name}: a call of {people:,} people beside one of one"
            for figure, unit, cost in (("processor time", "µs", _cpu), ("p50", "ms", _p50)):
                ours, theirs = paired(measured["many"], measured["one"], cost)
                report.figures.append(Figure(f"{title}, {figure}", cost(ours), cost(theirs), unit, at_most=AT_MOST))
            report.notes.append(
                f"{name}: the first call of each of {people:,} people took {first.cpu_us:,.0f} µs of processor and "
                f"{first.p50_ms:,.0f} ms (p50): the front end reads what it has not read before"
            )
    return report


def _cpu(load: Load) -> float:
    return load.cpu_us


def _p50(load: Load) -> float:
    return load.p50_ms


async def _populate(server: Server, stores: Stores, organization: Organization, people: int) -> None:
    """People with tokens and five connectors each, copies of one of each kind with credentials of their own."""
    client, url = organization.client, stores.environment["GATEWAY_DATABASE_URL"]
    tokens = {uuid4(): new_secret() for _ in range(people)}
    async with Api.of(server.url, client.id, client.secret) as api:
        await api.call("PUT", "/api/v1/groups/staff", json={"workspaces": None, "scopes": []})
        await add_people(url, client.organization_id, tokens, _LIFE)
        for slot in range(len(KINDS)):
            body = connector_of(slot, f"acct-shared-{slot}")
            template = (await api.post("/api/v1/integrations/connectors", body)).document(201)["id"]
            credentials = [connector_of(slot, "acct-1-1")["credentials"]] * people
            own = await copy_connector(url, client.organization_id, UUID(template), list(tokens), credentials)
            if slot == 0:
                organization.requests = [
                    (f"/api/v1/integrations/connectors/{each}/execute", {"Authorization": f"Bearer {token}"})
                    for each, token in zip(own, tokens.values(), strict=True)
                ]


def _at_random(organization: Organization, seconds: float) -> Iterator[tuple[str, dict[str, str]]]:
    """Requests of people at random, for so many seconds."""
    chance, ends = random.Random(3), time.perf_counter() + seconds
    while time.perf_counter() < ends:
        yield chance.choice(organization.requests)


async def _called(server: Server, requests: Iterator[tuple[str, dict[str, str]]], *, is_agent: bool) -> Load:
    """What these calls come to."""
    latencies = list[float]()
    body, common = _agent() if is_agent else (json.dumps(LIST).encode(), {"Content-Type": "application/json"})
    async with aiohttp.ClientSession(server.url) as session:
        started, cpu = time.perf_counter(), server.cpu_seconds()

        async def caller() -> None:
            for path, headers in requests:
                began = time.perf_counter()
                async with session.post(
                    "/mcp" if is_agent else path, data=body, headers={**common, **headers}
                ) as response:
                    answer = await response.read()
                    assert response.status == 200, answer
                    assert b'"isError":true' not in answer, answer
                latencies.append((time.perf_counter() - began) * 1000)

        await asyncio.gather(*(caller() for _ in range(CONNECTIONS)))
        took, cpu = time.perf_counter() - started, server.cpu_seconds() - cpu
    latencies.sort()
    p50, p99 = statistics.median(latencies), latencies[int(len(latencies) * 0.99)]
    return Load(len(latencies) / took, cpu / len(latencies) * 1e6, p50, p99)


def _agent() -> tuple[bytes, dict[str, str]]:
    """The request of an agent that calls a tool."""
    params = {**_TOOL, "_meta": {VERSION: VERSIONS[0], CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(document).encode(), headers_of("tools/call", params)


if __name__ == "__main__":
    measured_alone(run, __doc__)
