"""Metered calls: what clients used, as events that a biller reads.

A call is metered by the entry at its end, in the transaction that puts this entry into the hash chain: usage is what
the audit log proves. The counts of an hour become events when the hour is over. An event never changes; entries that
come later make another event of the same hour, so that the sum of all events is exact.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database

#: how long after its end an hour becomes events: entries of calls are stored within seconds
_GRACE = timedelta(minutes=2)
#: how long a write may have no settlement until it is counted as unknown
_UNSETTLED = timedelta(days=1)
#: the number of the advisory lock of the hash chain and of events: any number that all gateways agree on
LOCK = 0x73656131
#: events that one statement makes
_BATCH = 1000

# A write whose caller left before it was answered may have been done.
_COUNTS = """
    count(*) FILTER (WHERE entry.effect <> 'read') AS writes,
    count(*) FILTER (WHERE entry.outcome = 'succeeded') AS succeeded,
    count(*) FILTER (WHERE entry.outcome <> 'succeeded' AND NOT {unknown}) AS failed,
    count(*) FILTER (WHERE {unknown}) AS unknown
""".format(unknown="(entry.outcome IN ('unknown', 'interrupted') AND entry.effect <> 'read')")
# In a session the client that acts, and the person.
_BY = """
    date_trunc('hour', entry.at, 'UTC'), COALESCE(entry.acting_client, entry.actor), people.client_id, workspaces.name
"""
_JOINS = """
    LEFT JOIN people ON people.client_id = entry.actor
    LEFT JOIN connectors ON connectors.id = entry.connector_id
    LEFT JOIN workspaces ON workspaces.id = connectors.workspace_id
"""
_ADD = """
    INSERT INTO usage_open AS open (organization_id, hour, client_id, person_id, workspace_name, writes, succeeded,
                                    failed, unknown)
    SELECT * FROM counted ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (organization_id, hour, client_id, person_id, workspace_name) DO UPDATE
    SET writes = open.writes + EXCLUDED.writes, succeeded = open.succeeded + EXCLUDED.succeeded,
        failed = open.failed + EXCLUDED.failed, unknown = open.unknown + EXCLUDED.unknown
"""
#: counts the calls that ended, of entries by their ids
COUNT_ENDED = f"""
    WITH counted AS (
        SELECT entry.organization_id, {_BY}, {_COUNTS}
        FROM audit AS entry {_JOINS}
        WHERE entry.id = ANY ($1::bigint[]) AND entry.effect IS NOT NULL AND entry.entry_kind <> 'intent'
          AND entry.outcome <> 'accepted'
          AND NOT EXISTS (SELECT FROM usage_unknown WHERE usage_unknown.call_id = entry.call_id)
        GROUP BY 1, 2, 3, 4, 5
    )
    {_ADD}
"""
WAIT_FOR_LOCK = "SELECT pg_advisory_xact_lock($1)"
# $1: before when they began.
_COUNT_UNSETTLED = f"""
    WITH unsettled AS (
        INSERT INTO usage_unknown (call_id, organization_id, at)
        SELECT audit_unsettled.call_id, audit_unsettled.organization_id, audit.at
        FROM audit_unsettled JOIN audit ON audit.id = audit_id
        WHERE audit.at < $1 AND audit.effect IS NOT NULL
          AND NOT EXISTS (SELECT FROM usage_unknown WHERE usage_unknown.call_id = audit_unsettled.call_id)
        RETURNING call_id
    ), counted AS (
        SELECT entry.organization_id, {_BY}, count(*) AS writes, 0 AS succeeded, 0 AS failed, count(*) AS unknown
        FROM unsettled JOIN audit AS entry ON entry.call_id = unsettled.call_id AND entry.entry_kind = 'intent' {_JOINS}
        GROUP BY 1, 2, 3, 4, 5
    )
    {_ADD}
"""
# The id follows from what the event counts and how many of the same were published before, so that a gateway that was
# restored from a backup publishes an hour again under the same ids. An imported event that has the id holds up nothing.
_PUBLISH = """
    WITH ended AS (
        DELETE FROM usage_open WHERE ctid = ANY (ARRAY(SELECT ctid FROM usage_open WHERE hour < $1 LIMIT $2))
        RETURNING *
    )
    INSERT INTO usage_events (id, organization_id, hour, client_id, person_id, workspace_name, writes, succeeded,
                              failed, unknown)
    SELECT CASE WHEN EXISTS (SELECT FROM usage_events AS other WHERE other.id = event_id)
                THEN gen_random_uuid() ELSE event_id END,
           organization_id, hour, client_id, person_id, workspace_name, writes, succeeded, failed, unknown
    FROM ended CROSS JOIN LATERAL (
        SELECT md5(json_build_array(organization_id, extract(epoch FROM hour), client_id, person_id, workspace_name, (
            SELECT count(*) FROM usage_events AS former
            WHERE former.organization_id = ended.organization_id AND former.hour = ended.hour
              AND (former.client_id, former.person_id, former.workspace_name)
                  IS NOT DISTINCT FROM (ended.client_id, ended.person_id, ended.workspace_name)
        ))::text)::uuid AS event_id
    ) AS named
    ORDER BY organization_id, hour, workspace_name, client_id, person_id
    RETURNING number
"""
_FIND = """
    SELECT number, id, hour, client_id, person_id, workspace_name, writes, succeeded, failed, unknown FROM usage_events
    WHERE organization_id = $1 AND number > $2 AND ($3::timestamptz IS NULL OR hour >= $3)
      AND ($4::text[] IS NULL OR workspace_name = ANY ($4))
    ORDER BY number LIMIT $5
"""
#: for `prune`: events stay for a hundred days, and what was counted as unknown as long as its settlement may come
PRUNE_EVENTS = """
    DELETE FROM usage_events WHERE number IN (
        SELECT number FROM usage_events WHERE published_at < now() - interval '100 days' LIMIT $1
    )
"""
PRUNE_UNKNOWN = """
    DELETE FROM usage_unknown WHERE call_id IN (
        SELECT call_id FROM usage_unknown WHERE at < now() - interval '100 days'
          AND NOT EXISTS (SELECT FROM audit_unsettled WHERE audit_unsettled.call_id = usage_unknown.call_id) LIMIT $1
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HourUsed:
    """The calls of one client, for one person, in one workspace, that ended in one hour."""

    number: int
    id: UUID
    hour: datetime
    client_id: UUID | None
    #: the person who called, or for whom the client called
    person_id: UUID | None
    #: None if the connector was deleted meanwhile
    workspace_name: str | None
    writes: int
    succeeded: int
    failed: int
    #: writes that may have been done
    unknown: int


class Metering:
    """The usage events of organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def publish(self, now: datetime | None = None) -> None:
        """Make events of the hours that are over, and count the writes that have had no settlement for a day.

        No entry enters the chain meanwhile, so that no write is counted twice. One process after the other numbers
        events, so that none appears before another that was read already.
        """
        now = now or CLOCK.now()
        before, is_more = now - timedelta(hours=1) - _GRACE, True
        while is_more:
            async with self._database.system() as connection, connection.transaction():
                await connection.execute(WAIT_FOR_LOCK, LOCK)
                await connection.execute(_COUNT_UNSETTLED, now - _UNSETTLED)
                is_more = len(await connection.fetch(_PUBLISH, before, _BATCH)) == _BATCH

    async def find(
        self,
        organization_id: UUID,
        *,
        after: int,
        since: datetime | None = None,
        workspaces: Collection[str] | None = None,
        limit: int,
    ) -> Sequence[HourUsed]:
        """Events after a number, in order; of `workspaces` alone for a limited caller."""
        names = None if workspaces is None else list(workspaces)
        async with self._database.tenant(organization_id) as connection:
            rows: Sequence[Any] = await connection.fetch(_FIND, organization_id, after, since, names, limit)
        return [HourUsed(**row) for row in rows]
