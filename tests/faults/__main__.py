"""`make faults`: the storm in full, with its report."""

import asyncio
import sys

from tests.faults.storm import storm

JOBS, KILLS = 1000, 33


def main() -> int:
    report = asyncio.run(storm(JOBS, KILLS, seed=int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
