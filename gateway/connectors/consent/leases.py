"""The lease on the renewal of a connector's tokens: taken by compare-and-set in the row of its secret.

It is not a row lock, because the lock of `ConnectorStore.lock_secret` would hold a connection of the pool until the
application responds. A claim is one short statement, and expires `LEASE` seconds after the last heartbeat, by the
database's clock. The version of the credentials guards the final write, not the lease.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from gateway.foundation.db.pool import Connection, Database

#: seconds that a lease lasts without a heartbeat
LEASE = 10
#: seconds between heartbeats
HEARTBEAT = 3

# `refreshing_since` is set before the request is sent. An earlier value means that a response was lost.
_CLAIM = f"""
    WITH before AS (
        SELECT connector_id, refreshing_since FROM connector_secrets
        WHERE organization_id = $1 AND connector_id = $2 AND version = $3
          AND (refreshing_until IS NULL OR refreshing_until < now())
        FOR UPDATE SKIP LOCKED
    )
    UPDATE connector_secrets
    SET refreshing_by = $4, refreshing_until = now() + interval '{LEASE} seconds',
        refreshing_since = COALESCE(before.refreshing_since, now())
    FROM before WHERE connector_secrets.connector_id = before.connector_id
    RETURNING before.refreshing_since AS lost_since
"""
_EXTEND = f"""
    UPDATE connector_secrets SET refreshing_until = now() + interval '{LEASE} seconds'
    WHERE organization_id = $1 AND connector_id = $2 AND refreshing_by = $3
"""
# After a lost response `refreshing_since` stays set.
_RELEASE = """
    UPDATE connector_secrets
    SET refreshing_by = NULL, refreshing_until = NULL,
        refreshing_since = CASE WHEN $4::boolean THEN refreshing_since ELSE $5::timestamptz END
    WHERE organization_id = $1 AND connector_id = $2 AND refreshing_by = $3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalLease:
    """The temporary right to renew the tokens of a connector."""

    id: UUID
    organization_id: UUID
    connector_id: UUID
    #: the version of the credentials that may be renewed
    version: int
    #: when an earlier renewal began whose response was never stored
    lost_since: datetime | None


class LeaseStore:
    """The leases of renewals in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, organization_id: UUID, connector_id: UUID, version: int) -> RenewalLease | None:
        """Claim the lease; None if another process has it or the credentials have another version."""
        lease_id = uuid4()
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_CLAIM, organization_id, connector_id, version, lease_id)
        return row and RenewalLease(
            id=lease_id,
            organization_id=organization_id,
            connector_id=connector_id,
            version=version,
            lost_since=row["lost_since"],
        )

    async def extend(self, lease: RenewalLease) -> None:
        async with self._database.tenant(lease.organization_id) as connection:
            await connection.execute(_EXTEND, lease.organization_id, lease.connector_id, lease.id)

    async def release(self, lease: RenewalLease, *, is_lost: bool) -> None:
        """Release the lease; `is_lost` keeps `refreshing_since`, because the response may have been lost."""
        async with self._database.tenant(lease.organization_id) as connection:
            await self.release_within(connection, lease, is_lost=is_lost)

    async def release_within(self, connection: Connection, lease: RenewalLease, *, is_lost: bool) -> None:
        await connection.execute(
            _RELEASE, lease.organization_id, lease.connector_id, lease.id, is_lost, lease.lost_since
        )
