"""Notices of approvals in PostgreSQL: one setting for each organization, with sealed params."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.kinds import Effect
from gateway.errors import NotFound
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.vault.vault import Binding, Sealed, Vault

#: messages that an organization sends in an hour: whoever makes calls that wait cannot flood those who approve
_MOST_AN_HOUR = 60
_COLUMNS = """
    notice.id, notice.organization_id, notice.client_id, notice.connector_id, notice.workspace_name, notice.kind,
    notice.entity, notice.action, notice.effect, notice.key_id, notice.wrapped_key, notice.sealed, notice.last_job_id,
    notice.skipped_at, notice.skipped_reason, notice.updated_at
"""
_GET = f"""
    SELECT {_COLUMNS}, jobs.status AS last_status, jobs.message AS last_message, jobs.created_at AS last_at
    FROM approval_notices AS notice LEFT JOIN jobs ON jobs.id = last_job_id WHERE notice.organization_id = $1
"""
_PUT = """
    INSERT INTO approval_notices (id, organization_id, client_id, connector_id, workspace_name, kind, entity, action,
                                  effect, key_id, wrapped_key, sealed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (organization_id) DO UPDATE
    SET id = EXCLUDED.id, client_id = EXCLUDED.client_id, connector_id = EXCLUDED.connector_id,
        workspace_name = EXCLUDED.workspace_name, kind = EXCLUDED.kind, entity = EXCLUDED.entity,
        action = EXCLUDED.action, effect = EXCLUDED.effect, key_id = EXCLUDED.key_id,
        wrapped_key = EXCLUDED.wrapped_key, sealed = EXCLUDED.sealed, last_job_id = NULL, skipped_at = NULL,
        skipped_reason = NULL, updated_at = now()
"""
_DELETE = "DELETE FROM approval_notices WHERE organization_id = $1 RETURNING id"
# The row is locked until the approval is committed with the job of its message. $2: the requester, $3: its connector.
_LOCKED = f"""
    SELECT {_COLUMNS}, asking.name AS requester, connectors.name AS connector,
           CASE WHEN NOT EXISTS (
                    SELECT FROM clients JOIN client_organizations AS member ON member.client_id = clients.id
                    WHERE clients.id = notice.client_id AND clients.disabled_at IS NULL
                      AND member.organization_id = notice.organization_id
                ) THEN 'the client that set the notice is disabled or gone'
                WHEN hour = date_trunc('hour', now()) AND sent >= {_MOST_AN_HOUR}
                THEN '{_MOST_AN_HOUR} notices were sent in this hour' END AS refusal
    FROM approval_notices AS notice LEFT JOIN clients AS asking ON asking.id = $2
    LEFT JOIN connectors ON connectors.id = $3
    WHERE notice.organization_id = $1 FOR NO KEY UPDATE OF notice
"""
_COUNT = """
    UPDATE approval_notices
    SET sent = CASE WHEN hour = date_trunc('hour', now()) THEN sent + 1 ELSE 1 END, hour = date_trunc('hour', now()),
        last_job_id = $2
    WHERE id = $1
"""
_SKIP = "UPDATE approval_notices SET skipped_at = now(), skipped_reason = $2 WHERE id = $1"


class NoticeSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What an organization sends by which connector."""

    #: each change has another id
    id: UUID
    organization_id: UUID
    #: the client that set it, in whose name it is sent
    client_id: UUID
    connector_id: UUID
    workspace_name: str
    kind: str
    entity: str
    action: str
    effect: Effect
    #: with placeholders
    params: Mapping[str, Any]
    last_job_id: UUID | None = None
    last_status: str | None = None
    last_message: str | None = None
    last_at: datetime | None = None
    skipped_at: datetime | None = None
    skipped_reason: str | None = None
    updated_at: datetime | None = None


class DueNotice(NoticeSetting, frozen=True, kw_only=True):
    """The setting when a call has begun to wait."""

    #: the name of the client or person that asks, and that of its connector
    requester: str | None
    connector: str | None


def binding(organization_id: UUID, notice_id: UUID) -> Binding:
    """The associated data of the sealed params, which cannot be decrypted for another setting."""
    return Binding(organization_id, notice_id, "approval notice")


class NoticeStore:
    """The settings of organizations."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def get(self, organization_id: UUID) -> NoticeSetting:
        """The setting; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET, organization_id)
        if row is None:
            raise _no_notice()
        return NoticeSetting(**self._members(row))

    async def put(self, setting: NoticeSetting) -> None:
        """Store the setting in place of the former one."""
        params = {"params": json.dumps(dict(setting.params))}
        sealed = self._vault.seal(params, binding(setting.organization_id, setting.id))
        async with self._database.tenant(setting.organization_id) as connection:
            await connection.execute(
                _PUT,
                setting.id,
                setting.organization_id,
                setting.client_id,
                setting.connector_id,
                setting.workspace_name,
                setting.kind,
                setting.entity,
                setting.action,
                setting.effect.value,
                sealed.key_id,
                sealed.wrapped_key,
                sealed.sealed,
            )

    async def delete(self, organization_id: UUID) -> None:
        """Delete the setting; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            if await connection.fetchval(_DELETE, organization_id) is None:
                raise _no_notice()

    async def take_within(
        self, connection: Connection, organization_id: UUID, requested_by: UUID | None, connector_id: UUID | None
    ) -> DueNotice | None:
        """The setting, locked within the caller's transaction; None if there is none or nothing may be sent now.

        Raises InternalError if its params cannot be decrypted.
        """
        row = await connection.fetchrow(_LOCKED, organization_id, requested_by, connector_id)
        if row is None:
            return None
        if row["refusal"] is not None:
            await connection.execute(_SKIP, row["id"], row["refusal"])
            return None
        return DueNotice(**self._members(row))

    async def count_within(self, connection: Connection, setting: NoticeSetting, job_id: UUID) -> None:
        """Count a message within the caller's transaction."""
        await connection.execute(_COUNT, setting.id, job_id)

    def _members(self, row: Any) -> dict[str, Any]:
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        opened = self._vault.open(sealed, binding(row["organization_id"], row["id"]))
        others = {name: value for name, value in row.items() if name not in ("key_id", "wrapped_key", "sealed")}
        others.pop("refusal", None)
        return {**others, "effect": Effect(row["effect"]), "params": json.loads(opened["params"])}


def _no_notice() -> NotFound:
    return NotFound("the organization sends no notice of approvals")
