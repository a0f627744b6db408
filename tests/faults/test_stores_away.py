"""Redis or PostgreSQL killed, flushed or frozen: the errors for callers, and the time until recovery."""

import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from tests.faults.arena import Arena, arena, seconds_until, ticket
from tests.harness.caller import ASYNC, Answer, ConnectorApi
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena(workers=2) as opened:
        yield opened


async def test_a_frozen_redis_delays_no_submission_and_no_work(gateway: Arena):
    async with gateway.desk() as desk:
        os.kill(gateway.stores.redis.pid, signal.SIGSTOP)
        started = time.monotonic()
        jobs = [await desk.submit("tickets", "list", {}) for _ in range(10)]
        submitted = time.monotonic() - started

        ended = [await desk.api.ended_job(job) for job in jobs]
        worked = time.monotonic() - started
        os.kill(gateway.stores.redis.pid, signal.SIGCONT)

    assert {job["status"] for job in ended} == {"succeeded"}
    assert submitted < 2
    assert worked < 5


async def test_a_killed_redis_stops_no_work_and_is_used_again_when_it_is_back(gateway: Arena):
    async with gateway.desk() as desk:
        os.kill(gateway.stores.redis.pid, signal.SIGKILL)
        started = time.monotonic()
        job = await desk.submit("tickets", "list", {})
        submitted = time.monotonic() - started
        ended = await desk.api.ended_job(job)

        await gateway.stores.in_servers(gateway.stores.redis.stop)
        await gateway.stores.in_servers(gateway.stores.redis.start)
        normal = await seconds_until(lambda: _is_quick(desk))

    assert ended["status"] == "succeeded"
    assert submitted < 2
    assert normal < 5


async def test_a_flushed_redis_loses_and_doubles_nothing(gateway: Arena):
    gateway.upstream.gate.clear()
    async with gateway.desk() as desk:
        jobs = [await desk.submit("tickets", "create", ticket(f"flush-{number}")) for number in range(30)]

        await gateway.stores.flush_redis()
        gateway.upstream.gate.set()
        ended = [await desk.api.ended_job(job) for job in jobs]

    assert {job["status"] for job in ended} == {"succeeded"}
    assert {gateway.upstream.created[f"flush-{number}"] for number in range(30)} == {1}


async def test_with_postgres_frozen_a_write_is_refused_within_two_seconds(gateway: Arena):
    async with gateway.desk() as desk:
        await desk.send("tickets", "list", {})
        async with frozen(gateway.stores.postgres.pid):
            answers, slowest = await _refused(desk, "frozen")

        normal = await seconds_until(lambda: _writes(desk, "thawed"))

    assert {(answer.status, "Retry-After" in answer.headers) for answer in answers} == {(503, True)}
    assert not any(name.startswith("frozen") for name in gateway.upstream.created)
    assert slowest <= 2.2
    assert normal < 5


async def test_with_postgres_killed_a_write_is_refused_and_all_is_normal_soon_after_its_return(gateway: Arena):
    async with gateway.desk() as desk:
        await desk.send("tickets", "list", {})
        await gateway.stores.kill_with_children(gateway.stores.postgres)
        answers, slowest = await _refused(desk, "killed")

        await gateway.stores.in_servers(gateway.stores.postgres.stop)
        await gateway.stores.in_servers(gateway.stores.postgres.start)
        normal = await seconds_until(lambda: _writes(desk, "back"))
        job = await desk.submit("tickets", "list", {})
        started = time.monotonic()
        ended = await desk.api.ended_job(job)

    assert {(answer.status, "Retry-After" in answer.headers) for answer in answers} == {(503, True)}
    assert not any(name.startswith("killed") for name in gateway.upstream.created)
    assert slowest <= 2.2
    assert normal < 5
    assert (ended["status"], time.monotonic() - started < 5) == ("succeeded", True)


async def test_a_write_that_was_answered_while_postgres_was_unavailable_is_reported_truly_later(gateway: Arena):
    gateway.upstream.gate.clear()
    async with gateway.desk() as desk:
        job = await desk.submit("tickets", "create", ticket("answered"))
        await eventually(lambda: gateway.upstream.created["answered"])

        os.kill(gateway.stores.postgres.pid, signal.SIGKILL)
        gateway.upstream.gate.set()
        await gateway.stores.in_servers(gateway.stores.postgres.stop)
        await gateway.stores.in_servers(gateway.stores.postgres.start)
        await eventually(lambda: _writes(desk, "normal"))
        ended = await desk.api.ended_job(job)

    assert ended["status"] == "succeeded"
    assert gateway.upstream.created["answered"] == 1


@asynccontextmanager
async def frozen(pid: int) -> AsyncIterator[None]:
    """PostgreSQL is a family of processes: the first must stand still before all that it has started can be known."""
    server = psutil.Process(pid)
    server.suspend()
    await eventually(lambda: server.status() == psutil.STATUS_STOPPED)
    family = [server, *server.children(recursive=True)]
    for process in family:
        process.suspend()
    yield
    for process in family:
        process.resume()


async def _refused(desk: ConnectorApi, name: str) -> tuple[list[Answer], float]:
    """Writes of every kind, twice, and the seconds that the slowest of them took."""
    answers, slowest = list[Answer](), 0.0
    for number in range(2):
        for headers in ({}, {"Idempotency-Key": f"{name}-{number}"}, ASYNC):
            started = time.monotonic()
            answers.append(await desk.send("tickets", "create", ticket(f"{name}-{number}"), headers))
            slowest = max(slowest, time.monotonic() - started)
    return answers, slowest


async def _writes(desk: ConnectorApi, name: str) -> bool:
    return (await desk.send("tickets", "create", ticket(f"{name}-{time.monotonic()}"))).status == 200


async def _is_quick(desk: ConnectorApi) -> bool:
    """Whether a job is through sooner than any poll would find it."""
    started = time.monotonic()
    await desk.api.ended_job(await desk.submit("tickets", "list", {}))
    return time.monotonic() - started < 0.3
