"""Stores the outcome of a token request in the connector's rows: in one transaction, guarded by version."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from gateway.connectors.consent.leases import LeaseStore, RenewalLease
from gateway.connectors.model import Secret
from gateway.connectors.store import ConnectorStore
from gateway.foundation.db.pool import Connection, Database
from gateway.upstream.challenges import MAX_SCOPES

# A connector with `needs_reauth` becomes active; a disabled one stays disabled.
_UPDATE_CONNECTOR = """
    UPDATE connectors
    SET environment = environment || $3::jsonb, updated_at = now(),
        status = CASE status WHEN 'disabled' THEN status ELSE 'active' END,
        status_reason = CASE status WHEN 'disabled' THEN status_reason END
    WHERE organization_id = $1 AND id = $2
      AND (status IN ('pending', 'needs_reauth') OR NOT environment @> $3::jsonb)
"""
_MARK_NEEDS_REAUTH = """
    UPDATE connectors SET status = 'needs_reauth', status_reason = $3, updated_at = now()
    WHERE organization_id = $1 AND id = $2 AND status = 'active'
"""
# Only scopes that are new are written. A server that asks for ever more of them is not believed.
_ASK_SCOPES = f"""
    UPDATE connectors
    SET asked_scopes = ARRAY(SELECT DISTINCT unnest(asked_scopes || $3::text[]) ORDER BY 1 LIMIT {MAX_SCOPES}),
        updated_at = now()
    WHERE organization_id = $1 AND id = $2 AND NOT asked_scopes @> $3::text[]
      AND cardinality(asked_scopes) < {MAX_SCOPES}
"""


class TokenPersistence:
    """Saves renewed credentials, and marks connectors whose grant is invalid.

    Both apply only to the version of the credentials that was sent. If another renewal, a new consent or a PATCH has
    replaced it meanwhile, callers get the replacement.
    """

    def __init__(self, database: Database, connectors: ConnectorStore, leases: LeaseStore) -> None:
        self._database = database
        self._connectors = connectors
        self._leases = leases

    async def save(
        self,
        lease: RenewalLease,
        credentials: Mapping[str, str],
        environment: Mapping[str, str],
        expires_at: datetime | None,
    ) -> Secret:
        """Commit the new credentials; returns the current ones, which another writer may have stored first."""
        organization_id, connector_id = lease.organization_id, lease.connector_id
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            current = await self._connectors.lock_secret(connection, organization_id, connector_id)
            if current.version != lease.version:
                return current
            await connection.execute(_UPDATE_CONNECTOR, organization_id, connector_id, json.dumps(dict(environment)))
            await self._connectors.seal_within(
                connection, organization_id, connector_id, credentials, expires_at, is_renewal=True
            )
            return await self._connectors.lock_secret(connection, organization_id, connector_id)

    async def mark_needs_reauth(self, lease: RenewalLease, reason: str) -> Secret | None:
        """Mark the connector `needs_reauth`; returns the newer credentials instead if the old ones were replaced."""
        organization_id, connector_id = lease.organization_id, lease.connector_id
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            current = await self._connectors.lock_secret(connection, organization_id, connector_id)
            if current.version != lease.version:
                return current
            await self._mark_needs_reauth(connection, organization_id, connector_id, reason)
            await self._leases.release_within(connection, lease, is_lost=False)
        return None

    async def refuse(self, organization_id: UUID, connector_id: UUID, version: int, reason: str) -> None:
        """Mark the connector `needs_reauth` because this version was refused, unless it was replaced."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            current = await self._connectors.lock_secret(connection, organization_id, connector_id)
            if current.version == version:
                await self._mark_needs_reauth(connection, organization_id, connector_id, reason)

    async def ask_scopes(self, organization_id: UUID, connector_id: UUID, scopes: Sequence[str]) -> None:
        """Note scopes that the application asks for; the connector stays active for calls that need fewer."""
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_ASK_SCOPES, organization_id, connector_id, list(scopes))

    async def _mark_needs_reauth(
        self, connection: Connection, organization_id: UUID, connector_id: UUID, reason: str
    ) -> None:
        await connection.execute(_MARK_NEEDS_REAUTH, organization_id, connector_id, reason)
