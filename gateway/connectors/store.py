"""Connector records and their sealed credentials in PostgreSQL; the tenant is an argument of every look-up."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack, get_type_hints
from uuid import UUID, uuid4

import msgspec

from gateway.connectors.model import (
    CHANGED_COLUMNS,
    COLUMNS,
    ConnectorChange,
    ConnectorRecord,
    NewConnector,
    SealedSecret,
    Secret,
    binding,
    binding_of,
    changed_columns,
    name_taken,
    record_in,
    references_in,
    sealed_in,
    with_secret,
    without_values_of_references,
)
from gateway.connectors.secret_values import SecretValues
from gateway.contract.connectors import ConnectorSelection, ConnectorSettings, ConnectorStatus
from gateway.errors import InternalError, NotFound
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.aio.turns import mapped
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import readable, require_readable
from gateway.foundation.db.where import OWNED_CONNECTORS, Where
from gateway.foundation.vault.vault import Binding, Vault

#: connectors that one statement looks up
_BATCH = 500

_FROM = "FROM connectors JOIN workspaces ON workspaces.id = connectors.workspace_id"

_INSERTED = ", ".join(
    (
        "id",
        "organization_id",
        "workspace_id",
        "kind",
        "status",
        "auth_method",
        "environment",
        "owner_id",
        *get_type_hints(ConnectorSettings),
    )
)
_INSERT = f"""
    WITH inserted AS (
        INSERT INTO connectors ({_INSERTED})
        SELECT {_INSERTED} FROM jsonb_populate_record(NULL::connectors, $1::jsonb) RETURNING *
    )
    SELECT {COLUMNS} FROM inserted AS connectors JOIN workspaces ON workspaces.id = connectors.workspace_id
"""
_NEW_ACCOUNT = "UPDATE connectors SET account_id = gen_random_uuid() WHERE organization_id = $1 AND id = $2"
_SEAL = """
    INSERT INTO connector_secrets (connector_id, organization_id, key_id, wrapped_key, sealed, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (connector_id) DO UPDATE
    SET key_id = EXCLUDED.key_id, wrapped_key = EXCLUDED.wrapped_key, sealed = EXCLUDED.sealed,
        expires_at = EXCLUDED.expires_at, version = connector_secrets.version + 1, updated_at = now(),
        refreshing_by = NULL, refreshing_until = NULL, refreshing_since = NULL
"""
# Rows of several organizations; the caller checks the organization of each. These conditions use the index with any
# statistics of the tables; a join with the keys would not.
_OPEN = f"""
    SELECT {COLUMNS}, key_id, wrapped_key, sealed, expires_at, version
    {_FROM} LEFT JOIN connector_secrets ON connector_id = connectors.id
    WHERE connectors.organization_id = ANY($1::uuid[]) AND connectors.id = ANY($2::uuid[]) AND deleted_at IS NULL
"""
_LIST = f"SELECT {COLUMNS} {_FROM} WHERE {{conditions}} ORDER BY connectors.created_at, connectors.id LIMIT {{limit}}"
_CONTAINING = """
    (strpos(lower(connectors.name), lower({0}::text)) > 0 OR strpos(lower(workspaces.name), lower({0}::text)) > 0)
"""
# The names of the workspaces to which a caller is limited; null for all.
_IN_WORKSPACES = """
    ({0}::text[] IS NULL OR workspace_id IN (SELECT id FROM workspaces WHERE organization_id = $1 AND name = ANY ({0})))
"""
# A few of each kind, so that an organization with thousands of connectors costs no more.
_LATEST_OF_EACH_KIND = f"""
    SELECT {COLUMNS} {_FROM}
    WHERE connectors.organization_id = $1 AND connectors.id IN (
        SELECT id FROM (
            SELECT id, row_number() OVER (PARTITION BY kind ORDER BY owner_id IS NULL, created_at DESC, id) AS place
            FROM connectors
            WHERE organization_id = $1 AND deleted_at IS NULL AND {_IN_WORKSPACES.format("$3")}
              AND {OWNED_CONNECTORS.format("$4")}
        ) AS placed
        WHERE place <= $2
    )
    ORDER BY connectors.kind, connectors.created_at, connectors.id
"""
# The status as callers see it; the argument has the kinds that are served, null if all are.
_STATUS = """
    (CASE WHEN connectors.status <> 'disabled' AND connectors.kind <> ALL ({}::text[])
     THEN 'unserved' ELSE connectors.status END)
"""
_COUNT = f"""
    SELECT {_STATUS.format("$3")} AS status, count(*) AS connectors FROM connectors
    WHERE organization_id = $1 AND deleted_at IS NULL AND {_IN_WORKSPACES.format("$2")}
      AND {OWNED_CONNECTORS.format("$4")}
    GROUP BY 1
"""
_COUNT_BY_KIND = "SELECT kind, count(*) AS connectors FROM connectors WHERE deleted_at IS NULL GROUP BY kind"
_SECRET = """
    SELECT key_id, wrapped_key, sealed, expires_at, version, kind, environment::text AS environment
    FROM connector_secrets JOIN connectors ON connectors.id = connector_id
    WHERE connector_secrets.organization_id = $1 AND connector_id = $2
"""
# Blocks every other refresh of the same connector until the transaction ends. It is always locked before the
# connector's own row.
_LOCK_SECRET = """
    SELECT connector_id FROM connector_secrets WHERE organization_id = $1 AND connector_id = $2 FOR UPDATE
"""
_BOUND_TO = "SELECT kind, environment::text AS environment FROM connectors WHERE organization_id = $1 AND id = $2"
# Columns that the object does not have keep their values.
_UPDATE = f"""
    UPDATE connectors
    SET updated_at = now(), ({", ".join(CHANGED_COLUMNS)}) = (
        SELECT {", ".join(CHANGED_COLUMNS)} FROM jsonb_populate_record(connectors, $3::jsonb)
    )
    WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
    RETURNING id
"""
# A disabled connector stays disabled.
_ACTIVATE = """
    UPDATE connectors SET status = 'active', status_reason = NULL
    WHERE organization_id = $1 AND id = $2 AND status <> 'disabled'
"""
# Callers no longer see the connector; the job that deletes it still finds the row.
_MARK_DELETED = """
    UPDATE connectors SET deleted_at = now(), deletion_job = $3
    WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
    RETURNING id
"""
_OF_OTHERS = """
    SELECT EXISTS (
        SELECT FROM connectors WHERE organization_id = $1 AND workspace_id = $2 AND deleted_at IS NULL
          AND owner_id IS NOT NULL AND owner_id IS DISTINCT FROM $3::uuid)
"""
_MARK_ALL_DELETED = """
    UPDATE connectors SET deleted_at = now(), deletion_job = $3
    WHERE organization_id = $1 AND workspace_id = $2 AND deleted_at IS NULL
"""
_MARK_OWNED_DELETED = """
    UPDATE connectors SET deleted_at = now(), deletion_job = $3
    WHERE organization_id = $1 AND owner_id = $2 AND deleted_at IS NULL
"""
# Blocks the deletion of the workspace until the connector is committed, so that the deletion finds it.
_LOCK_WORKSPACE = """
    SELECT name FROM workspaces WHERE organization_id = $1 AND id = $2 AND deletion_began_at IS NULL FOR SHARE
"""
# Blocks the suspension and the deletion of the person until the connector is committed, so that they find it.
_LOCK_OWNER = "SELECT id FROM clients WHERE id = $1 AND disabled_at IS NULL FOR SHARE"
# Blocks new connectors of the workspace, and its deletion, until the transaction ends.
_LOCK_NAMES = """
    SELECT id FROM workspaces WHERE organization_id = $1 AND id = $2 AND deletion_began_at IS NULL FOR NO KEY UPDATE
"""
_NAMED = """
    SELECT id FROM connectors
    WHERE organization_id = $1 AND workspace_id = $2 AND name = $3 AND deleted_at IS NULL
      AND owner_id IS NOT DISTINCT FROM $4::uuid
    ORDER BY created_at, id
"""
_GET_WITHIN = f"SELECT {COLUMNS} {_FROM} WHERE connectors.organization_id = $1 AND connectors.id = $2"
_DELETED_OF_WORKSPACE = """
    SELECT id FROM connectors WHERE organization_id = $1 AND workspace_id = $2 AND deleted_at IS NOT NULL ORDER BY id
"""
_DELETED_OF_OWNER = """
    SELECT id FROM connectors WHERE organization_id = $1 AND owner_id = $2 AND deleted_at IS NOT NULL ORDER BY id
"""
_DELETE = "DELETE FROM connectors WHERE organization_id = $1 AND id = $2"


#: an organization's id, and that of a connector of it
_Ids = tuple[UUID, UUID]
_RecordAndSecret = tuple[ConnectorRecord, SealedSecret | None]


class ConnectorStore:
    """Connector records and their credentials, which are sealed in the database; `secrets` reads referenced ones."""

    def __init__(self, database: Database, vault: Vault, secrets: SecretValues | None = None) -> None:
        self._database = database
        self._vault = vault
        self._secrets = secrets
        self._opening: Batcher[_Ids, _RecordAndSecret | InternalError | None] = Batcher(
            self._open_all, max_batch=_BATCH
        )

    async def create(
        self, organization_id: UUID, new: NewConnector, *, unique_name: str | None = None
    ) -> ConnectorRecord:
        """Create a connector; raises NotFound if its workspace is being deleted, Conflict if `unique_name` is taken."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            if unique_name is not None:
                await connection.execute(_LOCK_NAMES, organization_id, new.workspace_id)
                taken = await connection.fetch(_NAMED, organization_id, new.workspace_id, unique_name, new.owner_id)
                if taken:
                    raise name_taken(unique_name, [row["id"] for row in taken])
            return await self.create_within(connection, organization_id, new)

    async def create_within(self, connection: Connection, organization_id: UUID, new: NewConnector) -> ConnectorRecord:
        """Create a connector in the caller's transaction; raises NotFound if the workspace is being deleted, or
        the owner was suspended or deleted.
        """
        if await connection.fetchval(_LOCK_WORKSPACE, organization_id, new.workspace_id) is None:
            raise NotFound("the workspace was deleted meanwhile")
        if new.owner_id is not None and await connection.fetchval(_LOCK_OWNER, new.owner_id) is None:
            raise NotFound("the person was suspended or deleted meanwhile")
        columns = {
            "id": uuid4(),
            "organization_id": organization_id,
            "workspace_id": new.workspace_id,
            "kind": new.kind,
            "status": ConnectorStatus.ACTIVE,
            "auth_method": new.auth_method,
            "environment": dict(new.environment),
            "owner_id": new.owner_id,
            **new.settings,
        }
        record = record_in(await connection.fetchrow(_INSERT, _json(columns)))
        bound_to = binding(organization_id, record.id, record.kind, record.environment)
        await self._seal(connection, bound_to, new.credentials, new.expires_at)
        return record

    async def seal_within(
        self,
        connection: Connection,
        organization_id: UUID,
        connector_id: UUID,
        credentials: Mapping[str, str],
        expires_at: datetime | None = None,
        *,
        is_renewal: bool = False,
    ) -> None:
        """Replace the credentials in the caller's transaction; by a renewal, with those of the same account.

        The credentials are bound to the connector's kind and variables, so these are written first.
        """
        row = await connection.fetchrow(_BOUND_TO, organization_id, connector_id)
        if row is None:
            raise NotFound("there is no such connector")
        await self._seal(connection, binding_of(organization_id, connector_id, row), credentials, expires_at)
        if not is_renewal:
            await connection.execute(_NEW_ACCOUNT, organization_id, connector_id)

    async def _seal(
        self, connection: Connection, bound_to: Binding, credentials: Mapping[str, str], expires_at: datetime | None
    ) -> None:
        sealed = self._vault.seal(without_values_of_references(credentials), bound_to)
        ids = bound_to.owner_id, bound_to.organization_id
        await connection.execute(_SEAL, *ids, sealed.key_id, sealed.wrapped_key, sealed.sealed, expires_at)

    def require_newest_key(self) -> None:
        """Raise Unavailable while no credentials can be sealed, so that none are requested that cannot be stored."""
        self._vault.require_newest()

    async def get(self, organization_id: UUID, connector_id: UUID) -> ConnectorRecord:
        """The record; raises NotFound, also for a connector of another organization."""
        return (await self.open(organization_id, connector_id))[0]

    async def open(self, organization_id: UUID, connector_id: UUID) -> tuple[ConnectorRecord, SealedSecret | None]:
        """The record with its sealed credentials; raises NotFound, and InternalError for a row that cannot be read.

        Concurrent calls share one statement.
        """
        found = await self._opening((organization_id, connector_id))
        if found is None:
            raise NotFound("there is no such connector")
        return require_readable(found)

    async def _open_all(self, keys: Sequence[_Ids]) -> Sequence[_RecordAndSecret | InternalError | None]:
        organizations, connectors = zip(*keys, strict=True)
        async with self._database.system() as connection:
            rows = await connection.fetch(_OPEN, set(organizations), connectors)
        by_key = {(row["organization_id"], row["id"]): readable(row, with_secret, "a connector") for row in rows}
        return [by_key.get(key) for key in keys]

    async def get_deleted(self, organization_id: UUID, connector_id: UUID) -> ConnectorRecord:
        """The record, even if its deletion has begun, for the job that deletes it."""
        async with self._database.tenant(organization_id) as connection:
            return await self.get_within(connection, organization_id, connector_id)

    async def get_within(self, connection: Connection, organization_id: UUID, connector_id: UUID) -> ConnectorRecord:
        """The record in the caller's transaction, even if its deletion has begun; raises NotFound."""
        row = await connection.fetchrow(_GET_WITHIN, organization_id, connector_id)
        if row is None:
            raise NotFound("there is no such connector")
        return record_in(row)

    async def find(
        self,
        organization_id: UUID,
        selection: ConnectorSelection,
        *,
        after: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
    ) -> Sequence[ConnectorRecord]:
        """Matching records in the order of their creation; all of them without a limit."""
        return (await self.find_as_of(organization_id, selection, after=after, limit=limit))[0]

    async def find_as_of(
        self,
        organization_id: UUID,
        selection: ConnectorSelection,
        *,
        after: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
    ) -> tuple[Sequence[ConnectorRecord], datetime | None]:
        """The records of `find`, and the time of which they are, if a replica was read."""
        where = Where()
        where.add("connectors.organization_id = {} AND deleted_at IS NULL", organization_id)
        if not selection.with_personal:
            where.require(OWNED_CONNECTORS, selection.person_id)
        where.add("connectors.owner_id = {}", selection.owner_id)
        where.add("workspaces.name = {}", selection.workspace_name)
        where.add("workspaces.name = ANY ({}::text[])", selection.workspaces)
        where.add("connectors.name = {}", selection.name)
        where.add("connectors.kind = {}", selection.kind)
        if selection.served is None:
            where.add("connectors.status = {}", selection.status)
        else:
            where.add(f"{_STATUS} = {{}}", selection.served, selection.status)
        where.add(_CONTAINING, selection.containing)
        where.add("connectors.id = ANY ({}::uuid[])", selection.ids)
        where.add("(connectors.created_at, connectors.id) > ({}, {})", *(after or (None, None)))
        find = _LIST.format(conditions=where.text, limit=where.argument(limit))
        rows, as_of = await self._database.read(
            organization_id, lambda connection: connection.fetch(find, *where.arguments)
        )
        return await mapped(record_in, rows), as_of

    async def latest_of_each_kind(
        self,
        organization_id: UUID,
        limit: int,
        workspaces: Collection[str] | None = None,
        person_id: UUID | None = None,
    ) -> Sequence[ConnectorRecord]:
        """The latest records of each kind, the person's own first, at most `limit` of one kind, in the order of their
        creation.
        """
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_LATEST_OF_EACH_KIND, organization_id, limit, workspaces, person_id)
        return [record_in(row) for row in rows]

    async def count(
        self,
        organization_id: UUID,
        workspaces: Collection[str] | None = None,
        served: Collection[str] | None = None,
        person_id: UUID | None = None,
    ) -> dict[ConnectorStatus, int]:
        """The number of connectors by status; those of kinds that are not in `served` are `unserved`."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_COUNT, organization_id, workspaces, served, person_id)
        return dict.fromkeys(ConnectorStatus, 0) | {ConnectorStatus(row["status"]): row["connectors"] for row in rows}

    async def count_by_kind(self) -> dict[str, int]:
        """The number of connectors of all organizations, by kind."""
        async with self._database.system() as connection:
            return {row["kind"]: row["connectors"] for row in await connection.fetch(_COUNT_BY_KIND)}

    async def secret(self, organization_id: UUID, connector_id: UUID) -> Secret:
        """The current credentials, ready for use; raises NotFound, and the errors of `SecretValues.resolved`."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_SECRET, organization_id, connector_id)
        return await self._with_values(organization_id, self._secret_in(organization_id, connector_id, row))

    async def unsealed(self, record: ConnectorRecord, secret: SealedSecret | None) -> Secret:
        """The credentials that were read with the record, or the current ones if none were; raises as `secret` does."""
        if secret is None:
            return await self.secret(record.organization_id, record.id)
        bound = binding(record.organization_id, record.id, record.kind, record.environment)
        opened = Secret(
            values=self._vault.open(secret.sealed, bound),
            expires_at=secret.expires_at,
            version=secret.version,
            kind=record.kind,
            environment=record.environment,
        )
        return await self._with_values(record.organization_id, opened)

    async def _with_values(self, organization_id: UUID, secret: Secret) -> Secret:
        if self._secrets is None or not references_in(secret.values):
            return secret
        return replace(secret, values=await self._secrets.resolved(organization_id, secret.values))

    def forget_values(self, organization_id: UUID, urls: Iterable[str]) -> None:
        """Read the secrets of these references again on their next use."""
        if self._secrets is not None:
            self._secrets.forget(organization_id, urls)

    async def lock_secret(self, connection: Connection, organization_id: UUID, connector_id: UUID) -> Secret:
        """The credentials as they are stored, locked until the caller's transaction ends."""
        await self.lock(connection, organization_id, connector_id)
        row = await connection.fetchrow(_SECRET, organization_id, connector_id)
        return self._secret_in(organization_id, connector_id, row)

    async def lock(self, connection: Connection, organization_id: UUID, connector_id: UUID) -> None:
        """Lock the credentials without opening them, for a caller that replaces them."""
        await connection.execute(_LOCK_SECRET, organization_id, connector_id)

    def _secret_in(self, organization_id: UUID, connector_id: UUID, row: Any) -> Secret:
        if row is None:
            raise NotFound("there is no such connector")
        values = self._vault.open(sealed_in(row), binding_of(organization_id, connector_id, row))
        return Secret(
            values=values,
            expires_at=row["expires_at"],
            version=row["version"],
            kind=row["kind"],
            environment=json.loads(row["environment"]),
        )

    async def update(self, organization_id: UUID, connector_id: UUID, **change: Unpack[ConnectorChange]) -> None:
        """Change the given members in one transaction; raises NotFound."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            await self.update_within(connection, organization_id, connector_id, change)

    async def update_within(
        self, connection: Connection, organization_id: UUID, connector_id: UUID, change: ConnectorChange
    ) -> None:
        """The same in the caller's own transaction. New credentials make a connector active, unless it is disabled or
        the change says its status.
        """
        credentials, expires_at = change.get("credentials"), change.get("expires_at")
        is_renewed = credentials is not None and change.get("status") is None
        if credentials is None and "environment" in change:  # sealed credentials are bound to the variables
            current = await self.lock_secret(connection, organization_id, connector_id)
            credentials, expires_at = current.values, current.expires_at
        elif credentials is not None:
            await self.lock(connection, organization_id, connector_id)
        columns = _json(changed_columns(change))
        if await connection.fetchval(_UPDATE, organization_id, connector_id, columns) is None:
            raise NotFound("there is no such connector")
        if is_renewed:
            await connection.execute(_ACTIVATE, organization_id, connector_id)
        if credentials is not None:
            await self.seal_within(connection, organization_id, connector_id, credentials, expires_at)

    async def mark_deleted(
        self, connection: Connection, organization_id: UUID, connector_id: UUID, job_id: UUID
    ) -> None:
        """Mark the connector for deletion by that job, in the caller's own transaction; raises NotFound."""
        if await connection.fetchval(_MARK_DELETED, organization_id, connector_id, job_id) is None:
            raise NotFound("there is no such connector")

    async def has_of_others(
        self, connection: Connection, organization_id: UUID, workspace_id: UUID, person_id: UUID | None
    ) -> bool:
        """Whether a workspace has personal connectors of other people."""
        return bool(await connection.fetchval(_OF_OTHERS, organization_id, workspace_id, person_id))

    async def mark_all_deleted(
        self, connection: Connection, organization_id: UUID, workspace_id: UUID, job_id: UUID
    ) -> None:
        """Mark all connectors of a workspace for deletion, in the caller's own transaction."""
        await connection.execute(_MARK_ALL_DELETED, organization_id, workspace_id, job_id)

    async def mark_owned_deleted(
        self, connection: Connection, organization_id: UUID, owner_id: UUID, job_id: UUID
    ) -> None:
        """Mark all connectors of a person for deletion, in the caller's own transaction."""
        await connection.execute(_MARK_OWNED_DELETED, organization_id, owner_id, job_id)

    async def deleted_of_owner(self, organization_id: UUID, owner_id: UUID) -> Sequence[UUID]:
        """The connectors of a person whose deletion began."""
        async with self._database.tenant(organization_id) as connection:
            return [row["id"] for row in await connection.fetch(_DELETED_OF_OWNER, organization_id, owner_id)]

    async def delete(self, organization_id: UUID, connector_id: UUID) -> None:
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_DELETE, organization_id, connector_id)

    async def deleted_of(self, organization_id: UUID, workspace_id: UUID) -> Sequence[UUID]:
        """The connectors of a workspace whose deletion began."""
        async with self._database.tenant(organization_id) as connection:
            return [row["id"] for row in await connection.fetch(_DELETED_OF_WORKSPACE, organization_id, workspace_id)]


def _json(columns: Mapping[str, Any]) -> str:
    """Columns as the argument of `jsonb_populate_record`."""
    return msgspec.json.encode(columns).decode()
