"""Connect sessions in PostgreSQL: a token is stored as its hash and is valid for one connector."""

from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.contract.connectors import ConnectSession, SessionStatus
from gateway.errors import Conflict, NotFound
from gateway.foundation.db.pool import Connection, Database

_INSERT = """
    INSERT INTO connect_sessions (id, organization_id, client_id, workspace_name, kinds, redirect_url, reauthorizes,
                                  token_hash, expires_at, owner_id, session_id, connector_name)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + make_interval(secs => $9), $10, $11, $12)
    RETURNING expires_at
"""
_COLUMNS = """
    id, organization_id, client_id, workspace_name, kinds, redirect_url, reauthorizes, flow_id, expires_at,
    CASE WHEN completed_at IS NOT NULL THEN 'completed' WHEN expires_at <= now() THEN 'expired' ELSE 'pending' END
        AS status,
    connector_id, owner_id, session_id, connector_name
"""
_BY_TOKEN = f"SELECT {_COLUMNS} FROM connect_sessions WHERE token_hash = $1"
_BY_ID = f"SELECT {_COLUMNS} FROM connect_sessions WHERE organization_id = $1 AND id = $2"
_IS_OPEN = "organization_id = $1 AND id = $2 AND completed_at IS NULL"
_SET_FLOW = f"""
    WITH former AS (
        SELECT id, flow_id FROM connect_sessions WHERE {_IS_OPEN} AND expires_at > now() FOR NO KEY UPDATE
    )
    UPDATE connect_sessions SET flow_id = $3 FROM former WHERE connect_sessions.id = former.id
    RETURNING former.flow_id
"""
# Compare-and-set: of concurrent forms, one creates or changes the connector. The expiry is not checked again, because
# the session may expire during the request to the application.
_COMPLETE = f"UPDATE connect_sessions SET completed_at = now(), connector_id = $3 WHERE {_IS_OPEN} RETURNING flow_id"
_PRUNE = "DELETE FROM connect_sessions WHERE expires_at < now() - interval '7 days'"


class ConnectSessionStore:
    """Sessions by organization and id, or by the hash of their token."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        session_id: UUID,
        organization_id: UUID,
        client_id: UUID,
        workspace_name: str,
        kinds: tuple[str, ...],
        redirect_url: str | None,
        reauthorizes: UUID | None,
        token_hash: bytes,
        seconds: int,
        owner_id: UUID | None,
        within: UUID | None,
        connector_name: str | None,
    ) -> datetime:
        """Store a session, which was created `within` a session for a person or not; returns when it expires."""
        async with self._database.tenant(organization_id) as connection:
            expires_at: datetime = await connection.fetchval(
                _INSERT,
                session_id,
                organization_id,
                client_id,
                workspace_name,
                list(kinds),
                redirect_url,
                reauthorizes,
                token_hash,
                seconds,
                owner_id,
                within,
                connector_name,
            )
        return expires_at

    async def get(self, organization_id: UUID, session_id: UUID) -> ConnectSession:
        """The session; raises NotFound, also for a session of another organization."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_BY_ID, organization_id, session_id)
        if row is None:
            raise NotFound("there is no such connect session")
        return _session(row)

    async def by_token(self, token_hash: bytes) -> ConnectSession | None:
        """The session of a link in any state; None for an unknown token."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_BY_TOKEN, token_hash)
        return row and _session(row)

    async def set_flow(self, session: ConnectSession, flow_id: UUID) -> UUID | None:
        """Store the latest consent and return the one that it replaces; raises Conflict if the link was used."""
        async with self._database.tenant(session.organization_id) as connection:
            row = await connection.fetchrow(_SET_FLOW, session.organization_id, session.id, flow_id)
        if row is None:
            raise Conflict("the link was used or has expired")
        former: UUID | None = row["flow_id"]
        return former

    async def complete(self, connection: Connection, session: ConnectSession, connector_id: UUID) -> UUID | None:
        """Complete the link within the transaction that changes the connector; raises Conflict if it was used.

        Returns the id of the latest consent of the link, if there is one.
        """
        row = await connection.fetchrow(_COMPLETE, session.organization_id, session.id, connector_id)
        if row is None:
            raise Conflict("the link was used already")
        flow_id: UUID | None = row["flow_id"]
        return flow_id


async def prune_connect_sessions(database: Database) -> None:
    """Delete sessions a week after they expired."""
    async with database.system() as connection:
        await connection.execute(_PRUNE)


def _session(row: Any) -> ConnectSession:
    members = dict(row)
    return ConnectSession(
        **{**members, "kinds": tuple(members["kinds"]), "status": SessionStatus(members["status"])},
    )
