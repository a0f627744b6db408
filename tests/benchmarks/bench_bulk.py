"""Bulk updates of tickets: batches side by side, as many at a time as the application takes.

    python -m tests.benchmarks.bench_bulk [--quick]

The application takes a second for each batch of 100 tickets, and 30 batches at a time, or fewer.
"""

import contextlib
import time
from dataclasses import dataclass

from tests.benchmarks.bench_execute import front_end, opened_stores
from tests.benchmarks.processes import worker
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.faults.upstream import Upstream
from tests.harness.caller import Api, ConnectorApi
from tests.harness.processes import free_port

#: tickets of an update and of a batch; batches that the application takes at a time, and when others fill its queue
TICKETS, BATCH, ROOM, LITTLE_ROOM = 3000, 100, 30, 10


@dataclass(frozen=True)
class Update:
    """One update to its end: seconds from its request, batches that were started, and the most at a time."""

    seconds: float
    started: int
    side_by_side: int


async def run(quick: bool = False) -> Report:
    """How long a large update takes beside a single batch."""
    tickets = 300 if quick else TICKETS
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream().serving())
        upstream.batch_seconds = 1.0
        stores = await opened_stores(stack, upstream.url)
        target = await front_end(stack, stores, free_port(), core=None)
        await stack.enter_async_context(worker("gateway", "worker", environment=stores.environment))
        api = await stack.enter_async_context(Api.of(target.server.url, stores.client.id, stores.client.secret))
        desk = await api.connector(validate=False)
        await _update(desk, upstream, 1)  # until the worker has started and opened the connector
        one = await _update(desk, upstream, BATCH)
        many = await _update(desk, upstream, tickets)
        upstream.room = LITTLE_ROOM
        narrow = await _update(desk, upstream, tickets)
    batches = tickets // BATCH
    name, with_little_room = f"{tickets:,} tickets", f"{tickets:,} tickets, room for {LITTLE_ROOM} batches"
    bound = one.seconds * batches / min(batches, LITTLE_ROOM)
    return Report(
        "Bulk updates",
        [
            Figure(f"{name}: seconds, beside a single batch", many.seconds, one.seconds, "s", at_most=5),
            Figure(f"{name}: batches side by side, beside those the application takes", many.side_by_side,
                   min(batches, ROOM), "batches", at_least=1),
            Figure(f"{name}: batches started, beside those there are", many.started, batches, "batches", at_most=1),
            Figure(f"{with_little_room}: seconds, beside as many batches one after the other as need be",
                   narrow.seconds, bound, "s"),
            Figure(f"{with_little_room}: batches started, beside those there are", narrow.started, batches,
                   "batches", at_most=1),
        ],
        ["a batch takes the application a second; where it has no more room, it answers TooManyJobs"],
    )  # fmt: skip


async def _update(desk: ConnectorApi, upstream: Upstream, tickets: int) -> Update:
    upstream.updated.clear()
    upstream.most_batches = 0
    params = {"ids": ",".join(map(str, range(1, tickets + 1))), "ticket": {"status": "solved"}}
    began = time.perf_counter()
    job = await desk.api.ended_job(await desk.submit("ticket_bulk_updates", "create", params))
    seconds = time.perf_counter() - began
    assert (job["status"], job["message"]) == ("succeeded", f"{tickets} of {tickets} tickets updated"), job
    return Update(seconds, sum(upstream.updated.values()), upstream.most_batches)


if __name__ == "__main__":
    measured_alone(run, __doc__)
