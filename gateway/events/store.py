"""Webhooks and their deliveries in PostgreSQL; secrets are sealed."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.identity.store import WORKSPACES
from gateway.contract.events import EventType
from gateway.errors import NotFound
from gateway.events.model import Event
from gateway.events.recording import add_event
from gateway.events.webhook import Delivery, TurnResult, Webhook
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import decoded
from gateway.foundation.db.where import OWNED, Where
from gateway.foundation.large_json import LARGE, is_large
from gateway.foundation.vault.vault import Binding, Sealed, Vault

#: maximum pending deliveries of a webhook; further events stay in the feed
MAX_PENDING = 500

_MEMBERS = Webhook.__struct_fields__
COLUMNS = ", ".join(f"webhooks.{name}" for name in _MEMBERS)
SEALED = "webhooks.key_id, webhooks.wrapped_key, webhooks.sealed"
# The workspaces of a person change with groups; those that the person has lost are left out.
_SEEN = f"""
    CASE WHEN webhooks.owner_id IS NULL THEN webhooks.workspaces ELSE (
        SELECT CASE WHEN seen.names IS NULL THEN webhooks.workspaces
                    WHEN webhooks.workspaces IS NULL THEN seen.names
                    ELSE ARRAY(SELECT unnest(webhooks.workspaces) INTERSECT SELECT unnest(seen.names)) END
        FROM clients, LATERAL (SELECT {WORKSPACES} AS names) AS seen WHERE clients.id = webhooks.owner_id
    ) END AS workspaces
"""
_CURRENT = ", ".join(_SEEN if name == "workspaces" else f"webhooks.{name}" for name in _MEMBERS)
_INSERT = f"""
    INSERT INTO webhooks (id, organization_id, client_id, is_callback, url, description, types, connector_id,
                          workspace_name, entity, workspaces, include_record, key_id, wrapped_key, sealed, owner_id,
                          position)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
           (SELECT people.client_id FROM people WHERE people.client_id = $3),
           COALESCE((SELECT last_id FROM event_feeds WHERE organization_id = $2), 0)
    ON CONFLICT (id) DO NOTHING RETURNING {COLUMNS}
"""
# A client limited to workspaces sees the webhooks of clients with the same limit or a narrower one. A person's webhook
# is that person's alone, because it may have events of the person's own connectors.
_VISIBLE = f"""
    organization_id = $1 AND id = $2 AND ($3::text[] IS NULL OR workspaces <@ $3)
    AND {OWNED.format("$4")}
"""
_GET = f"SELECT {COLUMNS} FROM webhooks WHERE {_VISIBLE}"
_LIST = f"SELECT {COLUMNS} FROM webhooks WHERE {{conditions}} ORDER BY created_at DESC, id DESC LIMIT {{limit}}"
_COUNT = "SELECT count(*) FROM webhooks WHERE organization_id = $1 AND subscription_id IS NULL"
_UPDATE = f"UPDATE webhooks SET {{assignments}}, updated_at = clock_timestamp() WHERE {_VISIBLE} RETURNING {COLUMNS}"
# A worker tells the receiver of a subscription that it ended, and deletes it then.
_DELETE = f"""
    WITH ended AS (
        UPDATE webhooks SET is_ending = true, updated_at = clock_timestamp()
        WHERE {_VISIBLE} AND subscription_id IS NOT NULL RETURNING id
    ), deleted AS (
        DELETE FROM webhooks WHERE {_VISIBLE} AND subscription_id IS NULL RETURNING id
    )
    SELECT id FROM ended UNION ALL SELECT id FROM deleted
"""
# A turn that ends locks the webhook before its deliveries too.
_LOCK = "SELECT id FROM webhooks WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE"
_OPEN = f"SELECT {SEALED}, previous_until FROM webhooks WHERE organization_id = $1 AND id = $2"
_SEAL = """
    UPDATE webhooks
    SET key_id = $3, wrapped_key = $4, sealed = $5, previous_until = now() + make_interval(secs => $6)
    WHERE organization_id = $1 AND id = $2
    RETURNING previous_until
"""
# The new fence drops the results of a turn in progress, whose events are delivered again.
_REPLAY = f"""
    WITH dropped AS (
        DELETE FROM webhook_deliveries
        WHERE webhook_id = (SELECT id FROM webhooks WHERE {_VISIBLE}) AND status = 'pending' AND event_id > $5
    )
    UPDATE webhooks SET position = $5, fence = fence + 1, lease_until = NULL, held_until = '-infinity',
        updated_at = clock_timestamp()
    WHERE {_VISIBLE}
    RETURNING {COLUMNS}
"""
_RESEND = f"""
    WITH resent AS (
        UPDATE webhook_deliveries
        SET status = 'pending', attempts = 0, first_attempt_at = NULL, next_attempt_at = now()
        WHERE webhook_id = (SELECT id FROM webhooks WHERE {_VISIBLE}) AND event_id = $5
        RETURNING webhook_id
    )
    UPDATE webhooks SET retry_at = now(), held_until = '-infinity', fence = fence + 1, lease_until = NULL,
        updated_at = clock_timestamp()
    FROM resent WHERE webhooks.id = resent.webhook_id
    RETURNING webhooks.id
"""
_CALLBACK = """
    SELECT id FROM webhooks WHERE organization_id = $1 AND client_id = $2 AND is_callback AND url = $3
"""
_CALLBACKS = f"""
    SELECT {COLUMNS}, {SEALED} FROM webhooks WHERE organization_id = $1 AND is_callback
      AND ($2::uuid IS NULL OR client_id = $2)
    ORDER BY created_at, id
"""
_DROP_CALLBACKS = """
    DELETE FROM webhooks WHERE organization_id = $1 AND client_id = $2 AND is_callback AND url <> ALL ($3::text[])
"""
DELIVERY = """
    event, status, attempts, first_attempt_at, attempted_at, next_attempt_at, response_status, duration_ms,
    response_body, error, failure
"""
_DELIVERIES = f"""
    SELECT {DELIVERY} FROM webhook_deliveries WHERE {{conditions}} ORDER BY event_id DESC LIMIT {{limit}}
"""
# Organizations take turns, and in each of them the webhooks that waited longest come first. An organization has at most
# half of the worker's turns that the others leave. $3 are the worker's turns, $4 those in progress by organization, and
# $5 all that are in progress.
_DUE = """
    {0}.status = 'active' AND {0}.held_until <= now() AND ({0}.lease_until IS NULL OR {0}.lease_until < now())
    AND NOT {0}.is_ending AND ({0}.expires_at IS NULL OR {0}.expires_at > now())
"""
_CLAIM = f"""
    UPDATE webhooks
    SET lease_until = now() + make_interval(secs => $2), worker = $1, fence = fence + 1, turn_at = now()
    WHERE id = ANY (ARRAY(
        SELECT webhooks.id FROM webhooks JOIN (
            SELECT due.id, COALESCE(busy.turns, 0) + row_number() OVER (
                       PARTITION BY due.organization_id ORDER BY due.turn_at) AS turn,
                   ($3 - ($5 - COALESCE(busy.turns, 0))) / 2 AS share
            FROM webhooks AS due
            LEFT JOIN event_feeds AS feed USING (organization_id)
            LEFT JOIN (SELECT key::uuid AS organization_id, value::integer AS turns FROM json_each_text($4::json))
                AS busy USING (organization_id)
            WHERE {_DUE.format("due")}
              AND (retry_at <= now() OR NOT is_full AND (position < feed.last_id OR EXISTS (
                  SELECT FROM events
                  WHERE events.organization_id = due.organization_id AND events.last_id IS NULL)))
              AND EXISTS (SELECT FROM organizations
                          WHERE organizations.id = organization_id AND disabled_at IS NULL
                            AND moving_since IS NULL)
              AND due.key_id <> ALL ($6::text[])
        ) AS due ON due.id = webhooks.id
        WHERE {_DUE.format("webhooks")} AND due.turn <= GREATEST(1, due.share)
        ORDER BY due.turn, webhooks.turn_at LIMIT $3 - $5 FOR NO KEY UPDATE OF webhooks SKIP LOCKED
    ))
    RETURNING {_CURRENT}, {SEALED}
"""
# Most webhooks select few of an organization's events. The comparison leaves out workspaces and people, so that at most
# too few are skipped. A webhook whose next events were deleted is not skipped, because its receiver may get a message.
# Nor is one that is replayed, or selects other events, since they were compared.
_SKIP = """
    WITH passing AS MATERIALIZED (
        SELECT webhooks.id, webhooks.position, webhooks.updated_at, feed.last_id
        FROM webhooks JOIN event_feeds AS feed USING (organization_id)
        WHERE webhooks.position < feed.last_id AND webhooks.position >= feed.pruned_id
          AND status = 'active' AND (lease_until IS NULL OR lease_until < now())
          AND NOT EXISTS (
              SELECT FROM events
              WHERE events.organization_id = webhooks.organization_id AND events.last_id > webhooks.position
                AND events.type = ANY (webhooks.types)
                AND (webhooks.connector_id IS NULL OR events.connector_id = webhooks.connector_id)
                AND (webhooks.entity IS NULL OR events.entity = webhooks.entity))
    )
    UPDATE webhooks SET position = passing.last_id
    FROM passing
    WHERE webhooks.id = passing.id AND webhooks.position = passing.position
      AND webhooks.updated_at = passing.updated_at AND (lease_until IS NULL OR lease_until < now())
"""
_PENDING = f"""
    SELECT event_id, {DELIVERY} FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending' ORDER BY event_id
"""
_FAIL_UNREADABLE = """
    UPDATE webhook_deliveries
    SET status = 'failed', error = $3, failure = NULL, attempted_at = now(), next_attempt_at = NULL
    WHERE webhook_id = $1 AND event_id = $2 AND status = 'pending'
"""
# Another worker may have the key of its secret. Its owner sees since when nothing is delivered.
_HOLD_UNREADABLE = """
    UPDATE webhooks
    SET lease_until = NULL, held_until = now() + interval '1 minute', failures = failures + 1,
        failing_since = COALESCE(failing_since, now())
    WHERE id = ANY ($1::uuid[]) AND worker = $2
"""
_END_LEASE = """
    UPDATE webhooks SET lease_until = NULL, held_until = now() + interval '1 second' WHERE id = $1 AND fence = $2
"""
_SUBSCRIBED = "SELECT DISTINCT organization_id FROM webhooks WHERE status = 'active'"
_RENEW = """
    UPDATE webhooks SET lease_until = now() + make_interval(secs => $2)
    WHERE worker = $1 AND lease_until > now()
"""
_RELEASE = "UPDATE webhooks SET lease_until = NULL WHERE worker = $1 AND lease_until IS NOT NULL"
_FINISH = f"""
    UPDATE webhooks
    SET position = $3, failures = $4, failing_since = $5, held_until = now() + make_interval(secs => $6),
        status = CASE WHEN $7::text IS NULL THEN status ELSE 'disabled' END,
        status_reason = COALESCE($7, status_reason), lease_until = NULL,
        retry_at = (SELECT min(next_attempt_at) FROM webhook_deliveries
                    WHERE webhook_id = $1 AND webhook_deliveries.status = 'pending'),
        is_full = (SELECT count(*) >= {MAX_PENDING} FROM webhook_deliveries
                   WHERE webhook_id = $1 AND webhook_deliveries.status = 'pending')
    WHERE id = $1 AND fence = $2
    RETURNING id
"""
_LOCK_IF_HELD = "SELECT id FROM webhooks WHERE id = $1 AND fence = $2 FOR NO KEY UPDATE"
_STORE = f"""
    INSERT INTO webhook_deliveries (webhook_id, organization_id, event_id, subject, {DELIVERY})
    SELECT $1, $2, event_id, subject, {DELIVERY} FROM json_to_recordset($3::json) AS delivery (
        event_id bigint, subject text, event text, status text, attempts integer, first_attempt_at timestamptz,
        attempted_at timestamptz, next_attempt_at timestamptz, response_status integer, duration_ms integer,
        response_body text, error text, failure text)
    ON CONFLICT (webhook_id, event_id) DO UPDATE SET
        status = EXCLUDED.status, attempts = EXCLUDED.attempts, first_attempt_at = EXCLUDED.first_attempt_at,
        attempted_at = EXCLUDED.attempted_at, next_attempt_at = EXCLUDED.next_attempt_at,
        response_status = EXCLUDED.response_status, duration_ms = EXCLUDED.duration_ms,
        response_body = EXCLUDED.response_body, error = EXCLUDED.error, failure = EXCLUDED.failure
"""
#: for `prune`
PRUNE = """
    WITH old AS (
        SELECT webhook_id, event_id FROM webhook_deliveries
        WHERE status <> 'pending' AND attempted_at < now() - interval '7 days'
        ORDER BY attempted_at LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM webhook_deliveries USING old
    WHERE webhook_deliveries.webhook_id = old.webhook_id AND webhook_deliveries.event_id = old.event_id
"""


def binding(organization_id: UUID, webhook_id: UUID) -> Binding:
    """The associated data of a webhook's signing secrets."""
    return Binding(organization_id, webhook_id, "webhook")


class ClaimedWebhook(msgspec.Struct, frozen=True):
    """A webhook that this worker has leased, and its signing secrets."""

    webhook: Webhook
    secrets: Sequence[str]


class WebhookStore:
    """Webhooks and their deliveries; `workspaces` are those to which the caller is limited, None for all."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def create(self, webhook: Mapping[str, Any], secret: str) -> Webhook | None:
        """Insert a webhook for events from now on; None if its id is stored."""
        sealed = self._vault.seal({"current": secret}, binding(webhook["organization_id"], webhook["id"]))
        async with self._database.tenant(webhook["organization_id"]) as connection:
            row = await connection.fetchrow(
                _INSERT, *webhook.values(), sealed.key_id, sealed.wrapped_key, sealed.sealed
            )
        return None if row is None else webhook_of(row)

    async def callback(self, organization_id: UUID, client_id: UUID, url: str) -> UUID | None:
        """The webhook of a client's callback URL; None if the URL is not registered."""
        async with self._database.tenant(organization_id) as connection:
            found: UUID | None = await connection.fetchval(_CALLBACK, organization_id, client_id, url)
        return found

    async def callbacks(self, organization_id: UUID, client_id: UUID | None = None) -> Sequence[ClaimedWebhook]:
        """The callbacks of a client, or of all clients of the organization, with their secrets."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_CALLBACKS, organization_id, client_id)
        return [claimed_of(self._vault, row) for row in rows]

    async def drop_callbacks(self, organization_id: UUID, client_id: UUID, kept: Sequence[str]) -> None:
        """Delete the callbacks of a client whose URL is not in `kept`."""
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_DROP_CALLBACKS, organization_id, client_id, list(kept))

    async def count(self, organization_id: UUID) -> int:
        async with self._database.tenant(organization_id) as connection:
            return int(await connection.fetchval(_COUNT, organization_id))

    async def get(
        self,
        organization_id: UUID,
        webhook_id: UUID,
        workspaces: Collection[str] | None,
        person_id: UUID | None = None,
    ) -> Webhook:
        """The webhook; raises NotFound."""
        return await self._one(_GET, organization_id, webhook_id, workspaces, person_id)

    async def find(
        self,
        organization_id: UUID,
        workspaces: Collection[str] | None,
        before: tuple[datetime, UUID] | None,
        limit: int,
        *,
        person_id: UUID | None = None,
        disabled_except: str | None = None,
    ) -> Sequence[Webhook]:
        """Webhooks, newest first; with `disabled_except` only disabled ones with another `status_reason`."""
        where = Where()
        where.add("organization_id = {}", organization_id)
        where.require(OWNED, person_id)
        where.add("workspaces <@ {}::text[]", workspaces)
        where.add("(created_at, id) < ({}, {})", *(before or (None, None)))
        where.add("status = 'disabled' AND status_reason IS DISTINCT FROM {}", disabled_except)
        query = _LIST.format(conditions=where.text, limit=where.argument(limit))
        async with self._database.tenant(organization_id) as connection:
            return [webhook_of(row) for row in await connection.fetch(query, *where.arguments)]

    async def update(
        self,
        organization_id: UUID,
        webhook_id: UUID,
        workspaces: Collection[str] | None,
        change: Mapping[str, Any],
        person_id: UUID | None = None,
    ) -> Webhook:
        """Change these columns; raises NotFound."""
        assignments = [f"{name} = ${number}" for number, name in enumerate(change, 5)]
        query = _UPDATE.format(assignments=", ".join(assignments) or "id = id")
        return await self._one(query, organization_id, webhook_id, workspaces, person_id, *change.values())

    async def delete(
        self,
        organization_id: UUID,
        webhook_id: UUID,
        workspaces: Collection[str] | None,
        person_id: UUID | None = None,
    ) -> None:
        """Delete a webhook with its deliveries; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            if await connection.fetchval(_DELETE, organization_id, webhook_id, workspaces, person_id) is None:
                raise NotFound("there is no such webhook")

    async def replay(
        self,
        organization_id: UUID,
        webhook_id: UUID,
        workspaces: Collection[str] | None,
        after: int,
        person_id: UUID | None = None,
    ) -> Webhook:
        """Deliver the events after that id, even if they were delivered before; raises NotFound."""
        async with self._locked(organization_id, webhook_id) as connection:
            row = await connection.fetchrow(_REPLAY, organization_id, webhook_id, workspaces, person_id, after)
        return webhook_of(_found(row))

    async def resend(
        self,
        organization_id: UUID,
        webhook_id: UUID,
        workspaces: Collection[str] | None,
        event_id: int,
        person_id: UUID | None = None,
    ) -> None:
        """Deliver one event again; raises NotFound."""
        async with self._locked(organization_id, webhook_id) as connection:
            if await connection.fetchval(_RESEND, organization_id, webhook_id, workspaces, person_id, event_id) is None:
                raise NotFound("there is no such delivery")

    async def deliveries(
        self, webhook: Webhook, status: str | None, before: int | None, limit: int
    ) -> Sequence[Delivery]:
        """Deliveries, the newest event first."""
        where = Where()
        where.add("organization_id = {}", webhook.organization_id)
        where.add("webhook_id = {}", webhook.id)
        where.add("status = {}", status)
        where.add("event_id < {}", before)
        query = _DELIVERIES.format(conditions=where.text, limit=where.argument(limit))
        async with self._database.tenant(webhook.organization_id) as connection:
            return [delivery_of(row) for row in await connection.fetch(query, *where.arguments)]

    async def secrets(self, webhook: Webhook) -> Sequence[str]:
        """The signing secrets, the current one first; raises NotFound."""
        async with self._database.tenant(webhook.organization_id) as connection:
            return await self._secrets(connection, webhook)

    async def rotate(self, webhook: Webhook, secret: str, overlap: float) -> datetime:
        """Sign with this secret, and for `overlap` seconds also with the previous one; returns when that ends."""
        bound = binding(webhook.organization_id, webhook.id)
        async with self._locked(webhook.organization_id, webhook.id) as connection:
            current = (await self._secrets(connection, webhook))[0]
            sealed = self._vault.seal({"current": secret, "previous": current}, bound)
            key = (sealed.key_id, sealed.wrapped_key, sealed.sealed)
            until: datetime = await connection.fetchval(_SEAL, webhook.organization_id, webhook.id, *key, overlap)
        return until

    async def claim(self, worker: str, lease: float, turns: int, busy: Mapping[UUID, int]) -> Sequence[ClaimedWebhook]:
        """Lease webhooks with due deliveries, of all organizations, to this worker for `lease` seconds.

        `turns` is the number that the worker has, and `busy` those in progress by organization. Webhooks whose key is
        forgotten wait.
        """
        in_progress = msgspec.json.encode({str(organization): count for organization, count in busy.items()}).decode()
        async with self._database.system() as connection:
            rows = await connection.fetch(
                _CLAIM, worker, lease, turns, in_progress, sum(busy.values()), self._vault.forgotten
            )
            claimed = await decoded(rows, lambda row: claimed_of(self._vault, row), "a webhook")
            if claimed.unreadable:
                await connection.execute(_HOLD_UNREADABLE, [row["id"] for row, _ in claimed.unreadable], worker)
        return claimed.values

    async def skip(self) -> int:
        """Let webhooks pass by the events that they do not select; returns their number."""
        async with self._database.system() as connection:
            return int((await connection.execute(_SKIP)).rpartition(" ")[2])

    async def subscribed(self) -> set[str]:
        """The organizations that have an active webhook."""
        async with self._database.system() as connection:
            return {str(row["organization_id"]) for row in await connection.fetch(_SUBSCRIBED)}

    async def renew(self, worker: str, lease: float) -> None:
        """Let the leases of a worker last for `lease` seconds from now; raises Unavailable."""
        async with self._database.system() as connection:
            await connection.execute(_RENEW, worker, lease)

    async def release(self, worker: str) -> None:
        """End the leases of a worker that shuts down."""
        async with self._database.system() as connection:
            await connection.execute(_RELEASE, worker)

    async def end_lease(self, webhook: Webhook) -> None:
        """End the lease after a failed turn; the webhook is due again after a second."""
        async with self._database.system() as connection:
            await connection.execute(_END_LEASE, webhook.id, webhook.fence)

    async def pending(self, webhook: Webhook) -> Sequence[Delivery]:
        """Pending deliveries, oldest event first; one that cannot be read fails."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_PENDING, webhook.id)
            pending = await decoded(rows, delivery_of, "a delivery", key="event_id", is_large=_is_large)
            for row, error in pending.unreadable:
                await connection.execute(_FAIL_UNREADABLE, webhook.id, row["event_id"], error.detail)
        return pending.values

    async def finish(self, webhook: Webhook, result: TurnResult) -> bool:
        """Store the result of a turn and end its lease; false, and nothing is stored, if the lease was lost."""
        deliveries = result.deliveries
        rows = await in_thread(_rows, deliveries) if any(map(is_large, deliveries)) else _rows(deliveries)
        async with self._database.system() as connection, connection.transaction():
            if await connection.fetchval(_LOCK_IF_HELD, webhook.id, webhook.fence) is None:
                return False
            if result.deliveries:
                await connection.execute(_STORE, webhook.id, webhook.organization_id, rows)
            await connection.execute(
                _FINISH,
                webhook.id,
                webhook.fence,
                result.position,
                result.failures,
                result.failing_since,
                result.hold,
                result.disabled_because,
            )
            if result.disabled_because is not None:
                await _add_disabled(connection, webhook, result.disabled_because)
        return True

    async def _one(self, query: str, organization_id: UUID, *arguments: object) -> Webhook:
        async with self._database.tenant(organization_id) as connection:
            return webhook_of(_found(await connection.fetchrow(query, organization_id, *arguments)))

    @asynccontextmanager
    async def _locked(self, organization_id: UUID, webhook_id: UUID) -> AsyncIterator[Connection]:
        """Lock the webhook, if there is one, until the block's transaction ends."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, webhook_id)
            yield connection

    async def _secrets(self, connection: Connection, webhook: Webhook) -> Sequence[str]:
        return _opened(
            self._vault, webhook, _found(await connection.fetchrow(_OPEN, webhook.organization_id, webhook.id))
        )


def _found(row: Any) -> Any:
    if row is None:
        raise NotFound("there is no such webhook")
    return row


def claimed_of(vault: Vault, row: Any) -> ClaimedWebhook:
    """The webhook of a row with `COLUMNS` and `SEALED`, with its secrets."""
    webhook = webhook_of(row)
    return ClaimedWebhook(webhook, _opened(vault, webhook, row))


def _opened(vault: Vault, webhook: Webhook, row: Any) -> Sequence[str]:
    sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
    values = vault.open(sealed, binding(webhook.organization_id, webhook.id))
    is_overlapping = webhook.previous_until is not None and webhook.previous_until > CLOCK.now()
    return [values["current"], *([values["previous"]] if is_overlapping and "previous" in values else [])]


async def _add_disabled(connection: Connection, webhook: Webhook, reason: str) -> None:
    data = {"webhook_id": str(webhook.id), "url": webhook.url, "reason": reason}
    await add_event(connection, webhook.organization_id, EventType.WEBHOOK_DISABLED, data)


def webhook_of(row: Any) -> Webhook:
    """The webhook of a row with `COLUMNS`."""
    return msgspec.convert({name: row[name] for name in _MEMBERS}, Webhook)


def _is_large(row: Any) -> bool:
    return len(row["event"]) > LARGE


def delivery_of(row: Any) -> Delivery:
    """The delivery of a row with `DELIVERY`."""
    members = {**row, "event": msgspec.json.decode(row["event"], type=Event)}
    return msgspec.convert(members, Delivery)


def _rows(deliveries: Sequence[Delivery]) -> str:
    return msgspec.json.encode([_row(delivery) for delivery in deliveries]).decode()


def _row(delivery: Delivery) -> dict[str, Any]:
    members = msgspec.structs.asdict(delivery)
    event = delivery.event
    return {
        **members,
        "event": msgspec.json.encode(event).decode(),
        "event_id": event.id,
        "subject": event.subject,
    }
