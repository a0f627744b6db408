"""A read through the Model Context Protocol beside the same read through execute.

    python -m tests.benchmarks.bench_agents [--quick]

Both go to one front end on a core of its own, over one connection, in turns; what is compared is the latency.
"""

import contextlib
from dataclasses import dataclass
from typing import Any

from tests.agents.mcp.conftest import CAPABILITIES, VERSION, headers_of
from tests.benchmarks.bench_execute import Target, own_gateway
from tests.benchmarks.processes import application, beside_the_server
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.processes import free_port

_NAME = {"name": "read"}


@dataclass(frozen=True)
class AgentTarget(Target):
    """The tool `read` of the same connector."""

    connector_id: str = ""

    def body(self, records: int) -> Any:
        arguments = {
            "operation": "support-desk.tickets.list",
            "params": {"per_page": records},
            "connector": self.connector_id,
        }
        meta = {VERSION: "2026-07-28", CAPABILITIES: {}}
        params = {**_NAME, "arguments": arguments, "_meta": meta}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def run(quick: bool = False) -> Report:
    """What the protocol adds to a call."""
    seconds, rounds = (1.0, 3) if quick else (2.0, 6)
    report = Report("Agents")
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(application())
        execute = await own_gateway(stack, free_port(), upstream.url)
        headers = {**headers_of("tools/call", _NAME), **execute.headers}
        agent = AgentTarget(execute.server, "/mcp", headers, execute.path.split("/")[-2])
        stack.enter_context(beside_the_server())
        loads = [(await agent.load(SMALL, 1, seconds), await execute.load(SMALL, 1, seconds)) for _ in range(rounds)]
    ours, theirs = paired(*zip(*loads, strict=True), lambda load: load.p50_ms)
    added = ours.p50_ms - theirs.p50_ms
    report.figures += [
        Figure("2 KB: p50 of read at one connection, beside execute", ours.p50_ms, theirs.p50_ms, "ms"),
        Figure("2 KB: added latency at one connection (baseline: 1 ms)", added, 1.0, "ms", at_most=1),
        Figure("2 KB: cost of read, beside execute", ours.cpu_us, theirs.cpu_us, "µs"),
    ]
    report.notes.append(f"of {rounds} rounds, in each of which both take their turn, the one with the median ratio")
    return report


if __name__ == "__main__":
    measured_alone(run, __doc__)
