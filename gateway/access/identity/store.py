"""Organizations, clients, tokens and workspaces in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec

from gateway.access.identity.model import Caller, Client, Organization, PersonSession, Scope
from gateway.errors import Conflict, NotFound
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.where import OWNED_CONNECTORS

#: maximum people in the list of clients
MAX_LISTED_PEOPLE = 1000
#: tokens that one statement looks up
_BATCH = 500

_INSERT_ORGANIZATION = """
    INSERT INTO organizations (id, name) VALUES ($1, $2)
    RETURNING id, name, created_at, disabled_at
"""
_LIST_ORGANIZATIONS = "SELECT id, name, created_at, disabled_at FROM organizations ORDER BY created_at, id"
_DISABLE_ORGANIZATION = "UPDATE organizations SET disabled_at = COALESCE(disabled_at, now()) WHERE id = $1 RETURNING id"
# Workers stop running reads, queued jobs end when a worker claims them, and waiting callers are woken. Deletions
# continue. Jobs are locked in the order of their ids, as workers lock those that they run.
_CANCEL_SOME = """
    UPDATE jobs SET cancel_requested = true, next_attempt_at = CASE WHEN status = 'waiting' THEN now() END
    WHERE id = ANY (ARRAY(
        SELECT id FROM jobs
        WHERE {} = $1 AND status IN ('queued', 'waiting', 'running') AND NOT cancel_requested
          AND task NOT LIKE 'delete%'
        ORDER BY id FOR NO KEY UPDATE))
"""
_CANCEL_JOBS = _CANCEL_SOME.format("organization_id")
# Cached clients still have the organization.
_NOTIFY_CLIENTS = """
    SELECT pg_notify('gateway', 'client:' || client_id) FROM client_organizations WHERE organization_id = $1
"""

_INSERT_CLIENT = """
    INSERT INTO clients (id, name, secret_hashes, scopes, redirect_urls, workspaces) VALUES ($1, $2, $3, $4, $5, $6)
"""
_GRANT_ORGANIZATION = "INSERT INTO client_organizations (client_id, organization_id) VALUES ($1, $2)"

# Only people of a single organization are members of groups, so that a group gives no right elsewhere.
_OF_GROUPS = """
    FROM group_members JOIN groups
        ON groups.organization_id = group_members.organization_id AND groups.name = group_members.group_name
    WHERE group_members.client_id = clients.id
"""
#: the scopes that a client has by itself or by its groups
SCOPES = f"clients.scopes || ARRAY(SELECT unnest(groups.scopes) {_OF_GROUPS})"
#: why a client may no longer read an organization: of the columns with their ids; null if it may
LOSS = f"""
    CASE
        WHEN NOT EXISTS (SELECT FROM organizations WHERE organizations.id = {{0}} AND deletion_job IS NULL)
            THEN 'the organization was deleted'
        WHEN EXISTS (SELECT FROM organizations WHERE organizations.id = {{0}} AND disabled_at IS NOT NULL)
            THEN 'the organization was disabled'
        WHEN NOT EXISTS (SELECT FROM clients WHERE clients.id = {{1}}) THEN 'the client was deleted'
        WHEN EXISTS (SELECT FROM clients WHERE clients.id = {{1}} AND disabled_at IS NOT NULL)
            THEN 'the client was disabled'
        WHEN NOT EXISTS (SELECT FROM client_organizations AS own
                         WHERE own.organization_id = {{0}} AND own.client_id = {{1}})
            THEN 'the client no longer belongs to the organization'
        WHEN NOT EXISTS (SELECT FROM clients WHERE clients.id = {{1}} AND 'read' = ANY ({SCOPES}))
            THEN 'the client lost the scope read'
    END
"""
#: the workspaces that a client may see by itself or by its groups; null for all
WORKSPACES = f"""
    CASE WHEN clients.workspaces IS NOT NULL AND NOT EXISTS (SELECT {_OF_GROUPS} AND groups.workspaces IS NULL)
    THEN clients.workspaces || ARRAY(SELECT unnest(groups.workspaces) {_OF_GROUPS}) END
"""
# Disabled organizations are left out, so that no token is valid for them.
_CLIENTS = f"""
    SELECT clients.id, clients.name, clients.secret_hashes, {SCOPES} AS scopes, clients.redirect_urls,
           clients.delegate_for, clients.created_at, clients.disabled_at, {WORKSPACES} AS workspaces,
           EXISTS (SELECT FROM people WHERE people.client_id = clients.id) AS is_person,
           array_remove(array_agg(organizations.id), NULL) AS organization_ids,
           COALESCE(array_agg(organizations.id) FILTER (WHERE moving_since IS NOT NULL), '{{}}') AS moving
    FROM clients
    LEFT JOIN client_organizations ON client_organizations.client_id = clients.id
    LEFT JOIN organizations
        ON organizations.id = client_organizations.organization_id AND organizations.disabled_at IS NULL
"""
_LIST_CLIENTS = f"{_CLIENTS} GROUP BY clients.id ORDER BY clients.created_at, clients.id"
# An organization has a hundred thousand people, and their own list.
_CLIENTS_OF = f"""
    {_CLIENTS}
    WHERE clients.id IN (
        SELECT client_id FROM client_organizations AS acting
        WHERE organization_id = $1 AND NOT EXISTS (SELECT FROM people WHERE people.client_id = acting.client_id)
        UNION ALL
        (SELECT people.client_id
         FROM client_organizations JOIN people USING (client_id) JOIN clients AS person ON person.id = client_id
         WHERE organization_id = $1 ORDER BY person.created_at, person.id LIMIT $2))
    GROUP BY clients.id ORDER BY clients.created_at, clients.id
"""
_PROGRAMS_OF = f"""
    {_CLIENTS}
    WHERE clients.id IN (SELECT client_id FROM client_organizations WHERE organization_id = $1)
      AND clients.disabled_at IS NULL AND NOT EXISTS (SELECT FROM people WHERE people.client_id = clients.id)
    GROUP BY clients.id ORDER BY clients.created_at, clients.id
"""
_NAMES = """
    SELECT id, name FROM clients
    WHERE id = ANY ($2::uuid[]) AND id IN (SELECT client_id FROM client_organizations WHERE organization_id = $1)
"""
_CLIENT_BY_ID = f"{_CLIENTS} WHERE clients.id = $1 GROUP BY clients.id"
_DISABLE_CLIENT = "UPDATE clients SET disabled_at = COALESCE(disabled_at, now()) WHERE id = $1 RETURNING id"
# The newest comes first. Two are valid, so that one can be replaced while the other is in use.
_ROTATE_SECRET = """
    UPDATE clients
    SET secret_hashes = CASE WHEN $2::bytea IS NULL THEN secret_hashes[1:1] ELSE ARRAY[$2] || secret_hashes[1:1] END
    WHERE id = $1 AND NOT EXISTS (SELECT FROM people WHERE client_id = clients.id)
    RETURNING cardinality(secret_hashes)
"""
_END_SESSIONS_OF_CLIENT = "DELETE FROM console_sessions WHERE client_id = $1"
# The update notifies every process.
_CHANGE_DELEGATE_FOR = "UPDATE clients SET delegate_for = $2 WHERE id = $1 RETURNING id"
_UNKNOWN_GROUPS = """
    SELECT name FROM unnest($2::text[]) AS given (name)
    WHERE NOT EXISTS (SELECT FROM groups WHERE organization_id = $1 AND groups.name = given.name)
"""
_CHANGE_REDIRECT_URLS = "UPDATE clients SET redirect_urls = $2 WHERE id = $1 RETURNING id"
_NOTIFY_CLIENT = "SELECT pg_notify('gateway', 'client:' || $1::text)"
_DROP_TOKENS_OF_CLIENT = "DELETE FROM tokens WHERE client_id = $1"
_DROP_GRANTS_OF_CLIENT = "DELETE FROM agent_grants WHERE client_id = $1"
_END_SESSIONS_FOR_PEOPLE = "DELETE FROM person_sessions WHERE client_id = $1 OR person_id = $1"
_EXPIRE_LINKS_OF_CLIENT = """
    UPDATE connect_sessions SET expires_at = now()
    WHERE (client_id = $1 OR owner_id = $1) AND completed_at IS NULL AND expires_at > now()
"""
_EXPIRE_FLOWS_OF_CLIENT = """
    UPDATE oauth_flows SET expires_at = now()
    WHERE (client_id = $1 OR owner_id = $1) AND status = 'pending' AND expires_at > now()
"""
# What acts for a person without a token ends with the person; that of a program does not.
_IS_PERSON = "EXISTS (SELECT FROM people WHERE people.client_id = $1)"
_STOP_SCHEDULES_OF_PERSON = f"""
    UPDATE schedules SET is_enabled = false, next_run_at = NULL, updated_at = now()
    WHERE client_id = $1 AND is_enabled AND {_IS_PERSON}
"""
_STOP_WEBHOOKS_OF_PERSON = f"""
    UPDATE webhooks
    SET status = 'disabled', status_reason = 'the person who created it is suspended', updated_at = now()
    WHERE client_id = $1 AND status = 'active' AND {_IS_PERSON}
"""
_CANCEL_JOBS_OF_PERSON = f"{_CANCEL_SOME.format('client_id')} AND {_IS_PERSON}"
# An approver then learns at once that the call no longer waits; a worker cancels its job.
_SUPERSEDE_APPROVALS_OF_PERSON = f"""
    UPDATE approvals SET status = 'superseded'
    WHERE requested_by = $1 AND status IN ('pending', 'approved') AND released_at IS NULL AND {_IS_PERSON}
"""
# The update notifies every process.
_DISABLE_CONNECTORS_OF_PERSON = f"""
    UPDATE connectors SET status = 'disabled', status_reason = 'its owner is suspended', updated_at = now()
    WHERE owner_id = $1 AND deleted_at IS NULL AND status <> 'disabled' AND {_IS_PERSON}
"""
#: what ends when a client is disabled; nothing of it comes back with a person who is active again
_END_OF_CLIENT = (
    *(_DROP_TOKENS_OF_CLIENT, _DROP_GRANTS_OF_CLIENT, _END_SESSIONS_OF_CLIENT),
    *(_END_SESSIONS_FOR_PEOPLE, _EXPIRE_LINKS_OF_CLIENT, _EXPIRE_FLOWS_OF_CLIENT),
    # An approval is locked before its job, as where people decide.
    *(_STOP_SCHEDULES_OF_PERSON, _STOP_WEBHOOKS_OF_PERSON, _SUPERSEDE_APPROVALS_OF_PERSON),
    *(_CANCEL_JOBS_OF_PERSON, _DISABLE_CONNECTORS_OF_PERSON),
)

_IS_IN_NAMESPACE = "SELECT EXISTS (SELECT FROM people WHERE client_id = $1 AND namespace_id = $2)"

_INSERT_TOKEN = """
    INSERT INTO tokens (hash, client_id, expires_at, scopes, resource)
    VALUES ($1, $2, now() + make_interval(secs => $3), $4, $5)
"""
_REVOKE_TOKEN = """
    WITH revoked AS (DELETE FROM tokens WHERE hash = $1 AND client_id = $2 RETURNING client_id)
    SELECT pg_notify('gateway', 'client:' || client_id) FROM revoked
"""
# The token of a session is its person's, and was issued to the client that acts. The trigger notifies every process.
_END_SESSION_OF_TOKEN = """
    DELETE FROM person_sessions USING tokens
    WHERE tokens.hash = $1 AND person_sessions.id = tokens.session_id AND person_sessions.client_id = $2
"""
# A user of the client's own product, or a member of a group in its `delegate_for`: organization, client, person.
_MAY_ACT_FOR = """
    (EXISTS (SELECT FROM people WHERE people.client_id = {2} AND namespace_id = {1})
        OR EXISTS (
            SELECT FROM group_members JOIN clients ON clients.id = {1}
            WHERE organization_id = {0} AND client_id = {2} AND group_name = ANY (delegate_for)))
"""
_MAY_ACT = f"SELECT {_MAY_ACT_FOR.format('$1', '$2', '$3')}"
_OF_SESSION = tuple(f"person_sessions.{name}" for name in ("organization_id", "client_id", "person_id"))
# The trigger ends what the sessions began. One that came from an issuer's token needs no group.
_END_SESSIONS_WITHOUT_RIGHT = f"""
    DELETE FROM person_sessions
    WHERE organization_id = $1 AND ($2::uuid IS NULL OR client_id = $2)
      AND ($3::uuid[] IS NULL OR person_id = ANY ($3)) AND issuer_id IS NULL AND expires_at > now()
      AND NOT {_MAY_ACT_FOR.format(*_OF_SESSION)}
"""
# What tokens prove: the client, the limits of a grant or a session, and the client that acts in a session.
# Each subquery reads the rows of one client, with any statistics of the tables.
_PROVEN = f"""
    SELECT found.*, proven.*, acting.scopes AS acting_scopes, acting.workspaces AS acting_workspaces,
           acting.organization_ids AS acting_organization_ids,
           found.issuer_id IS NOT NULL OR {_MAY_ACT_FOR.format("found.organization_id", "acting.id", "proven.id")}
               AS may_act
    FROM found
    JOIN LATERAL ({_CLIENTS} WHERE clients.id = proven_id GROUP BY clients.id) AS proven ON proven.disabled_at IS NULL
    LEFT JOIN LATERAL ({_CLIENTS} WHERE clients.id = acting_id GROUP BY clients.id) AS acting
        ON acting.disabled_at IS NULL
"""
_LASTING_TOKENS = """
    SELECT tokens.hash, tokens.client_id AS proven_id, person_sessions.client_id AS acting_id, tokens.grant_id,
           extract(epoch FROM tokens.expires_at - now())::float8 AS seconds_left,
           coalesce(agent_grants.organization_id, person_sessions.organization_id) AS organization_id,
           coalesce(agent_grants.scopes, person_sessions.scopes, tokens.scopes) AS token_scopes,
           coalesce(agent_grants.workspaces, person_sessions.workspaces) AS token_workspaces,
           coalesce(agent_grants.resource, tokens.resource) AS resource,
           person_sessions.limits::text AS session, person_sessions.issuer_id
    FROM tokens LEFT JOIN agent_grants ON agent_grants.id = tokens.grant_id
    LEFT JOIN person_sessions ON person_sessions.id = tokens.session_id
    WHERE tokens.hash = ANY ($1::bytea[])
"""
_LASTING = f"WITH found AS MATERIALIZED ({_LASTING_TOKENS}) {_PROVEN}"
_TOKENS = f"WITH found AS MATERIALIZED ({_LASTING_TOKENS} AND tokens.expires_at > now()) {_PROVEN}"
# The session or the grant itself, of which a token may have expired.
_ORIGIN = f"""
    WITH found AS MATERIALIZED (
        SELECT NULL::bytea AS hash, person_id AS proven_id, client_id AS acting_id, NULL::uuid AS grant_id,
               0::float8 AS seconds_left, organization_id, scopes AS token_scopes, workspaces AS token_workspaces,
               NULL::text AS resource, limits::text AS session, issuer_id
        FROM person_sessions WHERE id = $1 AND expires_at > now()
        UNION ALL
        SELECT NULL, client_id, NULL, id, 0, organization_id, scopes, workspaces, resource, NULL, NULL
        FROM agent_grants WHERE id = $1
    )
    {_PROVEN}
"""
_LOSS = f"SELECT {LOSS.format('$1', '$2')}"

_WORKSPACE_ID = "SELECT id FROM workspaces WHERE organization_id = $1 AND name = $2"
# A workspace is created when it is first used; another caller may create or delete it meanwhile.
_CREATE_WORKSPACE = """
    INSERT INTO workspaces (organization_id, name, id) VALUES ($1, $2, $3)
    ON CONFLICT (organization_id, name) DO NOTHING RETURNING id
"""
_LIST_WORKSPACES = f"""
    SELECT workspaces.id, workspaces.name, workspaces.created_at,
           (SELECT count(*) FROM connectors
            WHERE connectors.workspace_id = workspaces.id AND connectors.deleted_at IS NULL
              AND {OWNED_CONNECTORS.format("$7")}) AS connectors
    FROM workspaces
    WHERE organization_id = $1 AND deletion_began_at IS NULL
      AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
      AND ($3::text IS NULL OR (name COLLATE "C", id) > ($3 COLLATE "C", $4::uuid))
      AND ($6::text[] IS NULL OR name = ANY ($6))
    ORDER BY name COLLATE "C", id
    LIMIT $5
"""
# The lock waits for connectors that are being created, and blocks new ones until the transaction ends.
_MARK_WORKSPACE_DELETED = """
    WITH old AS (
        SELECT id, name FROM workspaces
        WHERE organization_id = $1 AND id = $2 AND deletion_began_at IS NULL FOR UPDATE
    )
    UPDATE workspaces SET deletion_began_at = now(), deletion_job = $3, name = 'deleted ' || workspaces.id
    FROM old WHERE workspaces.id = old.id
    RETURNING old.name
"""
_LOCK_WORKSPACE = "SELECT id FROM workspaces WHERE organization_id = $1 AND id = $2 FOR UPDATE"
# A workspace that still has connectors stays.
_DELETE_WORKSPACE = """
    DELETE FROM workspaces
    WHERE organization_id = $1 AND id = $2 AND NOT EXISTS (SELECT FROM connectors WHERE workspace_id = workspaces.id)
"""


@dataclass(frozen=True, slots=True)
class StoredClient:
    """A client with the hashes of its secrets."""

    client: Client
    secret_hashes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A bearer token: what it proves, and for how long."""

    #: the client, or the person of a session, with the permissions of the token
    client: Client
    #: seconds until it expires
    seconds_left: float


def both(own: frozenset[str] | None, granted: Collection[str] | None) -> frozenset[str] | None:
    """The workspaces that both allow, such as a client and its grant; None for all."""
    if own is None or granted is None:
        return own if granted is None else frozenset(granted)
    return own & frozenset(granted)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A group of connectors, named by callers."""

    id: UUID
    name: str
    created_at: datetime
    connectors: int


class IdentityStore:
    """Organizations, clients, tokens and workspaces. Statements about clients and tokens span organizations; workspaces
    belong to a tenant.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens: Batcher[bytes, StoredToken | None] = Batcher(partial(self._read, _TOKENS), max_batch=_BATCH)
        self._lasting: Batcher[bytes, StoredToken | None] = Batcher(partial(self._read, _LASTING), max_batch=_BATCH)

    async def create_organization(self, name: str) -> Organization:
        async with self._database.system() as connection:
            try:
                row = await connection.fetchrow(_INSERT_ORGANIZATION, uuid4(), name)
            except asyncpg.UniqueViolationError as error:
                raise Conflict(f"there is an organization named {name!r} already") from error
        return Organization(**row)

    async def organizations(self) -> list[Organization]:
        async with self._database.system() as connection:
            return [Organization(**row) for row in await connection.fetch(_LIST_ORGANIZATIONS)]

    async def disable_organization(self, organization_id: UUID) -> None:
        """Refuse all clients of the organization and cancel its jobs; all processes are notified at once."""
        async with self._database.system() as connection, connection.transaction():
            if await connection.fetchval(_DISABLE_ORGANIZATION, organization_id) is None:
                raise NotFound(f"there is no organization {organization_id}")
            await connection.execute(_NOTIFY_CLIENTS, organization_id)
            await connection.execute(_CANCEL_JOBS, organization_id)

    async def create_client(
        self,
        name: str,
        organization_ids: Sequence[UUID],
        secret_hash: bytes,
        scopes: Sequence[str],
        redirect_urls: Sequence[str] = (),
        workspaces: Sequence[str] | None = None,
        client_id: UUID | None = None,
    ) -> UUID:
        """Create a client; `workspaces` are the names of those to which it is limited.

        Raises Conflict if a client has the given id.
        """
        client_id = client_id or uuid4()
        try:
            async with self._database.system() as connection, connection.transaction():
                await self.insert_client(
                    connection,
                    client_id,
                    name=name,
                    organization_ids=organization_ids,
                    secret_hashes=[secret_hash],
                    scopes=scopes,
                    redirect_urls=redirect_urls,
                    workspaces=workspaces,
                )
        except asyncpg.UniqueViolationError as error:
            raise Conflict("there is a client with this id already") from error
        return client_id

    async def insert_client(
        self,
        connection: Connection,
        client_id: UUID,
        name: str,
        organization_ids: Sequence[UUID],
        secret_hashes: Sequence[bytes],
        scopes: Sequence[str],
        redirect_urls: Sequence[str] = (),
        workspaces: Sequence[str] | None = None,
    ) -> None:
        """Add a client in the caller's transaction; raises NotFound."""
        await connection.execute(_INSERT_CLIENT, client_id, name, secret_hashes, scopes, redirect_urls, workspaces)
        try:
            await connection.executemany(_GRANT_ORGANIZATION, [(client_id, each) for each in organization_ids])
        except asyncpg.ForeignKeyViolationError as error:
            raise NotFound("there is no such organization") from error

    async def clients_of(self, organization_id: UUID) -> list[Client]:
        """The programs that may act for the organization and its oldest people, oldest first."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_CLIENTS_OF, organization_id, MAX_LISTED_PEOPLE)
        return [_client(row).client for row in rows]

    async def programs_of(self, organization_id: UUID) -> list[Client]:
        """The enabled clients of the organization that are no people, oldest first."""
        async with self._database.system() as connection:
            return [_client(row).client for row in await connection.fetch(_PROGRAMS_OF, organization_id)]

    async def names(self, organization_id: UUID, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """The names of those of these clients and people that are of the organization."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_NAMES, organization_id, list(ids))
        return {row["id"]: row["name"] for row in rows}

    async def all_clients(self) -> list[Client]:
        """The clients of all organizations, oldest first, for the operator."""
        async with self._database.system() as connection:
            return [_client(row).client for row in await connection.fetch(_LIST_CLIENTS)]

    async def client(self, client_id: UUID) -> StoredClient | None:
        async with self._database.system() as connection:
            row = await connection.fetchrow(_CLIENT_BY_ID, client_id)
        return _client(row) if row else None

    async def enabled_client(self, client_id: UUID) -> Client | None:
        """The client; None for one that is unknown or disabled."""
        stored = await self.client(client_id)
        return None if stored is None or stored.client.disabled_at is not None else stored.client

    async def caller(self, client_id: UUID, organization_id: UUID) -> Caller | None:
        """The client as a caller for the organization; None unless it is enabled and may act for the organization."""
        client = await self.enabled_client(client_id)
        return Caller(client, organization_id) if client and organization_id in client.organization_ids else None

    async def is_in_namespace(self, person_id: UUID, client_id: UUID) -> bool:
        """Whether the person is a user of the client's product."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_IS_IN_NAMESPACE, person_id, client_id))

    async def may_act_for(self, organization_id: UUID, client_id: UUID, person_id: UUID) -> bool:
        """Whether the client may open sessions for the person."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_MAY_ACT, organization_id, client_id, person_id))

    async def disable_client(self, client_id: UUID) -> None:
        """Disable the client and end its tokens, grants, console sessions, connect links and consents, and those
        schedules, webhooks, jobs, approvals and own connectors that are a person's; all processes are notified at once.
        """
        async with self._database.system() as connection, connection.transaction():
            await self.disable_client_within(connection, client_id)

    async def disable_client_within(self, connection: Connection, client_id: UUID) -> None:
        """The same in the caller's own transaction; raises NotFound."""
        if await connection.fetchval(_DISABLE_CLIENT, client_id) is None:
            raise NotFound(f"there is no client {client_id}")
        for statement in _END_OF_CLIENT:
            await connection.execute(statement, client_id)

    async def client_within(self, connection: Connection, client_id: UUID) -> Client:
        """The client as the caller's own transaction has changed it."""
        return _client(await connection.fetchrow(_CLIENT_BY_ID, client_id)).client

    async def change_delegate_for(self, organization_id: UUID, client_id: UUID, groups: Sequence[str]) -> Sequence[str]:
        """Replace the groups for whose members the client may open sessions, in every process at once; returns the
        names that are no groups, with which nothing is changed.
        """
        async with self._database.system() as connection, connection.transaction():
            unknown = [row["name"] for row in await connection.fetch(_UNKNOWN_GROUPS, organization_id, groups)]
            if not unknown and await connection.fetchval(_CHANGE_DELEGATE_FOR, client_id, groups) is None:
                raise NotFound(f"there is no client {client_id}")
            await self.end_sessions_within(connection, organization_id, client_id=client_id)
        return unknown

    async def end_sessions_within(
        self,
        connection: Connection,
        organization_id: UUID,
        *,
        client_id: UUID | None = None,
        people: Collection[UUID] | None = None,
    ) -> None:
        """End the sessions of this client, or for these people, in which the client may no longer act, with what they
        began; all without both.
        """
        await connection.execute(_END_SESSIONS_WITHOUT_RIGHT, organization_id, client_id, people)

    async def change_redirect_urls(self, client_id: UUID, redirect_urls: Sequence[str]) -> None:
        """Replace the client's redirect URLs; all processes are notified at once."""
        async with self._database.system() as connection, connection.transaction():
            if await connection.fetchval(_CHANGE_REDIRECT_URLS, client_id, redirect_urls) is None:
                raise NotFound(f"there is no client {client_id}")
            await connection.execute(_NOTIFY_CLIENT, str(client_id))

    async def rotate_secret(self, client_id: UUID, secret_hash: bytes | None) -> int:
        """Add a secret, or with None revoke all but the newest; returns the number of valid secrets.

        Revoking secrets ends the client's console sessions, which may have begun with one of them.
        """
        async with self._database.system() as connection, connection.transaction():
            live = await connection.fetchval(_ROTATE_SECRET, client_id, secret_hash)
            if live is None:
                raise NotFound(f"there is no client {client_id} that has secrets")
            if secret_hash is None:
                await connection.execute(_END_SESSIONS_OF_CLIENT, client_id)
        return int(live)

    async def save_token(
        self,
        token_hash: bytes,
        client_id: UUID,
        seconds: int,
        scopes: Collection[str] | None = None,
        resource: str | None = None,
    ) -> None:
        """Add a token; without `scopes` it has all scopes of its client, without `resource` all URLs accept it."""
        async with self._database.system() as connection:
            await self.save_token_within(connection, token_hash, client_id, seconds, scopes, resource)

    async def save_token_within(
        self,
        connection: Connection,
        token_hash: bytes,
        client_id: UUID,
        seconds: int,
        scopes: Collection[str] | None = None,
        resource: str | None = None,
    ) -> None:
        """The same in the caller's own transaction."""
        granted = None if scopes is None else list(scopes)
        await connection.execute(_INSERT_TOKEN, token_hash, client_id, seconds, granted, resource)

    async def revoke_token(self, token_hash: bytes, client_id: UUID) -> None:
        """Delete a token, if it is that client's, or end the session for a person whose token it is; all processes are
        notified at once.
        """
        async with self._database.system() as connection, connection.transaction():
            await connection.execute(_END_SESSION_OF_TOKEN, token_hash, client_id)
            await connection.execute(_REVOKE_TOKEN, token_hash, client_id)

    async def token(self, token_hash: bytes) -> StoredToken | None:
        """What a token proves; None for a token that is unknown or expired, whose client is disabled, or in whose
        session the client may no longer act. Concurrent calls share one statement.
        """
        return await self._tokens(token_hash)

    async def lasting(self, token_hash: bytes) -> Client | None:
        """The client of a token that was valid, with its permissions now; None if the token was revoked, as `token`.

        A token that has expired is accepted until its row is deleted.
        """
        token = await self._lasting(token_hash)
        return None if token is None else token.client

    async def of_origin(self, origin_id: UUID) -> Client | None:
        """The client of an open session or of a grant, with its permissions; None if it has ended."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_ORIGIN, origin_id)
        token = None if row is None else _token(row)
        return None if token is None else token.client

    async def _read(self, statement: str, hashes: Sequence[bytes]) -> Sequence[StoredToken | None]:
        async with self._database.system() as connection:
            rows = await connection.fetch(statement, hashes)
        by_hash = {row["hash"]: _token(row) for row in rows}
        return [by_hash.get(each) for each in hashes]

    async def loss(self, caller: Caller) -> str | None:
        """Why the caller may no longer read its organization; None if it may."""
        async with self._database.system() as connection:
            reason: str | None = await connection.fetchval(_LOSS, caller.organization_id, caller.client_id)
        return reason

    async def workspace_named(self, organization_id: UUID, name: str) -> UUID:
        """The id of the workspace of that name, which is created if it does not exist."""
        async with self._database.tenant(organization_id) as connection:
            workspace_id: UUID | None = await connection.fetchval(_WORKSPACE_ID, organization_id, name)
            while workspace_id is None:
                workspace_id = await connection.fetchval(_CREATE_WORKSPACE, organization_id, name, uuid4())
                workspace_id = workspace_id or await connection.fetchval(_WORKSPACE_ID, organization_id, name)
        return workspace_id

    async def workspaces(
        self,
        organization_id: UUID,
        name_contains: str | None,
        after: tuple[str, UUID] | None,
        limit: int,
        names: Collection[str] | None = None,
        person_id: UUID | None = None,
    ) -> list[Workspace]:
        """Workspaces by name; `names` are those to which the result is limited. Of personal connectors only those of
        the person are counted.
        """
        after_name, after_id = after or (None, None)
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(
                _LIST_WORKSPACES, organization_id, name_contains, after_name, after_id, limit, names, person_id
            )
        return [Workspace(**row) for row in rows]

    async def lock_workspace(self, connection: Connection, organization_id: UUID, workspace_id: UUID) -> None:
        """Block new connectors of the workspace, and its deletion by others, until the transaction ends."""
        await connection.execute(_LOCK_WORKSPACE, organization_id, workspace_id)

    async def mark_workspace_deleted(
        self, connection: Connection, organization_id: UUID, workspace_id: UUID, job_id: UUID
    ) -> str:
        """Mark the workspace for deletion by that job, in the caller's transaction.

        Returns its name; raises NotFound.
        """
        name = await connection.fetchval(_MARK_WORKSPACE_DELETED, organization_id, workspace_id, job_id)
        if name is None:
            raise NotFound("there is no such workspace")
        return str(name)

    async def delete_workspace(self, organization_id: UUID, workspace_id: UUID) -> None:
        """Delete a workspace that has no connectors."""
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_DELETE_WORKSPACE, organization_id, workspace_id)


def _client(row: Any) -> StoredClient:
    client = Client(
        id=row["id"],
        name=row["name"],
        organization_ids=frozenset(row["organization_ids"]),
        scopes=frozenset(row["scopes"]),
        redirect_urls=tuple(row["redirect_urls"]),
        created_at=row["created_at"],
        disabled_at=row["disabled_at"],
        is_person=row["is_person"],
        delegate_for=tuple(row["delegate_for"]),
        workspaces=None if row["workspaces"] is None else frozenset(row["workspaces"]),
        moving=frozenset(row["moving"]),
    )
    return StoredClient(client, tuple(row["secret_hashes"]))


def _token(row: Any) -> StoredToken | None:
    """The token of a row; None if the client of its session may no longer act."""
    own = _client(row).client
    client = replace(
        own,
        scopes=own.scopes if row["token_scopes"] is None else own.scopes & set(row["token_scopes"]),
        workspaces=both(own.workspaces, row["token_workspaces"]),
        resource=row["resource"],
        token_hash=row["hash"],
        grant_id=row["grant_id"],
    )
    if row["organization_id"] is not None:
        client = replace(client, organization_ids=own.organization_ids & {row["organization_id"]})
    if row["session"] is not None:
        if not row["may_act"] or Scope.DELEGATE not in (row["acting_scopes"] or ()):
            return None
        client = replace(
            client,
            # A session may open narrower ones.
            scopes=(client.scopes & set(row["acting_scopes"])) | {Scope.DELEGATE},
            organization_ids=client.organization_ids & set(row["acting_organization_ids"]),
            workspaces=both(client.workspaces, row["acting_workspaces"]),
            session=msgspec.json.decode(row["session"], type=PersonSession),
        )
    return StoredToken(client, row["seconds_left"])
