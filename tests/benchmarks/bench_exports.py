"""Exports, compared with paging through the API, and the memory of the worker.

    python -m tests.benchmarks.bench_exports [--quick]

The application has its pages ready; a front end and a worker share the machine with it.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.benchmarks.bench_execute import opened_stores
from tests.benchmarks.processes import server
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.caller import Api, ConnectorApi
from tests.harness.processes import Program, free_port

#: records of the speed and of the memory figure; of a quick run
PAIRED, MANY, QUICK = 50_000, 1_000_000, 10_000
#: records of a page, rounds of which the best counts, and MiB that the worker may grow
PAGE, ROUNDS, GROWTH = 100, 3, 64
#: seconds that an export may take on a busy machine
PATIENCE = 1800
KIND = """
kind: bench-list
application: Bench list
title: Bench list
description: Read items of Bench list.
server: https://api.bench-list.example.com
hosts: [api.bench-list.example.com]
authentication:
  api_key:
    title: API key
    scheme: bearer
    token: api_key
    credentials:
      api_key: {description: API key made in the account's settings, required: true, secret: true}
paging:
  cursor: {style: cursor, param: cursor, size: limit, next: next_cursor, meta: {next_cursor: next_cursor}}
health_check: items.list
"""
ITEMS = """
description: An item with its name and state.
fields: {id: integer, name: string, state: string, note: string}
actions:
  list:
    request: GET /items
    effect: read
    description: A page of all items.
    phrases: [list all items]
    records: items
    paging: cursor
    params:
      cursor: {type: string, description: next_cursor of the page before}
      limit: {type: integer, minimum: 1, maximum: 1000, description: items on a page}
      total: {type: integer, description: items of the list}
"""


async def run(quick: bool = False) -> Report:
    """Records a second of an export beside paging, and the worker's memory."""
    paired, many, rounds = (QUICK, QUICK, 1) if quick else (PAIRED, MANY, ROUNDS)
    report = Report("Exports")
    async with contextlib.AsyncExitStack() as stack:
        connector, worker = await _deployed(stack)
        await _exported(connector, 1000)  # until the worker has opened the connector
        before = _memory(worker)  # of a worker that has run one small export
        best = {"ndjson": 0.0, "csv": 0.0, "pages": 0.0}
        for _ in range(rounds):
            for file in ("ndjson", "csv"):
                best[file] = max(best[file], paired / await _exported(connector, paired, file))
            best["pages"] = max(best["pages"], paired / await _paged(connector, paired))
        grown = [before]
        await _exported(connector, many, on_look=lambda: grown.append(_memory(worker)))
        peak = max(grown)
        for file in ("ndjson", "csv"):
            report.figures.append(
                Figure(
                    f"{paired:,} records into {file}, beside paging",
                    best[file],
                    best["pages"],
                    "records/s",
                    at_least=0.8,
                )
            )
        name = f"{many:,} records: MiB that the worker grew, beside {GROWTH}"
        report.figures.append(Figure(name, peak - before, GROWTH, "MiB", at_most=1))
    report.notes.append(f"pages of {PAGE} records; paging is one call after the other through the API")
    return report


async def _deployed(stack: contextlib.AsyncExitStack) -> tuple[ConnectorApi, int]:
    """A connector of the kind, and the process id of the only worker."""
    upstream = await stack.enter_async_context(_application())
    stores = await opened_stores(stack, "http://127.0.0.1:1")
    specs = Path(stores.environment["GATEWAY_DATA_DIR"]) / "specs"
    (specs / "bench-list").mkdir(parents=True)
    (specs / "bench-list" / "connector.yaml").write_text(KIND)
    (specs / "bench-list" / "items.yaml").write_text(ITEMS)
    port = free_port()
    environment = {**stores.environment, "GATEWAY_SPECS": str(specs), "GATEWAY_UPSTREAM_BENCH_LIST": upstream}
    front_end = await stack.enter_async_context(
        server(
            *("gateway", "serve"),
            port=port,
            environment={**environment, "GATEWAY_BIND": f"127.0.0.1:{port}"},
            core=None,
            path="/healthz",
        )
    )
    worker = await stack.enter_async_context(_worker(environment))
    api = await stack.enter_async_context(Api.of(front_end.url, stores.client.id, stores.client.secret))
    return await api.connector("bench-list", {"api_key": "key"}, validate=False), worker


@asynccontextmanager
async def _worker(environment: dict[str, str]) -> AsyncIterator[int]:
    program = Program(sys.executable, "-m", "gateway", "worker", environment={**os.environ, **environment})
    await program.start()
    try:
        yield program.pid
    finally:
        await program.stop()


@asynccontextmanager
async def _application() -> AsyncIterator[str]:
    """The URL of an application with as many items as it is asked for."""

    async def items(request: web.Request) -> web.Response:
        first, total = int(request.query.get("cursor", "0")), int(request.query["total"])
        after = min(first + int(request.query["limit"]), total)
        page = [{"id": n, "name": f"item {n}", "state": "open", "note": "n" * 200} for n in range(first, after)]
        document = {"items": page, "next_cursor": str(after) if after < total else None}
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")

    app = web.Application()
    app.router.add_get("/items", items)
    async with TestServer(app) as running:
        yield str(running.make_url("/").origin())


def _memory(pid: int) -> float:
    return psutil.Process(pid).memory_info().rss / (1 << 20)


async def _exported(
    connector: ConnectorApi, total: int, file: str = "ndjson", on_look: Callable[[], object] = lambda: None
) -> float:
    """Seconds from the call until the job has ended with a file of all records."""
    body = {"params": {"limit": PAGE, "total": total}, "output": {"file": file}}
    began = time.perf_counter()
    job = (await connector.send("items", "list", **body)).document(202)["job"]
    async with asyncio.timeout(PATIENCE):
        while not job["done"]:
            on_look()
            job = (await connector.api.get(f"/api/v1/jobs/{job['id']}?wait=1")).document()
    seconds = time.perf_counter() - began
    assert (job["status"], job["progress"]) == ("succeeded", total), job
    return seconds


async def _paged(connector: ConnectorApi, total: int) -> float:
    """Seconds of turning the same pages, one call after the other."""
    params, records, began = {"limit": PAGE, "total": total}, 0, time.perf_counter()
    while params is not None:
        page = await connector.execute("items", "list", params)
        records, params = records + len(page["result"]), page["next"]
    assert records == total
    return time.perf_counter() - began


if __name__ == "__main__":
    measured_alone(run, __doc__)
