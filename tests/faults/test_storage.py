"""PostgreSQL that is there and cannot write: callers are told so, nothing is lost, and work goes on by itself."""

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.faults.arena import Arena, arena, ticket, until

#: longer than a lease: whoever cannot renew it is not taken for dead all the same
LONGER_THAN_A_LEASE = 12
TABLES = ("jobs", "job_results", "job_events", "idempotency_keys", "audit")


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena(fronts=1, workers=2) as opened:
        yield opened


@asynccontextmanager
async def read_only(gateway: Arena) -> AsyncIterator[None]:
    """As at a failover: all connections are there, and none takes a write."""
    await gateway.rows("ALTER SYSTEM SET default_transaction_read_only = on")
    await gateway.rows("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        await gateway.rows("ALTER SYSTEM RESET default_transaction_read_only")
        await gateway.rows("SELECT pg_reload_conf()")


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
    os.chown(disk, gateway.postgres.account.uid, gateway.postgres.account.gid)
    await gateway.rows(f"CREATE TABLESPACE small LOCATION '{disk}'")
    for table in TABLES:
        await gateway.rows(f"ALTER TABLE {table} SET TABLESPACE small")
    try:
        yield
    finally:
        for table in TABLES:
            await gateway.rows(f"ALTER TABLE {table} SET TABLESPACE pg_default")
        await gateway.rows("DROP TABLESPACE small")


async def answers(caller, name: str) -> list[tuple[int, str, bool]]:
    """What those are told who need something written."""
    told = []
    for headers in ({"Idempotency_Key": name}, {"Prefer": "respond-async"}):
        status, body, answered = await caller.execute("tickets", "create", ticket(name), **headers)
        told.append((status, body["code"], "Retry-After" in answered))
    return told


async def test_a_server_that_is_read_only_for_a_while_loses_nothing_and_nothing_runs_twice(gateway: Arena):
    async with gateway.caller() as caller:
        await caller.connect()
        gateway.upstream.gate.clear()
        jobs = [await caller.submit("tickets", "get", {"ticket_id": number}) for number in range(8)]
        for job in jobs:
            await caller.running(job["id"])
        requests = gateway.upstream.requests
        async with read_only(gateway):
            told = await answers(caller, "read-only")
            status, ready, headers = await caller.call("GET", "/readyz")
            await asyncio.sleep(LONGER_THAN_A_LEASE)
            gateway.upstream.gate.set()
        ended = [await caller.ended(job["id"]) for job in jobs]
        normal = await until(lambda: _is_ready(caller))
        status_after, _, _ = await caller.execute("tickets", "create", ticket("after"), Idempotency_Key="after")

    assert told == [(503, "unavailable", True)] * 2
    assert (status, ready["reason"], "Retry-After" in headers) == (503, "PostgreSQL: it is read-only", True)
    assert {(job["status"], job["attempt"]) for job in ended} == {("succeeded", 1)}
    assert gateway.upstream.requests - requests <= 1  # the create of afterwards
    assert gateway.upstream.created["read-only"] == 0
    assert (status_after, normal < 5) == (200, True)


async def test_a_full_disk_is_told_and_work_goes_on_when_there_is_room(gateway: Arena, small_disk: Path):
    async with gateway.caller() as caller, tables_on(gateway, small_disk):
        await caller.connect()
        with full(small_disk):
            await until(lambda: _is_refused(caller))
            statuses = {status for status, _, _ in await _many(caller)}
            await until(lambda: _has_reason(caller))  # what is remembered for a second is over
            status, ready, _ = await caller.call("GET", "/readyz")
        normal = await until(lambda: _works(caller))
        job = await caller.ended((await caller.submit("tickets", "list", {}))["id"])

    assert statuses <= {202, 503}
    assert (status, ready["reason"]) == (503, "PostgreSQL: its disk is full")
    assert normal < 10
    assert job["status"] == "succeeded"


async def _many(caller) -> list[tuple[int, dict, dict]]:
    return [
        await caller.execute("tickets", "create", ticket(f"full-{number}"), Prefer="respond-async")
        for number in range(40)
    ]


async def _is_refused(caller) -> bool:
    """Whether a job that does not fit any more is refused; room in pages that are there is used up first."""
    many = {"ticket": {**ticket("x")["ticket"], "subject": os.urandom(4000).hex()}}
    status, body, _ = await caller.execute("tickets", "create", many, Prefer="respond-async")
    assert status in (202, 503), body
    return status == 503


async def _works(caller) -> bool:
    return (await caller.execute("tickets", "create", ticket("room"), Prefer="respond-async"))[0] == 202


async def _has_reason(caller) -> bool:
    _, document, _ = await caller.call("GET", "/readyz")
    return "reason" in document


async def _is_ready(caller) -> bool:
    return (await caller.call("GET", "/readyz"))[0] == 200
