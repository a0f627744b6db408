"""The audit log of killed processes: every write that was done has an entry, and no entry is untrue."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.faults.arena import Arena, arena, ticket
from tests.harness.caller import Api, ConnectorApi
from tests.harness.waiting import eventually

ENTRIES = """
    SELECT entry_kind, call_id, outcome, target FROM audit WHERE connector_id = $1::text::uuid AND what = $2 ORDER BY id
"""
CREATES = 8


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena() as opened:
        yield opened


async def entries_of(gateway: Arena, desk: ConnectorApi, what: str = "tickets.create") -> list[Any]:
    return await gateway.stores.rows(ENTRIES, desk.record["id"], what)


def keys(is_keyed: bool) -> dict[str, str]:
    return {"Idempotency-Key": uuid4().hex} if is_keyed else {}


async def listed(api: Api, desk: ConnectorApi, what: str = "tickets.create") -> list[dict[str, Any]]:
    path = f"/api/v1/audit?connector_id={desk.record['id']}&operation={what}&limit=1000"
    entries: list[dict[str, Any]] = (await api.get(path)).document()["data"]
    return entries


@pytest.mark.parametrize("is_keyed", [False, True], ids=["without a key", "with a key"])
async def test_every_answered_write_is_in_the_log_when_the_front_end_is_killed(gateway: Arena, is_keyed: bool):
    front_end = await gateway.front_end_apart()
    async with gateway.desk() as desk, gateway.api(front_end) as api:
        there = desk.through(api)
        sent = [there.send("tickets", "create", ticket(uuid4().hex), headers=keys(is_keyed)) for _ in range(CREATES)]
        answers = await asyncio.gather(*sent)
        await front_end.kill()
        made = sorted(str(answer.document()["result"]["id"]) for answer in answers)
        entries = await entries_of(gateway, desk)
        told = await listed(desk.api, desk)
    gateway.front_ends.remove(front_end)

    assert sorted(entry["target"] for entry in entries if entry["entry_kind"] == "settlement") == made
    assert Counter(entry["entry_kind"] for entry in entries) == {"intent": CREATES, "settlement": CREATES}
    assert len({entry["call_id"] for entry in entries}) == CREATES
    assert [(each["outcome"], each["took_ms"] is not None) for each in told] == [("succeeded", True)] * CREATES


@pytest.mark.parametrize("is_keyed", [False, True], ids=["without a key", "with a key"])
async def test_a_write_that_was_under_way_at_a_kill_is_unknown(gateway: Arena, is_keyed: bool):
    front_end, name = await gateway.front_end_apart(), uuid4().hex
    gateway.upstream.gate.clear()
    async with gateway.desk() as desk, gateway.api(front_end) as api:
        lost = asyncio.create_task(desk.through(api).send("tickets", "create", ticket(name), headers=keys(is_keyed)))
        await eventually(lambda: gateway.upstream.created[name])
        await front_end.kill()
        with pytest.raises(aiohttp.ClientError):
            await lost
        gateway.upstream.gate.set()
        told = await listed(desk.api, desk)
        found = await desk.api.get(f"/api/v1/audit?connector_id={desk.record['id']}&outcome=unknown")
    gateway.front_ends.remove(front_end)

    assert [each["outcome"] for each in told] == ["unknown"]
    assert found.document()["data"] == told


async def test_a_read_that_was_answered_or_under_way_at_a_kill_is_in_the_log(gateway: Arena):
    front_end, (answered, under_way) = await gateway.front_end_apart(), (4711, 4712)
    async with gateway.desk() as desk, gateway.api(front_end) as api:
        there = desk.through(api)
        assert (await there.send("tickets", "get", {"ticket_id": answered})).status == 200
        gateway.upstream.gate.clear()
        lost = asyncio.create_task(there.send("tickets", "get", {"ticket_id": under_way}))
        await eventually(lambda: under_way in gateway.upstream.read_at)
        await front_end.kill()
        with pytest.raises(aiohttp.ClientError):
            await lost
        gateway.upstream.gate.set()
        told = await eventually(lambda: _of_both(desk))
    gateway.front_ends.remove(front_end)

    assert {each["target"]: each["outcome"] for each in told} == {
        str(answered): "succeeded",
        str(under_way): "interrupted",
    }


async def _of_both(desk: ConnectorApi) -> list[dict[str, Any]]:
    entries = await listed(desk.api, desk, "tickets.get")
    return entries if len(entries) == 2 else []


async def test_a_batch_whose_workers_are_killed_has_an_entry_for_each_operation_that_was_sent(gateway: Arena):
    count = 300
    operations = [{"entity": "tickets", "action": "create", "params": ticket(uuid4().hex)} for _ in range(count)]
    async with gateway.desk() as desk:
        body = {"operations": operations, "concurrency": 5}
        job = (await desk.api.post(f"{desk.path}/batch", body)).document(202)["job"]
        for part in (1, 2):
            await desk.api.job_once(job, lambda seen, part=part: seen["progress"] >= part * count // 3)
            await gateway.workers.pop().kill()
            await gateway.worker()
        await desk.api.ended_job(job)
        result = await desk.api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson"})
        items = [json.loads(line) for line in result.body.splitlines()]
        entries = await entries_of(gateway, desk)
        batch = await eventually(lambda: _two(desk.api, desk))

    ends = [entry for entry in entries if entry["entry_kind"] == "settlement"]
    assert Counter(entry["outcome"] for entry in ends) == Counter(item["status"] for item in items)
    assert Counter(entry["call_id"] for entry in entries) == Counter([entry["call_id"] for entry in ends] * 2)
    made = sorted(str(item["result"]["id"]) for item in items if item["status"] == "succeeded")
    assert sorted(entry["target"] for entry in entries if entry["outcome"] == "succeeded") == made
    assert [each["outcome"] for each in batch] == ["succeeded", "accepted"]


@pytest.mark.parametrize("action", ["create", "update"])
async def test_a_batch_that_maintenance_ends_leaves_what_it_had_sent_as_unknown(gateway: Arena, action: str):
    named = [{"ticket_id": number + 1} if action == "update" else {} for number in range(300)]
    params = [{**ticket(uuid4().hex), **name} for name in named]
    operations = [{"entity": "tickets", "action": action, "params": each} for each in params]
    async with gateway.desk() as desk:
        body = {"operations": operations, "concurrency": 5}
        job = (await desk.api.post(f"{desk.path}/batch", body)).document(202)["job"]
        await desk.api.job_once(job, lambda seen: seen["progress"] >= 10)
        gateway.upstream.gate.clear()
        gateway.upstream.update_gate.clear()
        await eventually(lambda: gateway.upstream.open == 5)
        await gateway.stores.value("UPDATE jobs SET worker_losses = 5 WHERE id = $1::text::uuid", job["id"])
        await gateway.workers.pop().kill()
        gateway.upstream.gate.set()
        gateway.upstream.update_gate.set()
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        listing = await listed(desk.api, desk, f"tickets.{action}")
        result = (await desk.api.get(f"/api/v1/jobs/{job['id']}/result")).document(409)["result"]

    kept = [each["status"] for each in result["results"]]
    assert (result["total"], result["unknown"]) == (300, 5)
    assert (ended["status"], ended["error"]["known"]["items_in_flight"]) == ("unknown", 5)
    assert Counter(each["outcome"] for each in listing) == {"succeeded": len(kept), "unknown": 5}
    assert set(kept) == {"succeeded"}


async def _two(api: Api, desk: ConnectorApi) -> list[dict[str, Any]]:
    entries = await listed(api, desk, "batch")
    return entries if len(entries) == 2 else []


async def test_entries_that_postgresql_does_not_take_at_shutdown_are_stored_at_the_next_start(gateway: Arena):
    front_end, name = await gateway.front_end_apart(), uuid4().hex
    spool = Path(gateway.environment["GATEWAY_DATA_DIR"]) / "audit"
    gateway.upstream.gate.clear()
    async with gateway.desk() as desk, gateway.api(front_end) as api:
        creating = asyncio.create_task(desk.through(api).send("tickets", "create", ticket(name)))
        await eventually(lambda: gateway.upstream.created[name])
        await gateway.stores.in_servers(gateway.stores.postgres.stop)
        gateway.upstream.gate.set()
        answer = await creating
        code = await gateway.stop(front_end)
        saved = list(spool.glob("*.json"))
        await gateway.stores.in_servers(gateway.stores.postgres.start)
        await gateway.front_end_apart()
        told = await eventually(lambda: _settled(desk))

    assert (answer.status, code, len(saved)) == (200, 0, 1)
    assert [(each["outcome"], each["target"]) for each in told] == [
        ("succeeded", str(answer.document()["result"]["id"]))
    ]
    assert list(spool.glob("*.json")) == []


async def _settled(desk: ConnectorApi) -> list[dict[str, Any]]:
    entries = await listed(desk.api, desk)
    return entries if all(each["outcome"] != "unknown" for each in entries) else []
