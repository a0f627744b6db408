"""PostgreSQL is available but cannot write: callers get an error, nothing is lost, and work continues afterwards."""

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.arena import Arena, arena, seconds_until, ticket
from tests.harness.caller import ASYNC, Answer, Api, ConnectorApi
from tests.harness.waiting import eventually

#: longer than a lease: whoever cannot renew it is not taken for dead all the same
LONGER_THAN_A_LEASE = 12
TABLES = ("jobs", "job_results", "job_events", "idempotency_keys", "audit")


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena(workers=2) as opened:
        yield opened


@asynccontextmanager
async def read_only(gateway: Arena) -> AsyncIterator[None]:
    """As at a failover: all connections are there, and none takes a write."""
    await gateway.stores.rows("ALTER SYSTEM SET default_transaction_read_only = on")
    await gateway.stores.rows("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        await gateway.stores.rows("ALTER SYSTEM RESET default_transaction_read_only")
        await gateway.stores.rows("SELECT pg_reload_conf()")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 32 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    directory = Path(tempfile.mkdtemp(prefix="gws-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=0755", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", directory], check=True)
    directory.rmdir()


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """The disk has room for nothing more."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        ballast.unlink()


@asynccontextmanager
async def tables_on(gateway: Arena, disk: Path) -> AsyncIterator[None]:
    """The tables of jobs lie on that disk."""
    user = gateway.stores.postgres.service_user
    os.chown(disk, user.uid, user.gid)
    await gateway.stores.rows(f"CREATE TABLESPACE small LOCATION '{disk}'")
    for table in TABLES:
        await gateway.stores.rows(f"ALTER TABLE {table} SET TABLESPACE small")
    try:
        yield
    finally:
        for table in TABLES:
            await gateway.stores.rows(f"ALTER TABLE {table} SET TABLESPACE pg_default")
        await gateway.stores.rows("DROP TABLESPACE small")


async def refusals(desk: ConnectorApi, name: str) -> list[tuple[int, str, bool]]:
    """How calls that need something written are answered."""
    answers = [
        await desk.send("tickets", "create", ticket(name), headers) for headers in ({"Idempotency-Key": name}, ASYNC)
    ]
    return [(answer.status, answer.json()["code"], "Retry-After" in answer.headers) for answer in answers]


async def test_a_server_that_is_read_only_for_a_while_loses_nothing_and_nothing_runs_twice(gateway: Arena):
    async with gateway.desk() as desk:
        gateway.upstream.gate.clear()
        jobs = [await desk.submit("tickets", "get", {"ticket_id": number}) for number in range(8)]
        for job in jobs:
            await desk.api.running_job(job)
        await eventually(lambda: gateway.upstream.requests == len(jobs))
        async with read_only(gateway):
            refused = await refusals(desk, "read-only")
            ready = await desk.api.get("/readyz")
            await asyncio.sleep(LONGER_THAN_A_LEASE)
            gateway.upstream.gate.set()
        ended = [await desk.api.ended_job(job) for job in jobs]
        normal = await seconds_until(lambda: _is_ready(desk.api))
        after = await desk.send("tickets", "create", ticket("after"), {"Idempotency-Key": "after"})

    assert refused == [(503, "unavailable", True)] * 2
    assert (ready.status, ready.json()["reason"]) == (503, "PostgreSQL: it is read-only")
    assert "Retry-After" in ready.headers
    assert {(job["status"], job["attempt"]) for job in ended} == {("succeeded", 1)}
    assert gateway.upstream.requests - len(jobs) <= 1  # the create of afterwards
    assert gateway.upstream.created["read-only"] == 0
    assert (after.status, normal < 5) == (200, True)


async def test_a_full_disk_is_reported_and_work_continues_when_there_is_room(gateway: Arena, small_disk: Path):
    async with tables_on(gateway, small_disk), gateway.desk() as desk:
        with full(small_disk):
            await eventually(lambda: _is_refused(desk))
            answers = [await _submitted(desk, ticket(f"full-{number}")) for number in range(40)]
            await eventually(lambda: _has_reason(desk.api))  # what is remembered for a second is over
            ready = await desk.api.get("/readyz")
        normal = await seconds_until(lambda: _works(desk))
        job = await desk.api.ended_job(await desk.submit("tickets", "list", {}))

    assert {answer.status for answer in answers} <= {202, 503}
    assert (ready.status, ready.json()["reason"]) == (503, "PostgreSQL: its disk is full")
    assert normal < 10
    assert job["status"] == "succeeded"


async def _submitted(desk: ConnectorApi, params: dict[str, Any]) -> Answer:
    return await desk.send("tickets", "create", params, ASYNC)


async def _is_refused(desk: ConnectorApi) -> bool:
    """Whether a job that does not fit any more is refused; room in pages that are there is used up first."""
    answer = await _submitted(desk, {"ticket": {**ticket("x")["ticket"], "subject": os.urandom(4000).hex()}})
    assert answer.status in (202, 503), answer.body
    return answer.status == 503


async def _works(desk: ConnectorApi) -> bool:
    return (await _submitted(desk, ticket("room"))).status == 202


async def _has_reason(api: Api) -> bool:
    return "reason" in (await api.get("/readyz")).json()


async def _is_ready(api: Api) -> bool:
    return (await api.get("/readyz")).status == 200
