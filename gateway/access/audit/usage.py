"""Calls over time, from the counts that PostgreSQL keeps as audit entries are written."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

#: seconds that one row counts
SPANS = (10, 60, 600)
#: buckets of durations, and how many there are for each doubling of 1 + milliseconds (usage_bucket in PostgreSQL)
_BUCKETS, _BUCKETS_A_DOUBLING = 55, 3
#: milliseconds at which each bucket begins, and the last one ends
_BEGINS = [math.pow(2, bucket / _BUCKETS_A_DOUBLING) - 1 for bucket in range(_BUCKETS + 1)]

_SUMS = ", ".join(f"sum(took[{number}])" for number in range(1, _BUCKETS + 1))
# $1 organization, $2 seconds that a row counts, $3 since when, $4 time between points.
USAGE = f"""
    WITH found AS (
        SELECT date_bin($4::interval, at, 'epoch') AS at, sum(calls)::bigint AS calls, sum(errors)::bigint AS errors,
               ARRAY[{_SUMS}] AS took
        FROM usage_counts
        WHERE organization_id = $1 AND seconds = $2 AND at >= date_bin($4::interval, $3, 'epoch')
        GROUP BY 1
    )
    SELECT point AS at, COALESCE(calls, 0) AS calls, COALESCE(errors, 0) AS errors, COALESCE(took, '{{}}') AS took
    FROM generate_series(date_bin($4::interval, $3, 'epoch'), now(), $4::interval) AS point
    LEFT JOIN found ON found.at = point
    ORDER BY point
"""
#: entries that a statement reads where no counts exist: by client, connector or workspace, and for limited callers
MAX_READ = 100_000
#: latest calls that a page counts by client or connector; a statement reads them in 30 ms
LATEST_CALLS = 20_000
#: clients, people, connectors or workspaces of a response
MAX_SHARES = 1000
#: The end of a job, which no caller's time is measured for, is no further call beside its acceptance.
IS_CALL = "outcome IS NOT NULL AND NOT (entry_kind = 'settlement' AND took_ms IS NULL)"
# The newest calls of a period. $1 organization, $2 since when, $3 workspaces, $4 rows.
_RECENT = f"""
    SELECT at, outcome, took_ms, actor, acting_client, connector_id FROM audit
    WHERE organization_id = $1 AND at >= $2 AND {IS_CALL} AND $3::text[] IS NULL
    ORDER BY at DESC, id DESC LIMIT $4
"""
# Entries are read by the index of their connector, so that those of other workspaces are not read.
_RECENT_OF_WORKSPACES = f"""
    SELECT entry.* FROM connectors JOIN workspaces ON workspaces.id = workspace_id CROSS JOIN LATERAL (
        SELECT at, outcome, took_ms, actor, acting_client, connector_id FROM audit
        WHERE organization_id = $1 AND connector_id = connectors.id AND at >= $2 AND {IS_CALL}
        ORDER BY at DESC, id DESC LIMIT $4) AS entry
    WHERE connectors.organization_id = $1 AND workspaces.name = ANY ($3::text[])
    LIMIT $4
"""
# Those of one connector, or of one client that acts for itself; each has an index.
_RECENT_OF = f"""
    SELECT at, outcome, took_ms FROM audit
    WHERE organization_id = $1 AND at >= $2 AND {{column}} = $3 AND {IS_CALL}
    ORDER BY at DESC, id DESC LIMIT $4
"""
_POINTS = """
    WITH recent AS MATERIALIZED ({recent}), found AS (
        SELECT date_bin($5::interval, at, 'epoch') AS at, count(*) AS calls,
               count(*) FILTER (WHERE outcome NOT IN ('succeeded', 'accepted')) AS errors,
               percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY took_ms) AS took
        FROM recent GROUP BY 1
    )
    SELECT point AS at, COALESCE(calls, 0) AS calls, COALESCE(errors, 0) AS errors, round(took[1]::numeric, 1)::float8
           AS p50_ms, round(took[2]::numeric, 1)::float8 AS p95_ms, (SELECT count(*) FROM recent) AS read
    FROM generate_series(date_bin($5::interval, $2, 'epoch'), now(), $5::interval) AS point
    LEFT JOIN found ON found.at = point
    ORDER BY point
"""
_SHARES = """
    WITH recent AS ({recent}), counted AS MATERIALIZED (
        SELECT {key} AS key, count(*) AS calls, min(at) AS oldest,
               count(*) FILTER (WHERE outcome NOT IN ('succeeded', 'accepted')) AS errors
        FROM recent GROUP BY 1
    )
    SELECT {id}::text AS id, {name} AS name, sum(calls)::bigint AS calls, sum(errors)::bigint AS errors,
           (sum(sum(calls)) OVER ())::bigint AS all_calls, (sum(sum(errors)) OVER ())::bigint AS all_errors,
           count(*) OVER () AS shares, (SELECT sum(calls) FROM counted)::bigint AS read,
           (SELECT min(oldest) FROM counted) AS oldest
    FROM counted {join} WHERE $5::uuid IS NULL OR {seen}
    GROUP BY 1, 2 ORDER BY calls DESC, id LIMIT $6
"""
_OF_CONNECTORS = "JOIN connectors ON connectors.id = key"
#: what calls are counted by → the column of entries, the id, the name, the tables that have it, and what a caller ($5)
#: sees of them: no other people, and no connectors of others
_BY = {
    # In a session the client that acts.
    "client": (
        "COALESCE(acting_client, actor)",
        "key",
        "clients.name",
        "JOIN clients ON clients.id = key",
        "(clients.id = $5 OR NOT EXISTS (SELECT FROM people WHERE people.client_id = clients.id))",
    ),
    "person": (
        "actor",
        "key",
        "clients.name",
        "JOIN clients ON clients.id = key AND EXISTS (SELECT FROM people WHERE people.client_id = key)",
        "key = $5",
    ),
    "connector": (
        "connector_id",
        "key",
        "connectors.name",
        _OF_CONNECTORS,
        "(connectors.owner_id IS NULL OR connectors.owner_id = $5)",
    ),
    "workspace": (
        "connector_id",
        "workspace_id",
        "workspaces.name",
        f"{_OF_CONNECTORS} JOIN workspaces ON workspaces.id = workspace_id",
        "true",
    ),
}
#: counts the calls of a JSON array, beside those that PostgreSQL counts as their entries are inserted
COUNT = """
    SELECT gateway_count_calls(array_agg(organization_id), array_agg(to_timestamp(at)), array_agg(outcome),
                               array_agg(took_ms))
    FROM json_to_recordset($1::json) AS call (organization_id uuid, at float8, outcome text, took_ms integer)
"""
#: for `prune`: counts stay as long as a response with 2,000 points can contain them, and a day more
PRUNE = """
    WITH old AS (
        SELECT organization_id, seconds, at FROM usage_counts
        WHERE seconds = 10 AND at < now() - interval '3 days'
           OR seconds = 60 AND at < now() - interval '15 days'
           OR seconds = 600 AND at < now() - interval '32 days'
        LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM usage_counts AS counted USING old
    WHERE (counted.organization_id, counted.seconds, counted.at) = (old.organization_id, old.seconds, old.at)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePoint:
    """The calls of one span of time; milliseconds are None without calls."""

    at: datetime
    calls: int
    errors: int
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True)
class UsageShare:
    """The calls of one client, connector or workspace."""

    id: str
    name: str
    calls: int
    errors: int


@dataclass(frozen=True, slots=True)
class UsageShares:
    """The busiest clients or connectors, and the calls of all others together."""

    busiest: Sequence[UsageShare]
    others: int
    other_calls: int
    other_errors: int
    #: the oldest of the latest calls, if only those are counted
    latest_since: datetime | None


def points_statement(*, is_limited: bool) -> str:
    """Points from entries: $1 organization, $2 since when, $3 workspaces, $4 rows to read, $5 time between points."""
    return _POINTS.format(recent=_RECENT_OF_WORKSPACES if is_limited else _RECENT)


def points_of_statement(of: str) -> str:
    """Points of one `connector` or `client`: its id is $3, and the others are as for points."""
    return _POINTS.format(recent=_RECENT_OF.format(column={"connector": "connector_id", "client": "actor"}[of]))


def shares_statement(by: str, *, is_limited: bool) -> str:
    """Calls by `client`, `person`, `connector` or `workspace`; $1 to $4 as for points, $5 the caller or NULL if it sees
    all people and connectors, $6 maximum rows.
    """
    key, id_, name, join, seen = _BY[by]
    recent = _RECENT_OF_WORKSPACES if is_limited else _RECENT
    return _SHARES.format(recent=recent, key=key, id=id_, name=name, join=join, seen=seen)


def usage_shares(rows: Sequence[Any], calls: int) -> UsageShares:
    """The shares in rows of `shares_statement`, which counted so many calls at most."""
    busiest = [usage_share(row) for row in rows]
    if not rows:
        return UsageShares(busiest, 0, 0, 0, None)
    first = rows[0]
    return UsageShares(
        busiest,
        others=first["shares"] - len(rows),
        other_calls=first["all_calls"] - sum(each.calls for each in busiest),
        other_errors=first["all_errors"] - sum(each.errors for each in busiest),
        latest_since=first["oldest"] if first["read"] == calls else None,
    )


def usage_share(row: Any) -> UsageShare:
    """The share in a row of `shares_statement`."""
    return UsageShare(row["id"], row["name"], row["calls"], row["errors"])


def whole_step(step: int) -> tuple[int, int]:
    """The seconds that a row counts and those between points, rounded up to whole rows, for a step of 10 or more."""
    span = max(span for span in SPANS if span <= step)
    return span, -(-step // span) * span


def percentile(sums: Sequence[int], share: float) -> float | None:
    """The milliseconds within which that share of the calls ended, up to a tenth too many or too few.

    `sums` counts calls by bucket, each with those of all buckets before it; within a bucket they count as evenly
    distributed. None without calls.
    """
    if not sums or not sums[-1]:
        return None
    rank = share * sums[-1]
    bucket = bisect_left(sums, rank)
    before = sums[bucket - 1] if bucket else 0
    part = (rank - before) / (sums[bucket] - before)
    return round(_BEGINS[bucket] + part * (_BEGINS[bucket + 1] - _BEGINS[bucket]), 1)


def usage_point(row: Any) -> UsagePoint:
    """The point in a row of `USAGE`."""
    sums = list(accumulate(row["took"]))
    return UsagePoint(
        at=row["at"],
        calls=row["calls"],
        errors=row["errors"],
        p50_ms=percentile(sums, 0.5),
        p95_ms=percentile(sums, 0.95),
    )
