"""Usage: calls counted as their audit entries are written, and percentiles from buckets of durations."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from statistics import quantiles
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.access.audit.entry import Entry
from gateway.access.audit.log import Audit
from gateway.access.audit.usage import LATEST_CALLS, PRUNE, UsagePoint, percentile, whole_step
from gateway.errors import InvalidParams
from gateway.foundation.db.pool import Database
from gateway.foundation.db.pruning import prune

_FIND_BUCKET = "SELECT usage_bucket($1)"
_INSERT = """
    INSERT INTO audit (organization_id, at, what, outcome, took_ms)
    SELECT $1, now() - number * interval '1 minute', 'tickets.list', 'succeeded', 40
    FROM generate_series(1, $2) AS number
"""


@pytest.mark.parametrize(
    ("step", "span", "seconds"),
    [(10, 10, 10), (11, 10, 20), (59, 10, 60), (60, 60, 60), (90, 60, 120), (599, 60, 600), (600, 600, 600),
     (1200, 600, 1200), (1400, 600, 1800), (86_400, 600, 86_400)],
)  # fmt: skip
def test_a_step_is_rounded_up_to_whole_rows(step: int, span: int, seconds: int):
    assert whole_step(step) == (span, seconds)


@pytest.mark.parametrize(
    ("took", "share", "milliseconds"),
    [([], 0.5, None), ([0, 0], 0.5, None), ([0, 0, 0, 4], 0.5, 1.3), ([0, 0, 0, 1, 0, 0, 1], 0.95, 3.9)],
)
def test_a_percentile_lies_within_its_bucket(took: list[int], share: float, milliseconds: float | None):
    assert percentile(list(accumulate(took)), share) == milliseconds


@pytest.mark.parametrize("milliseconds", [0, 1, 7, 41, 950, 20_000, 200_000])
async def test_postgresql_and_the_gateway_have_the_same_buckets(database: Database, milliseconds: int):
    async with database.system() as connection:
        bucket = await connection.fetchval(_FIND_BUCKET, milliseconds)

    sums = [int(number >= bucket) for number in range(55)]
    lowest, highest = percentile(sums, 0.0001), percentile(sums, 1)

    assert lowest is not None
    assert highest is not None
    assert lowest - 0.05 <= milliseconds <= highest + 0.05


async def noted(database: Database, organization_id: UUID, entries: list[tuple[str, int]]) -> None:
    """Each entry with its outcome and milliseconds; each is a batch of its own, several at once."""

    async def write(outcome: str, took_ms: int) -> None:
        entry = Entry(what="tickets.list", organization_id=organization_id)
        entry.end(outcome, "request-1", took_ms)
        async with Audit(database).writing() as audit:
            audit.note(entry)

    await asyncio.gather(*(write(*entry) for entry in entries))


async def called(database: Database, organization_id: UUID, step: int) -> list[UsagePoint]:
    points = await Audit(database).usage(organization_id, datetime.now(UTC) - timedelta(hours=1), step)
    return [point for point in points if point.calls]


@pytest.mark.parametrize("step", [10, 60, 3600])
async def test_every_call_is_counted_once_with_its_outcome_and_duration(database: Database, step: int):
    organization_id, durations = uuid4(), [5 * number for number in range(1, 41)]
    outcomes = ["succeeded"] * 30 + ["accepted"] * 5 + ["upstream_error"] * 5

    await noted(database, organization_id, list(zip(outcomes, durations, strict=True)))

    points = await called(database, organization_id, step)
    assert sum(point.calls for point in points) == 40
    assert sum(point.errors for point in points) == 5
    if len(points) == 1:  # the clock may pass a border between two entries
        exact = quantiles(durations, n=20, method="inclusive")
        assert points[0].p50_ms == pytest.approx(exact[9], rel=0.12)
        assert points[0].p95_ms == pytest.approx(exact[18], rel=0.12)


async def test_another_organizations_calls_are_not_counted(database: Database):
    ours, theirs = uuid4(), uuid4()

    await noted(database, theirs, [("succeeded", 1)])

    assert await called(database, ours, 60) == []


async def test_entries_without_a_duration_are_counted_too(database: Database, database_url: str):
    organization_id = uuid4()
    owner = await asyncpg.connect(database_url)
    await owner.execute(
        "INSERT INTO audit (organization_id, at, what, outcome) VALUES ($1, now(), 'x', 'succeeded')", organization_id
    )
    await owner.close()

    (point,) = await called(database, organization_id, 60)

    assert (point.calls, point.p50_ms, point.p95_ms) == (1, None, None)


async def test_counts_are_kept_as_long_as_an_answer_can_ask_for_them(database: Database, database_url: str):
    organization_id, minutes = uuid4(), 40 * 24 * 60
    owner = await asyncpg.connect(database_url)
    await owner.execute(_INSERT, organization_id, minutes)

    await prune(database, PRUNE)

    oldest = await owner.fetch(
        "SELECT seconds, round(extract(epoch FROM now() - min(at)) / 86400) AS days FROM usage_counts"
        " WHERE organization_id = $1 GROUP BY seconds ORDER BY seconds",
        organization_id,
    )
    await owner.close()
    month = await Audit(database).usage(organization_id, datetime.now(UTC) - timedelta(days=31), 86_400)
    assert [tuple(row) for row in oldest] == [(10, 3), (60, 15), (600, 32)]
    assert sum(point.calls for point in month) == pytest.approx(31.5 * 24 * 60, abs=12 * 60)


async def test_usage_of_more_than_a_hundred_thousand_calls_that_are_read_one_by_one_is_refused(
    database: Database, database_url: str
):
    organization_id, client_id, since = uuid4(), uuid4(), datetime.now(UTC) - timedelta(days=1)
    owner = await asyncpg.connect(database_url)
    add = """
        INSERT INTO audit (organization_id, at, actor, what, outcome, took_ms)
        SELECT $1, now() - interval '1 hour', $2, 'tickets.list', 'succeeded', 40 FROM generate_series(1, $3)
    """
    await owner.execute(add, organization_id, client_id, 100_000)
    points = await Audit(database).usage_of(organization_id, since, 86_400, "client", client_id)
    await owner.execute(add, organization_id, client_id, 1)
    await owner.close()

    with pytest.raises(InvalidParams, match="more than 100,000 calls since then"):
        await Audit(database).usage_of(organization_id, since, 86_400, "client", client_id)
    assert sum(point.calls for point in points) == 100_000


async def test_a_write_and_a_job_count_as_one_call(database: Database):
    organization_id = uuid4()
    write, job = (
        Entry(what="tickets.create", organization_id=organization_id),
        Entry(what="tickets.create", organization_id=organization_id),
    )
    end = Entry(
        what="tickets.create",
        organization_id=organization_id,
        call_id=uuid4(),
        entry_kind="settlement",
        outcome="failed",
    )
    async with Audit(database).writing() as audit:
        audit.note(write.intent_of(uuid4()))
        write.settle("upstream_rejected")
        audit.note(write)
        audit.count(write)
        job.accept(uuid4())
        job.end("accepted", "request-1", 3)
        audit.note(job)
        audit.note(end)

    [point] = await called(database, organization_id, 3600)

    assert (point.calls, point.errors) == (2, 1)


_CLIENTS = """
    INSERT INTO clients (id, name, secret_hashes, scopes)
    SELECT id, name, '{}', '{}' FROM unnest($1::uuid[], ARRAY['often', 'seldom', 'rarely']) AS client (id, name)
"""
_CALLED = """
    INSERT INTO audit (organization_id, at, actor, what, outcome)
    SELECT $1, now() - number * interval '1 second', $2, 'tickets.list', $3
    FROM generate_series($4::integer, $5) AS number
"""


@pytest.mark.parametrize(("calls", "is_cut"), [(LATEST_CALLS - 4, False), (LATEST_CALLS - 3, True)])
async def test_the_busiest_clients_are_of_the_latest_calls_and_the_others_are_together(
    database: Database, database_url: str, calls: int, is_cut: bool
):
    organization_id, clients, since = uuid4(), [uuid4() for _ in range(3)], datetime.now(UTC) - timedelta(days=1)
    owner = await asyncpg.connect(database_url)
    await owner.execute(_CLIENTS, clients)
    for client, outcome, last in zip(clients, ("succeeded", "failed", "failed"), (calls, 2, 1), strict=True):
        await owner.execute(_CALLED, organization_id, client, outcome, 1, last)
    await owner.close()

    shares = await Audit(database).busiest(organization_id, since, "client", limit=1)

    assert [(each.name, each.calls, each.errors) for each in shares.busiest] == [("often", calls, 0)]
    assert (shares.others, shares.other_calls, shares.other_errors) == (2, 3, 3)
    assert (shares.latest_since is not None) == is_cut


async def test_calls_before_the_latest_are_not_counted(database: Database, database_url: str):
    organization_id, clients, since = uuid4(), [uuid4() for _ in range(3)], datetime.now(UTC) - timedelta(days=1)
    owner = await asyncpg.connect(database_url)
    await owner.execute(_CLIENTS, clients)
    await owner.execute(_CALLED, organization_id, clients[0], "succeeded", 1, LATEST_CALLS)
    await owner.execute(_CALLED, organization_id, clients[1], "succeeded", LATEST_CALLS + 600, LATEST_CALLS + 605)
    await owner.close()

    shares = await Audit(database).busiest(organization_id, since, "client")

    assert [(each.name, each.calls) for each in shares.busiest] == [("often", LATEST_CALLS)]
    assert shares.latest_since is not None
