"""Two job queues side by side, each with a worker process of its own: the gateway's, and one that is durable as well.

    python -m tests.benchmarks.job_queues gateway|procrastinate

runs a worker until SIGTERM. Both know a task that does nothing and one that takes five milliseconds.
"""

import asyncio
import os
import signal
import sys
from typing import Any

import msgspec
import procrastinate
import uvloop

from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.run.services import open_worker
from gateway.run.work import work_of
from gateway.settings import Settings
from gateway.upstream.responses import OperationResult
from workers.main import Worker

#: jobs that a worker runs at a time
SLOTS = 100
WORK = 0.005
_NOTHING = OperationResult(result=msgspec.Raw(b"null"))


async def no_op(job: StoredJob, run_context: JobRunContext) -> OperationResult:
    return _NOTHING


async def some_work(job: StoredJob, run_context: JobRunContext) -> OperationResult:
    await asyncio.sleep(WORK)
    return _NOTHING


async def a_second(job: StoredJob, run_context: JobRunContext) -> OperationResult:
    await asyncio.sleep(1)
    return _NOTHING


def baseline(url: str) -> procrastinate.App:
    """The other queue, with the same tasks; told to look as seldom as its notifications allow."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=10))

    async def theirs_no_op() -> None:
        return

    async def theirs_some_work() -> None:
        await asyncio.sleep(WORK)

    app.task(name="no_op")(theirs_no_op)
    app.task(name="some_work")(theirs_some_work)
    return app


async def run_gateway_worker() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with open_worker(Settings()) as services:
        added = {work.__name__: work for work in (no_op, some_work, a_second)}
        await Worker(services, {**work_of(services), **added}).until(stopping)


async def run_baseline_worker() -> None:
    app = baseline(os.environ["BASELINE_URL"])
    async with app.open_async():
        await app.run_worker_async(concurrency=SLOTS, wait=True, listen_notify=True)


def main() -> None:
    workers: dict[str, Any] = {"gateway": run_gateway_worker, "procrastinate": run_baseline_worker}
    uvloop.run(workers[sys.argv[1]]())


if __name__ == "__main__":
    main()
