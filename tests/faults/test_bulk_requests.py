"""Batches whose operations are sent together: killed, refused or answered in part, each operation has a true result."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.faults.arena import Arena, arena
from tests.harness.caller import ConnectorApi
from tests.harness.label_printer import write_label_printer
from tests.harness.serving import served
from tests.harness.waiting import eventually


class Printer:
    """An application that remembers what it printed: what a true result is measured by."""

    def __init__(self) -> None:
        self.printed: Counter[str] = Counter()
        #: how many labels each request had
        self.sizes: list[int] = []
        #: labels that make the whole request be refused, and those that it prints and does not mention
        self.refused, self.unmentioned = set[str](), set[str]()
        #: whether starts of rolls are answered while the gate is not set, and how often a roll was asked for
        self.starts_at_once = False
        self.followed = 0
        #: the status of the answers after the labels are printed
        self.status = 201
        #: while it is not set, labels are printed and answers wait
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Printer"]:
        app = web.Application()
        app.add_routes(
            [
                web.post("/labels", self._one),
                web.post("/labels/many", self._many),
                web.post("/rolls", self._start),
                web.get("/rolls/{name}", self._roll),
            ]
        )
        async with served(app) as self.url:
            try:
                yield self
            finally:
                self.gate.set()

    async def _one(self, request: web.Request) -> web.Response:
        return await self._print([await request.json()], lambda printed: printed[0])

    async def _many(self, request: web.Request) -> web.Response:
        labels = (await request.json())["labels"]
        return await self._print(labels, lambda printed: {"printed": printed[::-1]})

    async def _start(self, request: web.Request) -> web.Response:
        names = (await request.json()).get("names")
        name = names[0] if names else (await request.json())["name"]
        self.printed[name] += 1
        if not self.starts_at_once:
            await self.gate.wait()
        return web.json_response({"id": name})

    async def _roll(self, request: web.Request) -> web.Response:
        self.followed += 1
        await self.gate.wait()
        return web.json_response({"state": "done", "roll": {"name": request.match_info["name"]}})

    async def _print(self, labels: list[dict[str, str]], shown: Any) -> web.Response:
        names = [label["name"] for label in labels]
        self.sizes.append(len(names))
        if not self.refused.isdisjoint(names):
            return web.json_response({"message": "a label is refused"}, status=400)
        self.printed.update(names)
        await self.gate.wait()
        left = [{"name": name, "is_printed": True} for name in names if name not in self.unmentioned]
        return web.json_response(shown(left) if self.status == 201 else {}, status=self.status)


@pytest.fixture(scope="module")
async def printer() -> AsyncIterator[Printer]:
    async with Printer().serving() as serving:
        yield serving


@pytest.fixture(scope="module")
async def gateway(printer: Printer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = write_label_printer(tmp_path_factory.mktemp("specs"))
    async with arena(GATEWAY_SPECS=str(folder), GATEWAY_UPSTREAM_LABEL_PRINTER=printer.url) as opened:
        yield opened


@pytest.fixture
async def labels(gateway: Arena, printer: Printer) -> AsyncIterator[ConnectorApi]:
    """A connector of the label printer, which has printed nothing yet."""
    printer.printed.clear()
    printer.sizes.clear()
    printer.refused.clear()
    printer.unmentioned.clear()
    printer.status = 201
    printer.starts_at_once, printer.followed = False, 0
    async with gateway.api() as api:
        yield await api.connector("label-printer", {"token": "t"}, validate=False)


NAMES = [f"label-{number}" for number in range(30)]


async def started(connector: ConnectorApi, operations: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    answer = await connector.api.post(f"{connector.path}/batch", {"operations": operations, **options})
    job: dict[str, Any] = answer.document(202)["job"]
    return job


async def printing(connector: ConnectorApi, **options: Any) -> dict[str, Any]:
    return await started(connector, [{"entity": "labels", "action": "create", "params": {"name": name}}
                                     for name in NAMES], **options)  # fmt: skip


async def lines_of(connector: ConnectorApi, job: dict[str, Any]) -> list[dict[str, Any]]:
    ended = await connector.api.ended_job(job)
    assert ended["status"] == "succeeded", ended
    result = await connector.api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson"})
    return [json.loads(line) for line in result.body.splitlines()]


async def test_writes_are_sent_together_and_matched_in_any_order(labels: ConnectorApi, printer: Printer):
    lines = await lines_of(labels, await printing(labels))

    assert [line["result"]["name"] for line in lines] == NAMES
    assert printer.sizes == [10, 10, 10]
    assert set(printer.printed.values()) == {1}


async def test_writes_in_flight_end_unknown_when_the_worker_is_killed_and_are_not_sent_again(
    gateway: Arena, labels: ConnectorApi, printer: Printer
):
    printer.gate.clear()
    job = await printing(labels, concurrency=1)
    await eventually(lambda: printer.sizes)
    await gateway.workers.pop().kill()
    printer.gate.set()
    await gateway.worker()
    lines = await lines_of(labels, job)

    assert [line["status"] for line in lines] == ["unknown"] * 10 + ["succeeded"] * 20
    assert printer.sizes == [10, 10, 10]
    assert printer.printed == dict.fromkeys(NAMES, 1)


async def test_writes_of_a_request_that_was_refused_as_a_whole_are_sent_one_by_one(
    labels: ConnectorApi, printer: Printer
):
    printer.refused.add(NAMES[13])

    lines = await lines_of(labels, await printing(labels))

    assert [line["status"] for line in lines] == ["succeeded"] * 13 + ["failed"] + ["succeeded"] * 16
    assert lines[13]["error"]["code"] == "upstream_rejected"
    assert sorted(printer.sizes) == [1] * 10 + [10, 10, 10]
    assert printer.printed == {name: 1 for name in NAMES if name != NAMES[13]}


async def test_writes_of_a_request_that_may_have_been_done_end_unknown(labels: ConnectorApi, printer: Printer):
    printer.status = 422

    lines = await lines_of(labels, await printing(labels))

    assert [line["status"] for line in lines] == ["unknown"] * 30
    assert printer.sizes == [10, 10, 10]


async def test_a_write_that_the_answer_does_not_mention_ends_unknown(labels: ConnectorApi, printer: Printer):
    printer.unmentioned.add(NAMES[4])

    lines = await lines_of(labels, await printing(labels))

    assert [line["index"] for line in lines if line["status"] == "unknown"] == [4]
    assert (len(printer.sizes), lines[4]["error"]["code"]) == (3, "outcome_unknown")


@pytest.mark.parametrize("starts_at_once", [False, True], ids=["starting", "running"])
@pytest.mark.parametrize(("action", "params"), [("create", {"name": "a"}), ("create_many", {"names": ["a"]})])
async def test_a_long_operation_of_a_batch_is_not_started_again_when_the_worker_is_killed(
    gateway: Arena, labels: ConnectorApi, printer: Printer, action: str, params: dict[str, Any], starts_at_once: bool
):
    printer.gate.clear()
    printer.starts_at_once = starts_at_once
    job = await started(labels, [{"entity": "rolls", "action": action, "params": params}])
    await eventually(lambda: printer.followed if starts_at_once else printer.printed["a"])
    await gateway.workers.pop().kill()
    printer.gate.set()
    await gateway.worker()
    (line,) = await lines_of(labels, job)

    assert (line["status"], line["error"]["safe_to_retry"]) == ("unknown", False)
    assert printer.printed == {"a": 1}


async def test_reads_in_flight_are_sent_again_together_when_the_worker_is_killed(gateway: Arena):
    gateway.upstream.gate.clear()
    async with gateway.desk() as desk:
        reads = [{"entity": "tickets", "action": "get", "params": {"ticket_id": number}} for number in range(250)]
        job = await started(desk, reads)
        await eventually(lambda: len(gateway.upstream.shown) == 3)
        await gateway.workers.pop().kill()
        gateway.upstream.gate.set()
        await gateway.worker()
        lines = await lines_of(desk, job)

    assert [line["result"]["id"] for line in lines] == list(range(250))
    assert sorted(map(len, gateway.upstream.shown)) == [50, 50, 100, 100, 100, 100]
    assert gateway.upstream.requests == 6
