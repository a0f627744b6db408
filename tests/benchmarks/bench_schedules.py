"""The cost of ten thousand schedules for an idle worker.

    python -m tests.benchmarks.bench_schedules [--quick]

The schedules are daily, their slots spread evenly over the day; the cost is the processor time of the worker and of
PostgreSQL beside that of the same worker without schedules.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
import psutil

from gateway.contract.schedules import CatchUp, Overlap, ScheduleDefinition
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault, parse_keys
from gateway.operations.schedules.model import Schedule
from gateway.operations.schedules.store import ScheduleStore
from tests.benchmarks.bench_execute import Stores, front_end, opened_stores
from tests.benchmarks.processes import cpu_of_children
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.processes import Program, free_port

#: schedules, and seconds for which each side is measured
SCHEDULES, SECONDS, QUICK_SECONDS = 10_000, 60.0, 15.0
#: share of one core that they may cost
AT_MOST = 0.01
_SPREAD = """
    UPDATE schedules SET next_run_at = now() + number * interval '1 day' / $1
    FROM (SELECT id, row_number() OVER () AS number FROM schedules) AS numbered WHERE numbered.id = schedules.id
"""
_RUNS = "SELECT count(*) FROM jobs WHERE labels ? 'schedule_id'"


async def run(quick: bool = False) -> Report:
    """The share of a core that the schedules take."""
    seconds = QUICK_SECONDS if quick else SECONDS
    async with contextlib.AsyncExitStack() as stack:
        stores = await opened_stores(stack, "http://127.0.0.1:1")
        await front_end(stack, stores, free_port(), core=None)
        server = await asyncpg.connect(stores.environment["GATEWAY_DATABASE_URL"])
        stack.push_async_callback(server.close)
        idle = await _share(stores, seconds)
        await _filled(stores, server)
        busy = await _share(stores, seconds)
        runs = await server.fetchval(_RUNS)
    return Report(
        "Schedules",
        [
            Figure(
                f"{SCHEDULES:,} schedules: share of a core, beside the limit", busy - idle, AT_MOST, "cores", at_most=1
            )
        ],
        [
            f"the worker and PostgreSQL without schedules take {idle:.4f} cores, with them {busy:.4f}",
            f"slots that came meanwhile: {runs}",
        ],
    )


async def _filled(stores: Stores, server: asyncpg.Connection) -> None:
    """Daily schedules of the only connector, whose slots are spread over the day."""
    [connector] = await server.fetch("SELECT id, organization_id FROM connectors")
    async with Database.open(stores.environment["GATEWAY_DATABASE_URL"], size=2) as database:
        store = ScheduleStore(database, Vault(parse_keys(stores.environment["GATEWAY_ENCRYPTION_KEYS"])))
        for number in range(SCHEDULES):
            definition = ScheduleDefinition(
                name=str(number),
                connector_id=connector["id"],
                entity="tickets",
                action="list",
                cron=f"{number % 60} {number // 60 % 24} * * *",
                overlap=Overlap.SKIP,
                catch_up=CatchUp.ONE,
            )
            schedule = Schedule(
                id=uuid4(),
                organization_id=connector["organization_id"],
                client_id=uuid4(),
                workspace_name="bench",
                kind="support-desk",
                definition=definition,
                next_run_at=None,
            )
            await store.insert(schedule)
    await server.execute(_SPREAD, SCHEDULES)
    # What PostgreSQL would do of its own accord after so many writes, and would be counted in.
    await server.execute("VACUUM (ANALYZE) schedules")
    await server.execute("CHECKPOINT")


async def _share(stores: Stores, seconds: float) -> float:
    """Cores that a worker and PostgreSQL take on average, once the worker has started."""
    async with _worker(stores) as pid:
        await asyncio.sleep(3)
        before = _cpu(pid)
        await asyncio.sleep(seconds)
        return (_cpu(pid) - before) / seconds


@asynccontextmanager
async def _worker(stores: Stores) -> AsyncIterator[int]:
    environment = {**os.environ, **stores.environment}
    program = Program(sys.executable, "-m", "gateway", "worker", environment=environment)
    await program.start()
    try:
        yield program.pid
    finally:
        await program.stop()


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system + cpu_of_children("postgres")


if __name__ == "__main__":
    measured_alone(run, __doc__)
