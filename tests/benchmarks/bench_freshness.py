"""Equal reads of many callers that accept cached responses: requests to the application, and the cost of a call.

    python -m tests.benchmarks.bench_freshness [--quick]

One front end on one core; the load, and an application that takes up to 50 ms, on the other.
"""

import contextlib

from tests.benchmarks.bench_execute import Target, front_end, opened_stores
from tests.benchmarks.pressure import Callers, Outcome
from tests.benchmarks.processes import beside_the_server
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.faults.upstream import Upstream
from tests.harness.processes import free_port

CALLERS = 1000
#: how long they ask, and the age that they accept, in seconds
SECONDS, AGE = 1.0, 60


async def run(quick: bool = False) -> Report:
    """Requests to the application, and calls/s, beside those of callers who accept no remembered answer."""
    callers = 100 if quick else CALLERS
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream().serving())
        target = await front_end(stack, await opened_stores(stack, upstream.url), free_port())
        stack.enter_context(beside_the_server())
        before, cpu = upstream.requests, target.server.cpu_seconds()
        remembered = await _asked(target, {"Cache-Control": f"max-age={AGE}"}, callers)
        asked, cpu = upstream.requests - before, target.server.cpu_seconds() - cpu
        every_time = await _asked(target, {}, callers)
    name = f"{callers:,} callers asking the same for {SECONDS:g} s"
    calls = remembered.answers[200]
    return Report(
        "Freshness",
        [
            Figure(f"{name}: requests to the application", asked, 1, "requests", at_most=1),
            Figure(f"{name}: answers other than 200", sum(remembered.answers.values()) - calls, calls, "", at_most=0),
            Figure(f"{name}: calls/s, beside those without max-age", remembered.accepted, every_time.accepted, "/s"),
        ],
        [f"a call that is answered from memory takes {cpu / calls * 1e6:,.0f} µs of the front end"],
    )


async def _asked(target: Target, headers: dict[str, str], connections: int) -> Outcome:
    """Every caller asks again as soon as it is answered."""
    callers = Callers(target.server.url, [target.path], {**target.headers, **headers})
    await callers.connect(connections)
    outcome = await callers.steady(0.0, SECONDS)
    callers.close()
    return outcome


if __name__ == "__main__":
    measured_alone(run, __doc__)
