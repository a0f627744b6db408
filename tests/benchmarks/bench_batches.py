"""Batches, compared with a plain loop of calls and with the application's limit, and the memory of a large batch.

    python -m tests.benchmarks.bench_batches [--quick]

One front end and one worker process. The application of the first two figures takes a moment for each request.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import psutil
from aiohttp import web

from tests.benchmarks.bench_execute import front_end, opened_stores
from tests.benchmarks.processes import application
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.caller import Api, ConnectorApi
from tests.harness.processes import Program, free_port
from tests.harness.serving import served
from tests.harness.waiting import eventually

#: seconds that the application takes for a request
LATENCY = 0.02
#: requests that the limited application takes in each window of so many seconds
ALLOWED, WINDOW = 600, 60
#: operations of the large batch, and MiB that it may add to a process
LARGE, GROWTH = 100_000, 64
#: a read that the application answers one at a time
GROUP: dict[str, object] = {"entity": "groups", "action": "get", "params": {"group_id": 1}}


class LimitedDesk:
    """A support desk that counts requests in windows, as Zendesk does, and refuses what is beyond its limit."""

    def __init__(self, allowed: int | None) -> None:
        self._allowed = allowed
        self._began = 0.0
        self._taken = 0
        self.requests = 0
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["LimitedDesk"]:
        app = web.Application()
        app.add_routes(
            [
                web.post("/api/v2/tickets.json", self._answer),
                web.get("/api/v2/tickets/show_many.json", self._answer),
                web.get("/api/v2/tickets/{id}.json", self._answer),
                web.get("/api/v2/groups/{id}.json", self._answer),
            ]
        )
        async with served(app) as self.url:
            yield self

    async def _answer(self, request: web.Request) -> web.Response:
        headers, now = {}, time.monotonic()
        if self._allowed is not None:
            if now - self._began >= WINDOW:
                self._began, self._taken = now, 0
            reset = max(1, round(self._began + WINDOW - now))
            if self._taken >= self._allowed:
                return web.json_response({"error": "TooMany"}, status=429, headers={"Retry-After": str(reset)})
            self._taken += 1
            left = self._allowed - self._taken
            headers = {"X-Rate-Limit": str(self._allowed), "X-Rate-Limit-Remaining": str(left)}
            headers["ratelimit-reset"] = str(reset)
        self.requests += 1
        await asyncio.sleep(LATENCY)
        tickets = [{"id": int(each), "subject": "s"} for each in request.query.get("ids", "1").split(",")]
        document = {"ticket": tickets[0], "tickets": tickets, "group": {"id": 1, "name": "g"}}
        return web.json_response(document, headers=headers)


async def run(quick: bool = False) -> Report:
    """The figures of batches."""
    report = Report("Batches: one front end and one worker")
    async with LimitedDesk(None).serving() as desk:
        report.figures += await _beside_a_loop(desk.url, *((200, 50) if quick else (3000, 300)))
    async with LimitedDesk(None).serving() as desk:
        report.figures += await _in_bulk(desk, 300 if quick else 5000)
    if not quick:
        async with LimitedDesk(ALLOWED).serving() as desk:
            report.figures.append(await _beside_the_limit(desk.url, 3 * ALLOWED))
    async with application(core=None) as canned:
        report.figures += await _memory(canned.url, 2000 if quick else LARGE)
    report.notes += [
        f"the application takes {1000 * LATENCY:.0f} ms for a request; a loop of calls waits for each",
        f"the limited application takes {ALLOWED} requests in each window of {WINDOW} s",
        "memory is the most that the process had while the batch was received and run, beyond what it had before",
    ]
    return report


@asynccontextmanager
async def _gateway(upstream: str) -> AsyncIterator[tuple[ConnectorApi, dict[str, psutil.Process]]]:
    """A connector at a front end with a worker, and these processes."""
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, upstream)
        target = await front_end(stack, stores, free_port(), core=None)
        program = Program(sys.executable, "-m", "gateway", "worker", environment={**os.environ, **stores.environment})
        await program.start()
        stack.push_async_callback(program.stop)
        assert program.pid is not None
        client = stores.client
        api = await stack.enter_async_context(Api.of(target.server.url, client.id, client.secret))
        processes = {"front end": psutil.Process(target.server.pid), "worker": psutil.Process(program.pid)}
        yield await api.connector(validate=False), processes


async def _beside_a_loop(upstream: str, operations: int, calls: int) -> list[Figure]:
    figures = []
    async with _gateway(upstream) as (desk, _):
        for what, operation in {
            "writes": {"entity": "tickets", "action": "create", "params": {"ticket": {"subject": "s"}}},
            "reads": GROUP,
        }.items():
            await _batch(desk, [operation] * 20)
            began = time.perf_counter()
            for _ in range(calls):
                await desk.execute(operation["entity"], operation["action"], operation["params"])  # type: ignore[arg-type]
            looped = calls / (time.perf_counter() - began)
            batched = operations / await _batch(desk, [operation] * operations)
            figures.append(
                Figure(f"{what} of a batch, beside a loop of calls", batched, looped, "operations/s", at_least=5)
            )
    return figures


async def _in_bulk(application: LimitedDesk, operations: int) -> list[Figure]:
    """Reads that the application takes together, beside reads of which each is a request."""
    together = [{"entity": "tickets", "action": "get", "params": {"ticket_id": 1 + each}} for each in range(operations)]
    async with _gateway(application.url) as (desk, _):
        await _batch(desk, [GROUP] * 20)
        seconds, requests = {}, {}
        for name, asked in {"single": [GROUP] * operations, "bulk": together}.items():
            application.requests = 0
            seconds[name] = await _batch(desk, asked)
            requests[name] = application.requests
    return [
        Figure(f"{operations:,} reads in bulk, beside single ones", operations / seconds["bulk"],
               operations / seconds["single"], "operations/s"),
        Figure(f"{operations:,} reads in bulk, beside single ones: requests", requests["bulk"], requests["single"],
               "requests", at_most=0.02),
    ]  # fmt: skip


async def _beside_the_limit(upstream: str, operations: int) -> Figure:
    async with _gateway(upstream) as (desk, _):
        seconds = await _batch(desk, [GROUP] * operations)
    name = f"{operations:,} operations, beside what the application's limit allows"
    return Figure(name, operations / seconds, ALLOWED / WINDOW, "operations/s", at_least=0.9)


async def _memory(upstream: str, operations: int) -> list[Figure]:
    line = {"entity": "tickets", "action": "list", "params": {"per_page": SMALL}}
    async with _gateway(upstream) as (desk, processes):
        await _batch(desk, [line] * 100)
        before = {name: _mib(process) for name, process in processes.items()}
        peaks = dict(before)
        watching = asyncio.create_task(_watch(processes, peaks))
        seconds = await _lines(desk, json.dumps(line), operations)
        watching.cancel()
    name = f"{operations:,} lines"
    return [
        *(
            Figure(f"{name}: growth of the {each}, beside {GROWTH} MiB", peaks[each] - before[each], GROWTH, "MiB",
                   at_most=1)
            for each in processes
        ),
        Figure(f"{name}: operations/s, request and result included", operations / seconds, operations / seconds,
               "operations/s"),
    ]  # fmt: skip


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / (1 << 20)


async def _watch(processes: dict[str, psutil.Process], peaks: dict[str, float]) -> None:
    while True:
        for name, process in processes.items():
            peaks[name] = max(peaks[name], _mib(process))
        await asyncio.sleep(0.1)


async def _batch(desk: ConnectorApi, operations: list[dict[str, object]]) -> float:
    """Seconds from the request until every operation has succeeded."""
    began = time.perf_counter()
    answer = await desk.api.session.post(
        f"{desk.path}/batch", json={"operations": operations}, headers=desk.api.headers
    )
    return await _ended(desk, await answer.json(), began, len(operations))


async def _ended(desk: ConnectorApi, accepted: dict[str, object], began: float, operations: int) -> float:
    job = accepted["job"]

    async def has_ended() -> bool:
        answer = await desk.api.session.get(f"/api/v1/jobs/{job['id']}?wait=20", headers=desk.api.headers)  # type: ignore[index]
        ended = await answer.json()
        assert not ended["done"] or ended["message"] == f"{operations:,} of {operations:,} operations done", ended
        return bool(ended["done"])

    await eventually(has_ended, within=1200)
    return time.perf_counter() - began


async def _lines(desk: ConnectorApi, line: str, operations: int) -> float:
    """Seconds until a batch of lines has ended and its result was read."""
    began = time.perf_counter()
    headers = {**desk.api.headers, "Content-Type": "application/x-ndjson"}
    body = BytesIO(f"{line}\n".encode() * operations)
    answer = await desk.api.session.post(f"{desk.path}/batch?concurrency=50", data=body, headers=headers)
    accepted = await answer.json()
    await _ended(desk, accepted, began, operations)
    as_lines = {**desk.api.headers, "Accept": "application/x-ndjson"}
    read = 0
    async with desk.api.session.get(f"/api/v1/jobs/{accepted['job']['id']}/result", headers=as_lines) as result:
        async for chunk in result.content.iter_any():
            read += chunk.count(b"\n")
    assert read == operations
    return time.perf_counter() - began


if __name__ == "__main__":
    measured_alone(run, __doc__)
