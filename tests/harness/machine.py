"""How fast this machine is, so that limits of processor time mean the same work everywhere."""

import json
import statistics
import time
from functools import cache

#: seconds that the reference takes on the machine for which limits are written
_NOMINAL = 0.018
#: factor beyond which a machine is not compared any more
_MAX = 4.0


@cache
def slowness() -> float:
    """By what factor this machine is slower than the one for which limits are written; at least 1."""
    return min(max(1.0, statistics.median(_reference() for _ in range(9)) / _NOMINAL), _MAX)


def _reference() -> float:
    begun = time.thread_time()
    for _ in range(20):
        records = [{"id": number, "name": f"record {number}", "tags": ["a", "b"]} for number in range(500)]
        sorted(json.loads(json.dumps(records)), key=lambda record: record["name"])
    return time.thread_time() - begun
