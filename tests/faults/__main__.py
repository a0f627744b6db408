"""Storms and agents in full, each with its report: `make faults`.

    python -m tests.faults [--seeds 1,2,3] [--jobs 2000] [--faults 45]

Writes REPORT.md beside this file when the storms have their full size, and ends with 1 when one of them lost, doubled
or invented something, or left the jobs of a dead worker waiting.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from tests.faults import agents
from tests.faults.report import Report, document
from tests.faults.storm import storm

REPORT = Path(__file__).parent / "REPORT.md"
JOBS, FAULTS = 2000, 45
_AGENTS = """## Agents

`python -m tests.faults.agents`: twenty agents behind a load balancer of three front ends and two workers call bulk
updates as tasks of the Model Context Protocol, and create tickets between them, while both are killed.
"""


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3", help="one storm for each, separated by commas")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--faults", type=int, default=FAULTS)
    options = parser.parse_args()
    reports: dict[int, Report] = {}
    for seed in map(int, options.seeds.split(",")):
        print(f"storm of seed {seed} …", file=sys.stderr, flush=True)
        reports[seed] = asyncio.run(storm(options.jobs, options.faults, seed))
        print(reports[seed].table(), flush=True)
    of_agents = asyncio.run(agents.agents(agents.TASKS, agents.KILLS))
    print(of_agents.table())
    if (options.jobs, options.faults) == (JOBS, FAULTS):
        REPORT.write_text(f"{document(reports)}\n{_AGENTS}\n```\n{of_agents.table()}\n```\n")
    are_good = all(each.is_clean and each.is_quick for each in reports.values())
    return 0 if are_good and of_agents.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
