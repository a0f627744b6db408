"""Grants, codes, tokens and registered hosts in PostgreSQL. Codes and tokens are stored as hashes only."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID, uuid4

import asyncpg

from gateway.access.identity.model import Caller
from gateway.access.oauth_server.model import CodeRow, Grant, Host
from gateway.contract.oauth import AuthorizationRequest, GrantView, NewGrant
from gateway.errors import NotFound
from gateway.foundation.db.pool import Database
from gateway.foundation.db.pruning import prune

_INSERT_HOST = "INSERT INTO agent_hosts (id, name, redirect_uris) VALUES ($1, $2, $3)"
_HOST = "SELECT id::text, name, redirect_uris FROM agent_hosts WHERE id = $1"

# Blocks a suspension of the person until the grant is committed, so that the suspension finds it.
_LOCK_CLIENT = "SELECT id FROM clients WHERE id = $1 AND disabled_at IS NULL FOR SHARE"
_INSERT_GRANT = """
    INSERT INTO agent_grants (id, organization_id, client_id, host_id, host_name, scopes, workspaces, resource)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_INSERT_CODE = """
    INSERT INTO agent_codes (hash, organization_id, grant_id, redirect_uri, challenge, expires_at)
    VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
"""
_GRANT = """
    agent_grants.id, agent_grants.organization_id, agent_grants.client_id, agent_grants.host_id, agent_grants.scopes,
    agent_grants.resource
"""
# Locks the row, so that of concurrent requests with one code or token only the first finds it unused.
_USE_CODE = f"""
    WITH old AS (SELECT * FROM agent_codes WHERE hash = $1 FOR UPDATE)
    UPDATE agent_codes SET used_at = COALESCE(agent_codes.used_at, now())
    FROM old JOIN agent_grants ON agent_grants.id = old.grant_id AND agent_grants.organization_id = old.organization_id
    WHERE agent_codes.hash = old.hash AND agent_codes.organization_id = old.organization_id
    RETURNING {_GRANT}, agent_codes.redirect_uri, agent_codes.challenge,
              old.used_at IS NULL AND old.expires_at > now() AS is_good
"""
_USE_REFRESH_TOKEN = f"""
    WITH old AS (SELECT * FROM agent_refresh_tokens WHERE hash = $1 FOR UPDATE)
    UPDATE agent_refresh_tokens SET used_at = COALESCE(agent_refresh_tokens.used_at, now())
    FROM old JOIN agent_grants ON agent_grants.id = old.grant_id AND agent_grants.organization_id = old.organization_id
    WHERE agent_refresh_tokens.hash = old.hash AND agent_refresh_tokens.organization_id = old.organization_id
    RETURNING {_GRANT}, old.used_at IS NULL AND old.expires_at > now() AS is_good
"""
# Each use extends the refresh token, up to the end of its grant.
_INSERT_REFRESH_TOKEN = """
    INSERT INTO agent_refresh_tokens (hash, organization_id, grant_id, expires_at)
    SELECT $1, organization_id, id, LEAST(now() + make_interval(secs => $4), created_at + make_interval(secs => $5))
    FROM agent_grants WHERE organization_id = $2 AND id = $3
"""
_GRANT_OF_REFRESH_TOKEN = """
    SELECT agent_grants.organization_id, agent_grants.id
    FROM agent_refresh_tokens JOIN agent_grants ON agent_grants.id = grant_id
    WHERE hash = $1 AND host_id = $2
"""
_END_TOKEN = """
    WITH ended AS (
        DELETE FROM tokens USING agent_grants
        WHERE hash = $1 AND agent_grants.id = grant_id AND host_id = $2
        RETURNING tokens.client_id
    )
    SELECT client_id, pg_notify('gateway', 'client:' || client_id) FROM ended
"""
_INSERT_TOKEN = """
    INSERT INTO tokens (hash, client_id, grant_id, expires_at)
    VALUES ($1, $2, $3, now() + make_interval(secs => $4))
"""
_LIST_GRANTS = """
    SELECT agent_grants.id, agent_grants.client_id, clients.name AS client_name, host_id, host_name,
           agent_grants.scopes, agent_grants.workspaces, resource, agent_grants.created_at,
           (SELECT max(expires_at) FROM agent_refresh_tokens
            WHERE grant_id = agent_grants.id AND used_at IS NULL) AS expires_at
    FROM agent_grants JOIN clients ON clients.id = agent_grants.client_id
    WHERE agent_grants.organization_id = $1
      AND ($2::timestamptz IS NULL OR (agent_grants.created_at, agent_grants.id) < ($2, $3::uuid))
      AND ($5::text[] IS NULL OR agent_grants.workspaces <@ $5 OR clients.workspaces <@ $5)
      AND ($6::uuid IS NULL OR agent_grants.client_id = $6)
    ORDER BY agent_grants.created_at DESC, agent_grants.id DESC
    LIMIT $4
"""
# The deletion cascades to all its codes and tokens; processes that cached its tokens are notified.
_REVOKE = """
    WITH gone AS (
        DELETE FROM agent_grants USING clients
        WHERE agent_grants.organization_id = $1 AND agent_grants.id = $2 AND clients.id = client_id
          AND ($3::text[] IS NULL OR agent_grants.workspaces <@ $3 OR clients.workspaces <@ $3)
          AND ($4::uuid IS NULL OR client_id = $4)
        RETURNING client_id
    )
    SELECT client_id, pg_notify('gateway', 'client:' || client_id) FROM gone
"""
# Used codes and tokens stay until they expire, so that reuse is detected. A grant without refresh tokens has ended.
_PRUNE = (
    """
    WITH ended AS (
        SELECT hash FROM agent_codes WHERE expires_at < now() - interval '1 day'
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM agent_codes USING ended WHERE agent_codes.hash = ended.hash
    """,
    """
    WITH ended AS (
        SELECT hash FROM agent_refresh_tokens WHERE expires_at < now()
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM agent_refresh_tokens USING ended WHERE agent_refresh_tokens.hash = ended.hash
    """,
    """
    WITH ended AS (
        SELECT id FROM agent_grants WHERE created_at < now() - interval '1 day'
          AND NOT EXISTS (SELECT FROM agent_refresh_tokens WHERE grant_id = agent_grants.id)
        ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM agent_grants USING ended WHERE agent_grants.id = ended.id
    """,
    """
    WITH ended AS (
        SELECT id FROM agent_hosts WHERE created_at < now() - interval '90 days'
          AND NOT EXISTS (SELECT FROM agent_grants WHERE host_id = agent_hosts.id::text)
        ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM agent_hosts USING ended WHERE agent_hosts.id = ended.id
    """,
)


class AuthorizationStore:
    """The grants of people to hosts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, name: str, redirect_uris: tuple[str, ...]) -> Host:
        """Store a host that registers itself, under a new id."""
        host_id = uuid4()
        async with self._database.system() as connection:
            await connection.execute(_INSERT_HOST, host_id, name, list(redirect_uris))
        return Host(str(host_id), name, redirect_uris)

    async def host(self, host_id: UUID) -> Host | None:
        async with self._database.system() as connection:
            row = await connection.fetchrow(_HOST, host_id)
        return None if row is None else Host(row["id"], row["name"], tuple(row["redirect_uris"]))

    async def grant(
        self, request: AuthorizationRequest, caller: Caller, new: NewGrant, code_hash: bytes, seconds: float
    ) -> None:
        """Store a person's grant, and its code; raises NotFound if the person was suspended meanwhile."""
        grant_id = uuid4()
        async with self._database.tenant(caller.organization_id) as connection, connection.transaction():
            if await connection.fetchval(_LOCK_CLIENT, caller.client_id) is None:
                raise NotFound("there is no such person, or it is suspended")
            await connection.execute(
                _INSERT_GRANT,
                grant_id,
                caller.organization_id,
                caller.client_id,
                request.host_id,
                request.host_name,
                list(new.scopes),
                None if new.workspaces is None else list(new.workspaces),
                request.resource,
            )
            await connection.execute(
                _INSERT_CODE,
                code_hash,
                caller.organization_id,
                grant_id,
                request.redirect_uri,
                request.challenge,
                seconds,
            )

    async def use_code(self, code_hash: bytes) -> CodeRow | None:
        """Mark the code as used; None for an unknown code."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_USE_CODE, code_hash)
        if row is None:
            return None
        members = dict(row)
        is_good, redirect_uri, challenge = (members.pop(name) for name in ("is_good", "redirect_uri", "challenge"))
        return CodeRow(Grant(**members), redirect_uri, challenge, is_good)

    async def use_refresh_token(self, token_hash: bytes) -> tuple[Grant, bool] | None:
        """Mark the refresh token as used; returns its grant, and whether this is its first use before it expires."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_USE_REFRESH_TOKEN, token_hash)
        if row is None:
            return None
        members = dict(row)
        is_good = members.pop("is_good")
        return Grant(**members), is_good

    async def save_tokens(
        self,
        grant: Grant,
        access_hash: bytes,
        access_seconds: float,
        refresh_hash: bytes,
        refresh_seconds: float,
        grant_seconds: float,
    ) -> bool:
        """Store an access token and a refresh token of a grant; false if the grant was revoked meanwhile.

        Refresh tokens expire `grant_seconds` after the grant at the latest, even if they are used.
        """
        try:
            async with self._database.tenant(grant.organization_id) as connection, connection.transaction():
                await connection.execute(_INSERT_TOKEN, access_hash, grant.client_id, grant.id, access_seconds)
                await connection.execute(
                    _INSERT_REFRESH_TOKEN,
                    refresh_hash,
                    grant.organization_id,
                    grant.id,
                    refresh_seconds,
                    grant_seconds,
                )
        except asyncpg.ForeignKeyViolationError:
            return False
        return True

    async def grant_of_refresh_token(self, token_hash: bytes, host_id: str) -> tuple[UUID, UUID] | None:
        """Organization and grant of a host's refresh token."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_GRANT_OF_REFRESH_TOKEN, token_hash, host_id)
        return None if row is None else (row["organization_id"], row["id"])

    async def end_token(self, token_hash: bytes, host_id: str) -> UUID | None:
        """End a host's access token in all processes; returns the client for which it was issued, if it existed."""
        async with self._database.system() as connection:
            client_id: UUID | None = await connection.fetchval(_END_TOKEN, token_hash, host_id)
        return client_id

    async def grants(
        self,
        organization_id: UUID,
        after: tuple[datetime, UUID] | None,
        limit: int,
        workspaces: Collection[str] | None = None,
        client_id: UUID | None = None,
    ) -> Sequence[GrantView]:
        """The grants of an organization's people, newest first; `after` is the position of the previous page.

        `workspaces`: the names to which grants must be limited; `client_id`: the only person.
        """
        moment, last = after or (None, None)
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_LIST_GRANTS, organization_id, moment, last, limit, workspaces, client_id)
        return [GrantView(**{**row, "id": str(row["id"]), "client_id": str(row["client_id"])}) for row in rows]

    async def revoke(
        self,
        organization_id: UUID,
        grant_id: UUID,
        workspaces: Collection[str] | None = None,
        client_id: UUID | None = None,
    ) -> UUID | None:
        """Revoke a grant with all its tokens, in all processes at once.

        Returns the person's client; None for an unknown grant, one that is not limited to `workspaces`, and
        one of another person than `client_id`.
        """
        async with self._database.tenant(organization_id) as connection:
            arguments = (organization_id, grant_id, workspaces, client_id)
            ended: UUID | None = await connection.fetchval(_REVOKE, *arguments)
        return ended


async def prune_grants(database: Database) -> None:
    """Delete expired codes, tokens and grants, and hosts without a grant."""
    for statement in _PRUNE:
        await prune(database, statement)
