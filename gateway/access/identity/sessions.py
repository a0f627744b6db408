"""Sessions in PostgreSQL: what a client may do for a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from gateway.access.identity.model import Caller, PersonSession, Scope
from gateway.errors import NotFound
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.where import Where

#: maximum sessions of an organization that are open at a time
MAX_SESSIONS = 100_000

# Blocks a suspension of the person or the client until the session is committed, so that the suspension finds it.
_LOCK = """
    SELECT count(*) FROM (SELECT FROM clients WHERE id = ANY ($1::uuid[]) AND disabled_at IS NULL FOR SHARE) AS locked
"""
_COUNT = """
    SELECT count(*) FROM (
        SELECT FROM person_sessions WHERE organization_id = $1 AND expires_at > now() LIMIT $2) AS open
"""
# A session ends with the one in which it was opened.
_INSERT = """
    INSERT INTO person_sessions (id, organization_id, client_id, person_id, parent_id, scopes, workspaces, limits,
                                 link_id, issuer_id, expires_at)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10,
           LEAST(now() + make_interval(secs => $11), (SELECT expires_at FROM person_sessions WHERE id = $5))
    RETURNING expires_at
"""
_INSERT_TOKEN = """
    INSERT INTO tokens (hash, client_id, session_id, expires_at, resource)
    SELECT $1, person_id, id, expires_at, $3 FROM person_sessions WHERE id = $2
"""
_SECONDS_LEFT = """
    SELECT extract(epoch FROM expires_at - now())::float8 FROM person_sessions
    WHERE organization_id = $1 AND id = $2 AND expires_at > now()
"""
_SELECT = """
    SELECT person_sessions.id, person_sessions.client_id, acting.name AS client_name, person_id,
           person.name AS person_name, parent_id, person_sessions.scopes, person_sessions.workspaces,
           limits::text AS limits, person_sessions.created_at, person_sessions.expires_at
    FROM person_sessions
    JOIN clients AS acting ON acting.id = person_sessions.client_id
    JOIN clients AS person ON person.id = person_id
"""
_DESCENDANTS = """
    person_sessions.id IN (
        WITH RECURSIVE opened AS (
            SELECT id FROM person_sessions AS nested WHERE parent_id = {}
            UNION SELECT nested.id FROM person_sessions AS nested JOIN opened ON parent_id = opened.id
        )
        SELECT id FROM opened
    )
"""
# The trigger ends what the sessions began, also of those that were opened in it.
_END = "DELETE FROM person_sessions WHERE organization_id = $1 AND id = $2 RETURNING person_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session with the names of the client and the person."""

    id: UUID
    client_id: UUID
    client_name: str
    person_id: UUID
    person_name: str
    parent_id: UUID | None
    scopes: Sequence[str]
    workspaces: Sequence[str] | None
    limits: PersonSession
    created_at: datetime
    expires_at: datetime


class SessionStore:
    """The sessions of organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_full(self, connection: Connection, organization_id: UUID) -> bool:
        """Whether the organization has as many open sessions as it may have."""
        return bool(await connection.fetchval(_COUNT, organization_id, MAX_SESSIONS) >= MAX_SESSIONS)

    async def insert(
        self,
        connection: Connection,
        organization_id: UUID,
        session: PersonSession,
        *,
        person_id: UUID,
        parent_id: UUID | None,
        scopes: Sequence[str],
        workspaces: Sequence[str] | None,
        link_id: UUID | None,
        token_hash: bytes,
        resource: str | None = None,
        seconds: int,
    ) -> datetime | None:
        """Add a session and its token in the caller's transaction; returns when it ends.

        None if the client, the person or the session in which it is opened has ended meanwhile.
        """
        if await connection.fetchval(_LOCK, [session.client_id, person_id]) != 2:
            return None
        limits = msgspec.json.encode(session).decode()
        members = (organization_id, session.client_id, person_id, parent_id, scopes, workspaces, limits, link_id)
        try:
            expires_at: datetime = await connection.fetchval(_INSERT, session.id, *members, session.issuer_id, seconds)
        except asyncpg.ForeignKeyViolationError:
            return None
        await connection.execute(_INSERT_TOKEN, token_hash, session.id, resource)
        return expires_at

    async def seconds_left(self, organization_id: UUID, session_id: UUID) -> float | None:
        """Seconds until the session ends; None if it has ended."""
        async with self._database.tenant(organization_id) as connection:
            seconds: float | None = await connection.fetchval(_SECONDS_LEFT, organization_id, session_id)
        return seconds

    async def find(
        self,
        caller: Caller,
        *,
        before: tuple[datetime, UUID] | None,
        limit: int,
        session_id: UUID | None = None,
        person_id: UUID | None = None,
    ) -> Sequence[StoredSession]:
        """The open sessions that the caller sees, the newest first.

        An administrator sees all within the own workspaces, a client those that it opened, a person those in which a
        client acts for the person, and a session those that were opened in it. `person_id`: only those for this person.
        """
        where = Where()
        where.add("person_sessions.organization_id = {} AND expires_at > now()", caller.organization_id)
        where.add("person_sessions.id = {}", session_id)
        where.add("person_id = {}", person_id)
        if caller.session is not None:
            where.add(_DESCENDANTS, caller.session.id)
        elif Scope.ADMIN in caller.client.scopes:
            where.add("person_sessions.workspaces <@ {}::text[]", caller.client.workspaces)
        else:
            where.add("(person_sessions.client_id = {} OR person_id = {})", caller.client_id, caller.client_id)
        where.add("(person_sessions.created_at, person_sessions.id) < ({}, {})", *(before or (None, None)))
        find = f"""
            {_SELECT} WHERE {where.text}
            ORDER BY person_sessions.created_at DESC, person_sessions.id DESC LIMIT {where.argument(limit)}
        """
        async with self._database.tenant(caller.organization_id) as connection:
            return [_stored(row) for row in await connection.fetch(find, *where.arguments)]

    async def end(self, caller: Caller, session_id: UUID, *, person_id: UUID | None = None) -> UUID:
        """End a session that the caller sees, with those that were opened in it, in every process at once; raises
        NotFound. Returns the person's id.
        """
        if not await self.find(caller, before=None, limit=1, session_id=session_id, person_id=person_id):
            raise NotFound("there is no such session")
        async with self._database.tenant(caller.organization_id) as connection:
            ended: UUID | None = await connection.fetchval(_END, caller.organization_id, session_id)
        if ended is None:
            raise NotFound("there is no such session")
        return ended


def _stored(row: Any) -> StoredSession:
    return StoredSession(**{**row, "limits": msgspec.json.decode(row["limits"], type=PersonSession)})
