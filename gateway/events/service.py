"""The use cases of webhooks: create, change, test, rotate the secret, replay, list deliveries."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import asdict, replace
from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.contract.cursors import page_of, read_time_cursor
from gateway.contract.events import (
    CreatedWebhookView,
    DeliveryPage,
    NewWebhook,
    RotatedSecretView,
    WebhookPage,
    WebhookStatus,
    WebhookTestView,
    WebhookView,
)
from gateway.errors import Conflict, FieldError, IdempotencyMismatch, InvalidParams
from gateway.events.feed import Feed
from gateway.events.model import EventFilter, event_types
from gateway.events.sender import Sender
from gateway.events.signing import new_secret
from gateway.events.store import WebhookStore
from gateway.events.urls import url_fault
from gateway.events.webhook import Webhook
from gateway.foundation.aio.clock import CLOCK

#: maximum webhooks of an organization
MAX_WEBHOOKS = 2000
#: seconds for which deliveries are signed with the previous secret too
_OVERLAP = 86400.0
#: `status_reason` of a webhook that a caller disabled
_BY_OWNER = "disabled by its owner"
#: maximum callback URLs of a client
_MAX_CALLBACKS = 50


class WebhookService:
    """The webhooks that the caller may see: clients limited to workspaces see only those of these."""

    def __init__(
        self, audit: Audit, store: WebhookStore, feed: Feed, sender: Sender, allowed_origins: Iterable[URL]
    ) -> None:
        self._audit = audit
        self._store = store
        self._feed = feed
        self._sender = sender
        self._allowed_origins = frozenset(allowed_origins)

    async def create(self, caller: Caller, request: NewWebhook) -> CreatedWebhookView:
        """Create a webhook for events from now on; returns it with its secret. Raises InvalidParams and Conflict."""
        secret = new_secret()
        webhook, _ = await self._created(caller, request, uuid4(), secret)
        return CreatedWebhookView(**asdict(webhook.view), secret=secret)

    async def create_once(
        self, caller: Caller, request: NewWebhook, idempotency_key: UUID
    ) -> tuple[WebhookView, str | None]:
        """As `create`; with a key that the client has used, the webhook that it created, without its secret.

        Raises IdempotencyMismatch too, if that webhook differs.
        """
        secret = new_secret()
        webhook, is_new = await self._created(caller, request, caller.new_id(idempotency_key), secret)
        return webhook.view, secret if is_new else None

    async def _created(
        self, caller: Caller, request: NewWebhook, webhook_id: UUID, secret: str
    ) -> tuple[Webhook, bool]:
        """The webhook of that id, and whether it is new."""
        request = replace(request, types=event_types(request.types))
        with self._audit.record("webhook.create", caller, connector_id=request.connector_id) as entry:
            self._require_url(request.url)
            organization_id, workspaces = caller.organization_id, caller.client.workspaces
            if await self._store.count(organization_id) >= MAX_WEBHOOKS:
                raise Conflict(f"the organization has {MAX_WEBHOOKS} webhooks; delete some")
            await self._feed.read(organization_id, EventFilter(), None, 1)  # numbers the events until now
            members = stored_members(organization_id, caller.client_id, request, workspaces)
            webhook = await self._store.create({**members, "id": webhook_id}, secret)
            entry.target = str(webhook_id)
            if webhook is not None:
                return webhook, True
            stored = await self._store.get(organization_id, webhook_id, workspaces, caller.person_id)
            if _request_of(stored) != replace(request, types=list(request.types)):
                raise IdempotencyMismatch("the idempotency key was used for another webhook; use a new one")
            return stored, False

    async def callback(self, caller: Caller, url: str) -> UUID:
        """The webhook of a callback URL of the client; raises InvalidParams for any other URL."""
        found = await self._store.callback(caller.organization_id, caller.client_id, url)
        if found is None:
            message = (
                "callback_url must be exactly one of the client's callback URLs, which an administrator registers "
                "(PATCH /api/v1/clients/{client_id})"
            )
            raise InvalidParams(faults=[FieldError("/callback_url", "callback_url", "not_allowed", message)])
        return found

    async def callback_urls(self, caller: Caller) -> Mapping[UUID, Sequence[str]]:
        """Client → its callback URLs, for all clients of the organization."""
        urls: dict[UUID, list[str]] = {}
        for each in await self._store.callbacks(caller.organization_id):
            urls.setdefault(each.webhook.client_id, []).append(each.webhook.url)
        return urls

    async def set_callback_urls(self, caller: Caller, client_id: UUID, urls: Sequence[str]) -> str | None:
        """Replace a client's callback URLs; returns the secret if they are its first. Raises InvalidParams."""
        faults = [fault for url in urls if (fault := url_fault(url, self._allowed_origins, "callback_urls"))]
        if faults or len(urls) > _MAX_CALLBACKS:
            message = f"callback_urls has more than {_MAX_CALLBACKS} URLs"
            raise InvalidParams(faults=faults or [FieldError("/callback_urls", "callback_urls", "too_many", message)])
        organization_id = caller.organization_id
        before = await self._store.callbacks(organization_id, client_id)
        secret = before[0].secrets[0] if before else new_secret()
        await self._store.drop_callbacks(organization_id, client_id, urls)
        known = {each.webhook.url for each in before}
        for url in dict.fromkeys(url for url in urls if url not in known):
            await self._store.create(
                stored_members(
                    organization_id,
                    client_id,
                    NewWebhook(url=url, types=event_types(["job.*"])),
                    None,
                    is_callback=True,
                ),
                secret,
            )
        return None if before or not urls else secret

    async def get(self, caller: Caller, webhook_id: UUID) -> WebhookView:
        """The webhook; raises NotFound."""
        return (await self._stored(caller, webhook_id)).view

    async def _stored(self, caller: Caller, webhook_id: UUID) -> Webhook:
        return await self._store.get(caller.organization_id, webhook_id, caller.client.workspaces, caller.person_id)

    async def _require_owner(self, caller: Caller, webhook_id: UUID) -> Webhook:
        """The webhook, if the caller may change it: a callback belongs to another client, and administrators set it."""
        webhook = await self._stored(caller, webhook_id)
        if webhook.is_callback:
            caller.require(Scope.ADMIN)
        return webhook

    async def _require_changeable(self, caller: Caller, webhook_id: UUID) -> Webhook:
        """The webhook, if the caller may change it; raises Conflict for a subscription, which its host changes."""
        webhook = await self._require_owner(caller, webhook_id)
        _require_no_subscription(webhook)
        return webhook

    async def find(self, caller: Caller, cursor: str | None, limit: int) -> WebhookPage:
        """Webhooks, newest first; raises InvalidParams for a cursor that the gateway did not issue."""
        before = read_time_cursor(cursor)
        found = await self._store.find(
            caller.organization_id, caller.client.workspaces, before, limit + 1, person_id=caller.person_id
        )
        page, next_cursor = page_of(found, limit)
        return WebhookPage([webhook.view for webhook in page], next_cursor)

    async def disabled_by_gateway(self, caller: Caller, limit: int) -> Sequence[WebhookView]:
        """Webhooks that the gateway has disabled, newest first."""
        found = await self._store.find(
            caller.organization_id,
            caller.client.workspaces,
            None,
            limit,
            person_id=caller.person_id,
            disabled_except=_BY_OWNER,
        )
        return [webhook.view for webhook in found]

    async def change(self, caller: Caller, webhook_id: UUID, change: Mapping[str, Any]) -> WebhookView:
        """Change members of the webhook; `status: active` enables it again.

        Raises NotFound, InvalidParams, InsufficientScope for a callback unless the caller is an administrator, and
        Conflict for a subscription.
        """
        columns = dict(change)
        if "types" in columns:
            columns["types"] = event_types(columns["types"])
        with self._audit.record("webhook.update", caller, target=str(webhook_id)):
            await self._require_changeable(caller, webhook_id)
            if "url" in columns:
                self._require_url(columns["url"])
            if columns.get("status") == WebhookStatus.ACTIVE:
                columns |= {"status_reason": None, "failures": 0, "failing_since": None}
            elif columns.get("status") == WebhookStatus.DISABLED:
                columns["status_reason"] = _BY_OWNER
            return (
                await self._store.update(
                    caller.organization_id, webhook_id, caller.client.workspaces, columns, caller.person_id
                )
            ).view

    async def delete(self, caller: Caller, webhook_id: UUID) -> None:
        """Delete a webhook with its deliveries; raises NotFound, and InsufficientScope for a callback."""
        with self._audit.record("webhook.delete", caller, target=str(webhook_id)):
            await self._require_owner(caller, webhook_id)
            await self._store.delete(caller.organization_id, webhook_id, caller.client.workspaces, caller.person_id)

    async def test(self, caller: Caller, webhook_id: UUID) -> WebhookTestView:
        """Send an event of the type `webhook.test` once, which is not in the feed; raises NotFound and Conflict."""
        with self._audit.record("webhook.test", caller, target=str(webhook_id)):
            webhook = await self._stored(caller, webhook_id)
            _require_no_subscription(webhook)
            test_event = {"id": 0, "type": "webhook.test", "at": CLOCK.now(), "data": {"webhook_id": str(webhook.id)}}
            message_id = f"msg_{webhook.id.hex}_test_{uuid4().hex}"
            secrets = await self._store.secrets(webhook)
            attempt = await self._sender.send(
                webhook.id, webhook.url, message_id, msgspec.json.encode(test_event), secrets
            )
        return attempt.view

    async def rotate(self, caller: Caller, webhook_id: UUID) -> RotatedSecretView:
        """Replace the secret; returns it, and until when the old one signs too.

        Raises NotFound, InsufficientScope for a callback, and Conflict for a subscription.
        """
        with self._audit.record("webhook.rotate", caller, target=str(webhook_id)):
            secret, webhook = new_secret(), await self._require_changeable(caller, webhook_id)
            until = await self._store.rotate(webhook, secret, _OVERLAP)
            if webhook.is_callback:  # the callbacks of a client have one secret
                for each in await self._store.callbacks(webhook.organization_id, webhook.client_id):
                    if each.webhook.id != webhook.id:
                        await self._store.rotate(each.webhook, secret, _OVERLAP)
            return RotatedSecretView(secret, until)

    async def deliveries(
        self, caller: Caller, webhook_id: UUID, status: str | None, before: int | None, limit: int
    ) -> DeliveryPage:
        """The deliveries of a webhook, the newest event first; raises NotFound."""
        webhook = await self._stored(caller, webhook_id)
        found = await self._store.deliveries(webhook, status, before, limit + 1)
        page = found[:limit]
        cursor = str(page[-1].event.id) if len(found) > len(page) else None
        return DeliveryPage([delivery.view(webhook_id) for delivery in page], cursor)

    async def replay(self, caller: Caller, webhook_id: UUID, after: int) -> WebhookView:
        """Deliver the events after that id again; raises NotFound, CursorExpired, InvalidParams and Conflict."""
        with self._audit.record("webhook.replay", caller, target=str(webhook_id)):
            await self._require_changeable(caller, webhook_id)
            await self._feed.read(caller.organization_id, EventFilter(), after, 1)  # checks the cursor
            own = caller.client.workspaces, after, caller.person_id
            return (await self._store.replay(caller.organization_id, webhook_id, *own)).view

    async def resend(self, caller: Caller, webhook_id: UUID, event_id: int) -> None:
        """Deliver one event again, at once; raises NotFound."""
        with self._audit.record("webhook.resend", caller, target=str(webhook_id)):
            own = caller.client.workspaces, event_id, caller.person_id
            await self._store.resend(caller.organization_id, webhook_id, *own)

    def _require_url(self, url: str) -> None:
        fault: FieldError | None = url_fault(url, self._allowed_origins)
        if fault is not None:
            raise InvalidParams(faults=[fault])


def _require_no_subscription(webhook: Webhook) -> None:
    if webhook.subscription_id is not None:
        raise Conflict("an agent's host changes and tests its subscription by events/subscribe; you can only delete it")


def _request_of(webhook: Webhook) -> NewWebhook:
    """The request that creates a webhook like this one."""
    members = {name: getattr(webhook, name) for name in NewWebhook.__struct_fields__}
    return NewWebhook(**{**members, "types": list(webhook.types)})


def stored_members(
    organization_id: UUID,
    client_id: UUID,
    request: NewWebhook,
    workspaces: Collection[str] | None,
    *,
    is_callback: bool = False,
) -> dict[str, Any]:
    """The values of a new webhook's row, in the order of the columns."""
    return {
        "id": uuid4(),
        "organization_id": organization_id,
        "client_id": client_id,
        "is_callback": is_callback,
        "url": request.url,
        "description": request.description,
        "types": list(request.types),
        "connector_id": request.connector_id,
        "workspace_name": request.workspace_name,
        "entity": request.entity,
        "workspaces": workspaces,
        "include_record": request.include_record,
    }
