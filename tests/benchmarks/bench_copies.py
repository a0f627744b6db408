"""Requests of synchronizations: those that were sent beside the pages that had to be read.

    python -m tests.benchmarks.bench_copies

Loads entities of the sandbox whole, changes one record in a hundred, and synchronizes again.
"""

import logging
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gateway.foundation.db.pool import Database
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.faults.rude import copying_of
from tests.harness.catalog import shipped_catalog
from tests.harness.rude import Played, played
from tests.harness.stores import own_stores


@dataclass(frozen=True)
class Case:
    """An entity, its records for each unit of the sandbox's scale, and the records of a page."""

    kind: str
    entity: str
    table: str
    page: int
    #: the member that a change sets to its time
    changed: str = "updated_at"


CASES = (
    Case("support-desk", "tickets", "tickets", 1000),
    Case("freshdesk", "tickets", "tickets", 100),
)


async def measured(case: Case, scale: float, database: Database, url: str) -> list[Figure]:
    """The requests of a whole synchronization, and of the next one."""
    kind = shipped_catalog().kinds[case.kind]
    async with played(kind, scale) as application:
        copying = await copying_of(application, database, url)
        whole = (await copying.full([case.entity]))[case.entity]
        first = await requests(application)
        await change(application, case, sorted(whole.ids)[::100])
        before = await requests(application)
        await copying.changes(case.entity)
        again = await requests(application) - before
    count, changed = len(whole.ids), math.ceil(len(whole.ids) / 100)
    name = f"{case.kind} {case.entity}"
    return [
        Figure(f"{name}: {count:,} records", first, math.ceil(count / case.page), "requests", at_most=1.1),
        Figure(f"{name}: {changed:,} changed", again, math.ceil(changed / case.page), "requests", at_most=2.1),
    ]


async def requests(application: Played) -> int:
    async with application.http.get("/_sandbox/counters") as answer:
        return int((await answer.json())["requests"])


async def change(application: Played, case: Case, ids: list[str]) -> None:
    """Let these records change now."""
    now = datetime.now(UTC)
    for index, id_ in enumerate(ids):
        at = (now + timedelta(milliseconds=index)).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"/_sandbox/records/{case.kind}/{case.table}/{id_}"
        async with application.http.put(path, json={case.changed: at}) as answer:
            assert answer.status < 300, await answer.text()


async def run(quick: bool = False) -> Report:
    """The figures, on a PostgreSQL of its own."""
    logging.disable(logging.CRITICAL)
    report = Report("Copies")
    async with own_stores() as stores, Database.open(stores.postgres.url, command_timeout=10) as database:
        for case in CASES:
            report.figures += await measured(case, 20 if quick else 200, database, stores.postgres.url)
    report.notes.append("the baseline is the number of pages that hold the records")
    return report


if __name__ == "__main__":
    measured_alone(run, __doc__)
