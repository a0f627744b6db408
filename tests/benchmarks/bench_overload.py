"""Overload: a front end with four times the load that it can serve refuses the rest and stays fast.

    python -m tests.benchmarks.bench_overload [--quick]

Normal is what 32 connections get that ask as fast as they are answered; in the overload callers have four times that to
ask. Who is refused comes again when `Retry-After` says, so that less is asked than callers have. Another organization
has one caller meanwhile, who asks as soon as it is answered.
"""

import asyncio
import contextlib
import resource

from tests.benchmarks.bench_execute import CONNECTIONS, front_end, opened_stores, target_of
from tests.benchmarks.pressure import Callers, Outcome
from tests.benchmarks.processes import application, beside_the_server
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.clients import new_client_in
from tests.harness.processes import free_port

TIMES = 4
#: connections that carry the pressure: those that were refused rest for as long as they are told
CROWD = 7500


async def run(quick: bool = False) -> Report:
    """Accepted latency and throughput under overload, beside those of a normal load."""
    seconds = 3.0 if quick else 8.0
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(application())
        stores = await opened_stores(stack, upstream.url)
        target = await front_end(stack, stores, free_port())
        other = await target_of(target.server, await new_client_in(stores.environment["GATEWAY_DATABASE_URL"]))
        polite = Callers(other.server.url, [other.path], other.headers)
        stack.callback(polite.close)
        callers = Callers(target.server.url, [target.path], target.headers)
        stack.callback(callers.close)
        stack.enter_context(beside_the_server())
        await callers.connect(CONNECTIONS)
        normal = await callers.steady(1.0, seconds)
        await callers.connect(CROWD)
        await polite.connect(1)
        overload, beside = await asyncio.gather(
            callers.pressed(TIMES * normal.accepted, 6.0, seconds), polite.steady(6.0, seconds)
        )
    return _report(normal, overload, beside)


def _report(normal: Outcome, overload: Outcome, polite: Outcome) -> Report:
    report = Report(f"Overload at {TIMES} × capacity")
    report.figures = [
        Figure("accepted p99, beside a normal load's", overload.p99, normal.p99, "ms", at_most=3.0),
        Figure("accepted p50, beside a normal load's", overload.p50, normal.p50, "ms"),
        Figure("accepted requests/s, beside a normal load's", overload.accepted, normal.accepted, "req/s"),
        Figure("offered requests/s, beside a normal load's", overload.offered, normal.offered, "req/s"),
        Figure(
            "another organization's one caller: answers that are refusals", len(polite.refusals),
            sum(polite.answers.values()), "", at_most=0,
        ),
        Figure("another organization's one caller: p99, beside a normal load's", polite.p99, normal.p99, "ms"),
    ]  # fmt: skip
    told = ", ".join(f"{status}: {count:,}" for status, count in sorted(overload.answers.items()))
    report.notes.append(f"answers under overload: {told}")
    return report


if __name__ == "__main__":
    measured_alone(run, __doc__)
