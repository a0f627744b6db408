"""The cost of a front end with all shipped kinds, compared with one that has seven.

    python -m tests.benchmarks.bench_start [--quick]

Both run the same code with different folders of specs, started in turns. Start-up is the processor time until the
first connector is made.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import gateway
from gateway.kinds.loading import shipped_specs, spec_folders
from tests.benchmarks.bench_execute import Stores, front_end, opened_stores
from tests.benchmarks.processes import application, beside_the_server
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.caller import Api
from tests.harness.processes import free_port

SEVEN = (
    "support-desk", "crm-records", "crm-query", "workspace-notes", "team-chat", "work-management",
    "incident-management",
)  # fmt: skip
CONNECTIONS = 8
#: how much more all kinds may take than seven; a call may take no more, but for the noise of the machine
AT_MOST, SAME = 1.3, 1.1


@dataclass(frozen=True)
class Cost:
    """What one front end took: processor seconds until it was of use, memory, and microseconds a call."""

    start_seconds: float
    memory_mib: float
    #: once operations were searched for, which makes their index
    indexed_mib: float
    call_us: float


async def run(quick: bool = False) -> Report:
    """Start-up, memory and cost of a call against their limits."""
    seconds, rounds = (1.0, 1) if quick else (3.0, 5)
    report = Report("Start-up")
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(application())
        stores = await opened_stores(stack, upstream.url)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gw-")))
        every = [each.name for each in spec_folders()]
        few, many = (_with_kinds(stores, folder, names) for names in (SEVEN, every))
        stack.enter_context(beside_the_server())
        for each in (few, many):
            await _cost(each, 0.1)  # makes the files of bytecode
        baselines, costs = [], []
        for _ in range(rounds):
            baselines.append(await _cost(few, seconds))
            costs.append(await _cost(many, seconds))
    kinds = f"with {len(every)} kinds"
    for name, cost, unit, at_most in _FIGURES:
        ours, theirs = paired(costs, baselines, cost)
        report.figures.append(Figure(f"{name} {kinds}", cost(ours), cost(theirs), unit, at_most=at_most))
    report.notes.append(f"beside a front end with seven kinds; of {rounds} rounds the one with the median ratio")
    return report


_FIGURES: tuple[tuple[str, Callable[[Cost], float], str, float], ...] = (
    ("CPU time of a start", lambda cost: cost.start_seconds, "s", AT_MOST),
    ("memory after the start", lambda cost: cost.memory_mib, "MiB", AT_MOST),
    ("memory with the index of operations", lambda cost: cost.indexed_mib, "MiB", AT_MOST),
    ("CPU time of a call", lambda cost: cost.call_us, "µs", SAME),
)


def _with_kinds(stores: Stores, folder: Path, kinds: Iterable[str]) -> Stores:
    """Settings by which processes import this code with these kinds alone."""
    root = Path(tempfile.mkdtemp(dir=folder))
    code, specs = Path(gateway.__file__).parent, root / "gateway" / "specs"
    specs.mkdir(parents=True)
    for each in code.iterdir():
        if each.name != specs.name:
            (root / "gateway" / each.name).symlink_to(each)
    for kind in kinds:
        (specs / kind).symlink_to(shipped_specs() / kind)
    return stores.changed(PYTHONPATH=str(root), PYTHONSAFEPATH="1", PYTHONDONTWRITEBYTECODE="")


async def _cost(stores: Stores, seconds: float) -> Cost:
    async with contextlib.AsyncExitStack() as stack:
        target = await front_end(stack, stores, free_port())
        started, memory = target.server.cpu_seconds(), target.server.memory_mib()
        load = await target.load(SMALL, CONNECTIONS, seconds)
        async with Api.of(target.server.url, stores.client.id, stores.client.secret) as api:
            found = await api.get("/api/v1/operations?query=close+a+ticket")
        assert found.status == 200, found
        return Cost(started, memory, target.server.memory_mib(), load.cpu_us)


if __name__ == "__main__":
    measured_alone(run, __doc__)
