"""Subscriptions by the Model Context Protocol in PostgreSQL: webhooks with an id that the protocol derives."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.access.identity.model import Caller
from gateway.access.identity.store import LOSS, WORKSPACES
from gateway.contract.events import WebhookStatus
from gateway.events.store import COLUMNS, DELIVERY, SEALED, ClaimedWebhook, binding, claimed_of, delivery_of
from gateway.events.subscription import CONNECTOR_DELETED, RECEIVER_FAILED, NewSubscription
from gateway.events.webhook import Delivery
from gateway.foundation.db.pool import Database
from gateway.foundation.db.rows import decoded
from gateway.foundation.vault.vault import Vault

#: deliveries that are read for the state of a subscription
_LAST = 50

_LIVE = "NOT is_ending AND (expires_at IS NULL OR expires_at > now())"
_CURSOR = """
    COALESCE((SELECT min(event_id) - 1 FROM webhook_deliveries
              WHERE webhook_id = webhooks.id AND webhook_deliveries.status = 'pending'), position)
"""
# A turn may end meanwhile: the cursor is read once the row is locked.
_LOCK = f"SELECT id FROM webhooks WHERE organization_id = $1 AND subscription_id = $2 AND {_LIVE} FOR NO KEY UPDATE"
_GET = f"SELECT {COLUMNS}, {SEALED}, {_CURSOR} AS cursor FROM webhooks WHERE id = $1"
_LAST_DELIVERIES = f"""
    SELECT {DELIVERY} FROM webhook_deliveries WHERE webhook_id = $1 AND attempted_at IS NOT NULL
    ORDER BY event_id DESC LIMIT {_LAST}
"""
_EXPIRES = "now() + make_interval(secs => {0})"
# A suspended subscription goes on; workers learn of it by `updated_at`.
_REFRESH = f"""
    UPDATE webhooks
    SET expires_at = {_EXPIRES.format("$2::float8")}, grant_id = (SELECT grant_id FROM tokens WHERE hash = $3),
        workspaces = $4, status = 'active', status_reason = NULL, failures = 0, failing_since = NULL,
        held_until = CASE WHEN status = 'active' THEN held_until ELSE '-infinity' END,
        retry_at = CASE WHEN status = 'active' THEN retry_at ELSE now() END,
        updated_at = CASE WHEN status = 'active' THEN updated_at ELSE clock_timestamp() END
    WHERE id = $1
    RETURNING expires_at
"""
# The time of the suspension does not count as time for retries.
_RESUME = """
    UPDATE webhook_deliveries
    SET first_attempt_at = NULL, next_attempt_at = CASE WHEN next_attempt_at IS NOT NULL THEN now() END
    WHERE webhook_id = $1 AND status = 'pending'
"""
_DROP_ENDED = f"DELETE FROM webhooks WHERE organization_id = $1 AND subscription_id = $2 AND NOT ({_LIVE})"
_COUNT = f"SELECT count(*) FROM webhooks WHERE organization_id = $1 AND subscription_id IS NOT NULL AND {_LIVE}"
_IS_VERIFIED = f"""
    SELECT EXISTS (
        SELECT FROM webhooks
        WHERE organization_id = $1 AND client_id = $2 AND url = $3 AND subscription_id IS NOT NULL AND {_LIVE}
    )
"""
_INSERT = f"""
    INSERT INTO webhooks (id, organization_id, client_id, url, types, connector_id, entity, workspaces, key_id,
                          wrapped_key, sealed, position, subscription_id, expires_at, grant_id, owner_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, {_EXPIRES.format("$14::float8")},
            (SELECT grant_id FROM tokens WHERE hash = $15), (SELECT people.client_id FROM people WHERE client_id = $3))
    ON CONFLICT (organization_id, subscription_id) WHERE subscription_id IS NOT NULL DO NOTHING
    RETURNING expires_at
"""
# Ids grow nearly with times: the newest event that is too old ends the search.
_BEFORE = """
    SELECT COALESCE(max(last_id), 0) FROM (
        SELECT last_id FROM events
        WHERE organization_id = $1 AND last_id IS NOT NULL AND at < now() - make_interval(secs => $2)
        ORDER BY last_id DESC LIMIT 1
    ) AS newest
"""
_DELETE = "DELETE FROM webhooks WHERE organization_id = $1 AND subscription_id = $2 RETURNING id"
# A connector that the client may no longer see, because it may see fewer workspaces.
_HIDES_CONNECTOR = """
    ended.connector_id IS NOT NULL AND reader.names IS NOT NULL AND EXISTS (
        SELECT FROM connectors LEFT JOIN workspaces ON workspaces.id = workspace_id
        WHERE connectors.id = ended.connector_id AND connectors.deleted_at IS NULL
          AND NOT COALESCE(workspaces.name = ANY (reader.names), false))
"""
# The events of a connector end with that of its deletion, which is delivered before.
_LACKS_CONNECTOR = """
    ended.connector_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM connectors WHERE connectors.id = ended.connector_id AND deleted_at IS NULL)
    AND ended.position >= COALESCE((SELECT last_id FROM event_feeds
                                    WHERE event_feeds.organization_id = ended.organization_id), 0)
    AND NOT EXISTS (SELECT FROM events WHERE events.organization_id = ended.organization_id AND last_id IS NULL)
    AND NOT EXISTS (SELECT FROM webhook_deliveries AS delivery
                    WHERE delivery.webhook_id = ended.id AND delivery.status = 'pending')
"""
# A subscription without expiry ends if its receiver has failed for as long as webhooks are retried.
_REASON = f"""
    CASE
        WHEN ended.is_ending THEN 'an administrator deleted the subscription'
        WHEN reader.loss IS NOT NULL THEN reader.loss
        WHEN ended.grant_id IS NOT NULL
             AND NOT EXISTS (SELECT FROM agent_grants WHERE agent_grants.id = ended.grant_id)
            THEN 'the grant was revoked'
        WHEN {_HIDES_CONNECTOR} THEN 'the client may no longer see the connector'
        WHEN {_LACKS_CONNECTOR} THEN '{CONNECTOR_DELETED}'
        WHEN ended.expires_at IS NULL AND ended.status = 'disabled'
             AND ended.failing_since < now() - make_interval(secs => $3)
            THEN '{RECEIVER_FAILED}'
    END
"""
_READER = f"""
    {LOSS.format("owner.organization_id", "owner.client_id")} AS loss,
    (SELECT {WORKSPACES} FROM clients WHERE clients.id = owner.client_id) AS names
"""
# A client may have thousands of subscriptions, so its rights are read once.
_CLAIM_ENDED = f"""
    WITH reader AS MATERIALIZED (
        SELECT owner.*, {_READER}
        FROM (SELECT DISTINCT organization_id, client_id FROM webhooks WHERE subscription_id IS NOT NULL) AS owner
    ), found AS (
        SELECT ended.id, why.reason
        FROM webhooks AS ended JOIN reader USING (organization_id, client_id),
            LATERAL (SELECT {_REASON} AS reason) AS why
        WHERE subscription_id IS NOT NULL AND (lease_until IS NULL OR lease_until < now())
          AND ended.key_id <> ALL ($5::text[]) AND why.reason IS NOT NULL
        LIMIT $4 FOR NO KEY UPDATE OF ended SKIP LOCKED
    )
    UPDATE webhooks SET lease_until = now() + make_interval(secs => $2), worker = $1, fence = fence + 1
    FROM found WHERE webhooks.id = found.id
    RETURNING {COLUMNS}, {SEALED}, found.reason,
              (SELECT failure FROM webhook_deliveries WHERE webhook_id = webhooks.id AND failure IS NOT NULL
               ORDER BY attempted_at DESC LIMIT 1) AS failure
"""
_DELETE_UNREADABLE = "DELETE FROM webhooks WHERE id = $1 AND fence = $2"
_LOCK_ENDED = "SELECT id FROM webhooks WHERE id = $1 AND fence = $2 FOR UPDATE"
# A host that has regained its access may have refreshed it while the receiver was told.
_DELETE_ENDED = f"""
    DELETE FROM webhooks WHERE id = (
        SELECT ended.id
        FROM webhooks AS ended JOIN webhooks AS owner ON owner.id = ended.id, LATERAL (SELECT {_READER}) AS reader
        WHERE ended.id = $1 AND ended.fence = $2 AND {_REASON} IS NOT NULL)
"""
#: for `prune`
PRUNE = """
    DELETE FROM webhooks WHERE id = ANY (ARRAY(
        SELECT id FROM webhooks WHERE subscription_id IS NOT NULL AND expires_at < now() LIMIT $1 FOR UPDATE SKIP LOCKED
    ))
"""


class RefreshedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as it was before it was refreshed."""

    before: ClaimedWebhook
    #: when it expires now
    expires_at: datetime | None
    #: events up to it are acknowledged or given up
    cursor: int
    #: the last deliveries that were attempted
    last: Sequence[Delivery]


class EndedSubscription(msgspec.Struct, frozen=True):
    """A subscription whose receiver is to be told that it ended."""

    claimed: ClaimedWebhook
    reason: str
    #: the category of the last failure
    failure: str | None


class Created(msgspec.Struct, frozen=True):
    """A new subscription."""

    expires_at: datetime | None


class SubscriptionStore:
    """Subscriptions of clients, by the ids that the protocol derives."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def refresh(self, caller: Caller, id_: str, new: NewSubscription) -> RefreshedSubscription | None:
        """Prolong a live subscription, and resume a suspended one; None if there is none."""
        async with self._database.tenant(caller.organization_id) as connection, connection.transaction():
            webhook_id = await connection.fetchval(_LOCK, caller.organization_id, id_)
            if webhook_id is None:
                return None
            row = await connection.fetchrow(_GET, webhook_id)
            claimed = claimed_of(self._vault, row)
            last = [delivery_of(each) for each in await connection.fetch(_LAST_DELIVERIES, webhook_id)]
            if claimed.webhook.status is WebhookStatus.DISABLED:
                await connection.execute(_RESUME, webhook_id)
            expires_at = await connection.fetchval(
                _REFRESH, webhook_id, new.lifetime, caller.client.token_hash, _workspaces(caller)
            )
        return RefreshedSubscription(before=claimed, expires_at=expires_at, cursor=row["cursor"], last=last)

    async def is_verified(self, caller: Caller, url: str) -> bool:
        """Whether the client has a live subscription with this receiver, so that it was verified."""
        async with self._database.tenant(caller.organization_id) as connection:
            return bool(await connection.fetchval(_IS_VERIFIED, caller.organization_id, caller.client_id, url))

    async def count(self, organization_id: UUID) -> int:
        async with self._database.tenant(organization_id) as connection:
            return int(await connection.fetchval(_COUNT, organization_id))

    async def last_before(self, organization_id: UUID, age: float) -> int:
        """The id of the newest event that is older than `age` seconds; 0 without one."""
        async with self._database.tenant(organization_id) as connection:
            return int(await connection.fetchval(_BEFORE, organization_id, age))

    async def create(self, caller: Caller, id_: str, new: NewSubscription, position: int) -> Created | None:
        """Insert a subscription to the events after `position`; None if it exists."""
        webhook_id = uuid4()
        sealed = self._vault.seal({"current": new.secret}, binding(caller.organization_id, webhook_id))
        async with self._database.tenant(caller.organization_id) as connection, connection.transaction():
            await connection.execute(_DROP_ENDED, caller.organization_id, id_)
            row = await connection.fetchrow(
                _INSERT,
                webhook_id,
                caller.organization_id,
                caller.client_id,
                new.url,
                [new.type],
                new.connector_id,
                new.entity,
                _workspaces(caller),
                sealed.key_id,
                sealed.wrapped_key,
                sealed.sealed,
                position,
                id_,
                new.lifetime,
                caller.client.token_hash,
            )
        return None if row is None else Created(row["expires_at"])

    async def delete(self, organization_id: UUID, id_: str) -> bool:
        """Delete a subscription; False if there is none."""
        async with self._database.tenant(organization_id) as connection:
            return await connection.fetchval(_DELETE, organization_id, id_) is not None

    async def claim_ended(
        self, worker: str, lease: float, retry_seconds: float, limit: int
    ) -> Sequence[EndedSubscription]:
        """Lease subscriptions of all organizations whose receivers are to be told that they ended.

        One whose secret cannot be read is deleted, because no message could be signed. Those whose key is forgotten
        wait.
        """
        forgotten = self._vault.forgotten
        async with self._database.system() as connection:
            rows = await connection.fetch(_CLAIM_ENDED, worker, lease, retry_seconds, limit, forgotten)
            ended = await decoded(rows, self._ended, "a subscription that ended")
            for row, _ in ended.unreadable:
                await connection.execute(_DELETE_UNREADABLE, row["id"], row["fence"])
        return ended.values

    def _ended(self, row: Any) -> EndedSubscription:
        return EndedSubscription(claimed_of(self._vault, row), row["reason"], row["failure"])

    async def delete_ended(self, claimed: ClaimedWebhook, retry_seconds: float) -> None:
        """Delete a subscription that `claim_ended` leased, unless the lease was lost or it goes on."""
        async with self._database.system() as connection, connection.transaction():
            await connection.execute(_LOCK_ENDED, claimed.webhook.id, claimed.webhook.fence)
            await connection.execute(_DELETE_ENDED, claimed.webhook.id, claimed.webhook.fence, retry_seconds)


def _workspaces(caller: Caller) -> list[str] | None:
    """The workspaces to which the client is limited; None for all."""
    return None if caller.client.workspaces is None else sorted(caller.client.workspaces)
