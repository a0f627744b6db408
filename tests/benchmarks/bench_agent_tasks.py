"""Twelve tasks through the six tools of agents: how many calls each takes, and how much a model reads and writes.

    python -m tests.benchmarks.bench_agent_tasks [--quick]

The tasks are those of `tests/journeys/agent_tasks.py`, against the sandbox. A target is the most that a task may take.
"""

import os
import tempfile
from pathlib import Path

from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.caller import Api
from tests.harness.up import brought_up
from tests.journeys.agent_tasks import TASKS, Task, World, world_of


async def run(quick: bool = False) -> Report:
    """Calls and tokens of each task, beside the most that it may take."""
    report = Report("Tasks of agents")
    environment = {**os.environ, "GATEWAY_SYNCHRONIZE": "false", "GATEWAY_LOG_LEVEL": "warning"}
    with tempfile.TemporaryDirectory() as folder:
        async with (
            brought_up(Path(folder), environment, "--sandbox") as ready,
            Api.of(ready["base_url"], ready["client_id"], ready["client_secret"]) as api,
            world_of(api) as world,
        ):
            for task in TASKS:
                report.figures += await _measured(task, world.with_another_model())
    before = [
        f"{task.name}: {task.before[0]} calls" + (f", {task.before[1]:,} tokens" if task.before[1] else "")
        for task in TASKS
        if task.before
    ]
    report.notes += [
        "The baseline is the most that a task may take. Tokens are those that the model writes as arguments and reads.",
        f"Without batches, parts of long answers and short descriptions: {'; '.join(before)}.",
    ]
    return report


async def _measured(task: Task, world: World) -> list[Figure]:
    await task.do(world)
    return [
        Figure(f"{task.name}: calls", world.model.calls, task.calls, "", at_most=1),
        Figure(f"{task.name}: tokens", world.model.tokens, task.tokens, "", at_most=1),
    ]


if __name__ == "__main__":
    measured_alone(run, __doc__)
