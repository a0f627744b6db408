"""Hooks with their sealed secrets, the notices of the last days, and the changes that they report."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.context_store.notices.model import Hook
from gateway.context_store.notices.notice import NoticedChange
from gateway.context_store.sync.schedule import IS_FREE
from gateway.errors import NotFound
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault
from gateway.jobs.tasks import SYNCHRONIZE

#: maximum entities and records of one statement
_MAX = 200
#: maximum records of an entity that are read one by one; beyond, its list is read
_MAX_RECORDS = 50

_MEMBERS = "hook.id, hook.organization_id, hook.connector_id, hook.handshake_until, hook.created_at"
_SEALED = "hook.key_id, hook.wrapped_key, hook.sealed"
# A notice has only the id of the hook, so this is the only look-up without a tenant.
_FIND = f"""
    SELECT {_MEMBERS}, {_SEALED}, connectors.kind, NULL::timestamptz AS last_notice_at
    FROM inbound_hooks AS hook JOIN connectors ON connectors.id = hook.connector_id
    JOIN organizations ON organizations.id = hook.organization_id AND organizations.disabled_at IS NULL
    WHERE hook.id = $1 AND connectors.deleted_at IS NULL
"""
_OF_CONNECTOR = f"""
    SELECT {_MEMBERS}, {_SEALED}, connectors.kind,
           (SELECT max(received_at) FROM inbound_notices WHERE hook_id = hook.id) AS last_notice_at
    FROM inbound_hooks AS hook JOIN connectors ON connectors.id = hook.connector_id
    WHERE hook.organization_id = $1 AND hook.connector_id = $2 AND connectors.deleted_at IS NULL
"""
_INSERT = """
    INSERT INTO inbound_hooks (id, organization_id, connector_id, handshake_until, key_id, wrapped_key, sealed)
    VALUES ($1, $2, $3, now(), $4, $5, $6) ON CONFLICT (connector_id) DO NOTHING
"""
_LOCK = f"""
    SELECT {_SEALED} FROM inbound_hooks AS hook WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE
"""
_SEAL = """
    UPDATE inbound_hooks SET key_id = $3, wrapped_key = $4, sealed = $5 WHERE organization_id = $1 AND id = $2
"""
_EXPECT_HANDSHAKE = """
    UPDATE inbound_hooks SET handshake_until = now() + make_interval(secs => $3) WHERE organization_id = $1 AND id = $2
"""
_DELETE = "DELETE FROM inbound_hooks WHERE organization_id = $1 AND connector_id = $2 RETURNING id"
# A repeated notice changes nothing. Many notices of a record or an entity are one row, which a synchronization deletes;
# an entity whose list will be read, because many of its records have changed, gets one row more for all others.
_STORE = f"""
    WITH stored AS (
        INSERT INTO inbound_notices (hook_id, digest, organization_id) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING RETURNING hook_id
    ), many AS (
        SELECT entity FROM (SELECT DISTINCT unnest($5::text[]) AS entity) AS named
        WHERE (SELECT count(*) FROM (
            SELECT FROM inbound_changes AS pending
            WHERE pending.connector_id = $4 AND pending.entity = named.entity LIMIT {_MAX_RECORDS + 1}
        ) AS counted) > {_MAX_RECORDS}
    ), changed AS (
        INSERT INTO inbound_changes (connector_id, entity, record_id, organization_id)
        SELECT DISTINCT $4::uuid, entity, CASE WHEN many.entity IS NULL THEN record_id ELSE '' END, $3::uuid
        FROM stored, unnest($5::text[], $6::text[]) AS change (entity, record_id) LEFT JOIN many USING (entity)
        ON CONFLICT (connector_id, entity, record_id) DO UPDATE SET noticed_at = clock_timestamp()
    )
    SELECT EXISTS (SELECT FROM stored)
"""
# Changes stay while a job synchronizes their entity, because it may have read the record before the change. A failed
# run is tried again when its error allows it. The pause limits the runs that a stream of notices causes.
_BRING_FORWARD = f"""
    WITH free AS (
        SELECT e.id, change.connector_id, change.entity
        FROM (
            SELECT connector_id, entity, min(noticed_at) AS noticed_at,
                   row_number() OVER (PARTITION BY organization_id ORDER BY min(noticed_at)) AS turn
            FROM inbound_changes
            GROUP BY organization_id, connector_id, entity HAVING bool_or(record_id = '') OR count(*) > {_MAX_RECORDS}
        ) AS change JOIN context_entities AS e USING (connector_id, entity)
        WHERE {IS_FREE} ORDER BY change.turn, change.noticed_at LIMIT {_MAX} FOR NO KEY UPDATE OF e SKIP LOCKED
    ), forward AS (
        UPDATE context_entities AS e
        SET next_sync_at = LEAST(next_sync_at, GREATEST(now(), last_synced_at + make_interval(secs => $1)))
        FROM free WHERE e.id = free.id AND e.status <> 'failed' AND e.next_sync_at IS NOT NULL
    )
    DELETE FROM inbound_changes AS change USING free
    WHERE change.connector_id = free.connector_id AND change.entity = free.entity
    RETURNING change.connector_id, change.entity
"""
# A connector has one job that reads records; the next job reads all records that change meanwhile. Organizations take
# turns, so that many changes of one do not delay the others'.
_TAKE_RECORDS = f"""
    WITH waiting AS (
        SELECT change.*, row_number() OVER (PARTITION BY organization_id ORDER BY noticed_at) AS turn
        FROM inbound_changes AS change
        WHERE record_id <> '' AND NOT EXISTS (
            SELECT FROM jobs WHERE jobs.connector_id = change.connector_id AND task = '{SYNCHRONIZE.name}'
              AND action = 'get' AND jobs.status IN ('queued', 'running', 'waiting'))
    ), taken AS (
        SELECT change.connector_id, change.entity, change.record_id
        FROM inbound_changes AS change JOIN waiting USING (connector_id, entity, record_id)
        ORDER BY turn, waiting.noticed_at LIMIT {_MAX} FOR UPDATE OF change SKIP LOCKED
    )
    DELETE FROM inbound_changes AS change USING taken
    WHERE (change.connector_id, change.entity, change.record_id)
        = (taken.connector_id, taken.entity, taken.record_id)
    RETURNING change.organization_id, change.connector_id, change.entity, change.record_id
"""
#: for `prune`
PRUNE = """
    WITH old AS (
        SELECT hook_id, digest FROM inbound_notices WHERE received_at < now() - interval '7 days'
        ORDER BY received_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM inbound_notices AS notice USING old WHERE notice.hook_id = old.hook_id AND notice.digest = old.digest
"""
# Changes of entities that are not synchronized would stay: their connector is disabled, or copies are switched off.
PRUNE_CHANGES = """
    WITH old AS (
        SELECT connector_id, entity, record_id FROM inbound_changes WHERE noticed_at < now() - interval '7 days'
        LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM inbound_changes AS change USING old
    WHERE (change.connector_id, change.entity, change.record_id) = (old.connector_id, old.entity, old.record_id)
"""


def binding(organization_id: UUID, hook_id: UUID) -> Binding:
    """The associated data of a hook's secrets."""
    return Binding(organization_id, hook_id, "inbound hook")


class ChangedRecords(msgspec.Struct, frozen=True):
    """Records of a connector that notices named."""

    organization_id: UUID
    connector_id: UUID
    #: entity → ids
    ids: Mapping[str, Sequence[str]]


class HookStore:
    """Hooks and their notices in PostgreSQL."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def find(self, hook_id: UUID) -> Hook | None:
        """The hook with its secrets; None if no active connector has it."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_FIND, hook_id)
        return row and self._hook(row)

    async def get(self, organization_id: UUID, connector_id: UUID) -> Hook:
        """The connector's hook; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_OF_CONNECTOR, organization_id, connector_id)
        if row is None:
            raise NotFound("the connector has no hook; create it with POST, or `gateway hooks create`")
        return self._hook(row)

    async def create(self, organization_id: UUID, connector_id: UUID) -> Hook:
        """The connector's hook; created without secrets if there is none."""
        hook_id = uuid4()
        sealed = self._vault.seal({}, binding(organization_id, hook_id))
        arguments = (hook_id, organization_id, connector_id, sealed.key_id, sealed.wrapped_key, sealed.sealed)
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_INSERT, *arguments)
        return await self.get(organization_id, connector_id)

    async def expect_handshake(self, hook: Hook, seconds: float) -> None:
        """Let handshakes add secrets for `seconds`."""
        async with self._database.tenant(hook.organization_id) as connection:
            await connection.execute(_EXPECT_HANDSHAKE, hook.organization_id, hook.id, seconds)

    async def add_secret(self, hook: Hook, secret: str, max_secrets: int) -> None:
        """Add a secret that may sign notices; beyond `max_secrets`, the oldest is deleted."""
        bound = binding(hook.organization_id, hook.id)
        async with self._database.tenant(hook.organization_id) as connection, connection.transaction():
            row = await connection.fetchrow(_LOCK, hook.organization_id, hook.id)
            if row is None:
                raise NotFound("the hook was deleted")
            secrets = [secret, *(each for each in self._secrets(row, bound) if each != secret)][:max_secrets]
            sealed = self._vault.seal({str(number): each for number, each in enumerate(secrets)}, bound)
            await connection.execute(
                _SEAL, hook.organization_id, hook.id, sealed.key_id, sealed.wrapped_key, sealed.sealed
            )

    async def delete(self, organization_id: UUID, connector_id: UUID) -> None:
        """Delete the connector's hook with its secrets; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            if await connection.fetchval(_DELETE, organization_id, connector_id) is None:
                raise NotFound("the connector has no hook")

    async def store(self, hook: Hook, digest: bytes, changes: Sequence[NoticedChange]) -> bool:
        """Store a notice of these changes; returns false if it was stored before."""
        columns = [each.entity for each in changes], [each.record_id for each in changes]
        async with self._database.tenant(hook.organization_id) as connection:
            arguments = (hook.id, digest, hook.organization_id, hook.connector_id, *columns)
            return bool(await connection.fetchval(_STORE, *arguments))

    async def bring_forward(self, pause: float) -> int:
        """Make changed entities due, `pause` seconds after their last run; returns their number."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_BRING_FORWARD, pause)
        return len({(row["connector_id"], row["entity"]) for row in rows})

    @asynccontextmanager
    async def taken_records(self) -> AsyncIterator[Sequence[ChangedRecords]]:
        """Take the changed records, by connector; they stay if the block raises."""
        async with self._database.system() as connection, connection.transaction():
            ids: defaultdict[tuple[UUID, UUID], defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
            for row in await connection.fetch(_TAKE_RECORDS):
                ids[row["organization_id"], row["connector_id"]][row["entity"]].append(row["record_id"])
            yield [ChangedRecords(*connector, found) for connector, found in ids.items()]

    def _hook(self, row: Mapping[str, Any]) -> Hook:
        members = {name: row[name] for name in Hook.__struct_fields__ if name != "secrets"}
        return Hook(**members, secrets=self._secrets(row, binding(row["organization_id"], row["id"])))

    def _secrets(self, row: Mapping[str, Any], bound: Binding) -> list[str]:
        """The secrets, newest first: they are sealed in that order."""
        return list(self._vault.open(Sealed(row["key_id"], row["wrapped_key"], row["sealed"]), bound).values())
