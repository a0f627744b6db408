"""`gateway.webhooks`: subscriptions to events; and `verify`, for the receiver of their deliveries."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import msgspec
from standardwebhooks.webhooks import Webhook as Signature
from standardwebhooks.webhooks import WebhookVerificationError

from gateway.client.session import ApiRequest, Session
from gateway.contract.events import (
    CreatedWebhookView,
    DeliveryPage,
    DeliveryView,
    EventView,
    RotatedSecretView,
    WebhookPage,
    WebhookTestView,
    WebhookView,
)
from gateway.errors import Unauthorized

_PATH = "/api/v1/webhooks"
#: most items of a page
_PAGE = 1000


def verify(body: bytes, headers: Mapping[str, str], secret: str | Sequence[str]) -> EventView:
    """The event of a delivery, after its signature and its age (5 minutes at most) were checked.

    `body` is the request's body as it came, before any parsing. `secret` is the webhook's, or several: one of them must
    match. Raises `gateway.errors.Unauthorized`; answer 401 then. A delivery may come twice: `webhook-id` is the same.
    """
    for each in [secret] if isinstance(secret, str) else secret:
        try:
            Signature(each).verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError) as error:
            reason = error
        else:
            return msgspec.json.decode(body, type=_Delivered)
    raise Unauthorized(f"the delivery's signature is not valid: {reason}")


class _Delivered(EventView, frozen=True):
    """Deliveries of a later gateway, and `webhook.test`, have types that this client does not know."""

    type: str  # type: ignore[assignment]


class Webhooks:
    """Webhooks of the organization."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def create(
        self,
        url: str,
        types: Sequence[str],
        *,
        connector_id: str | None = None,
        workspace_name: str | None = None,
        entity: str | None = None,
        include_record: bool = False,
        description: str | None = None,
    ) -> CreatedWebhookView:
        """A webhook for the events from now on; its `secret` is shown only here. `types` may be groups: `job.*`."""
        body = {
            "url": url,
            "types": list(types),
            "connector_id": connector_id,
            "workspace_name": workspace_name,
            "entity": entity,
            "include_record": include_record,
            "description": description,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return (await self._session.fetch(ApiRequest("POST", _PATH, body=given))).into(CreatedWebhookView)

    async def list(self) -> AsyncGenerator[WebhookView, None]:
        """Every webhook, the newest first."""
        async for webhook in self._session.views(_PATH, {"limit": _PAGE}, WebhookPage):
            yield webhook

    async def get(self, webhook_id: str) -> WebhookView:
        """The webhook as it is now."""
        return (await self._session.fetch(ApiRequest("GET", f"{_PATH}/{webhook_id}"))).into(WebhookView)

    async def change(self, webhook_id: str, **members: Any) -> WebhookView:
        """Change members; `status="active"` enables a webhook that was disabled."""
        call = ApiRequest("PATCH", f"{_PATH}/{webhook_id}", body=members)
        return (await self._session.fetch(call)).into(WebhookView)

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        await self._session.fetch(ApiRequest("DELETE", f"{_PATH}/{webhook_id}"))

    async def test(self, webhook_id: str) -> WebhookTestView:
        """Send a test event now; the receiver's response."""
        return (await self._session.fetch(ApiRequest("POST", f"{_PATH}/{webhook_id}/test"))).into(WebhookTestView)

    async def rotate(self, webhook_id: str) -> RotatedSecretView:
        """Another secret; for a day deliveries are signed with the previous one too."""
        return (await self._session.fetch(ApiRequest("POST", f"{_PATH}/{webhook_id}/rotate"))).into(RotatedSecretView)

    async def deliveries(
        self, webhook_id: str, *, status: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[DeliveryView, None]:
        """Deliveries, the newest event first, at most `limit`; `status` is pending, succeeded or failed."""
        query = {"status": status, "limit": min(limit or _PAGE, _PAGE)}
        async for delivery in self._session.views(f"{_PATH}/{webhook_id}/deliveries", query, DeliveryPage, limit):
            yield delivery

    async def replay(self, webhook_id: str, after: int) -> WebhookView:
        """Deliver the events after this id again."""
        call = ApiRequest("POST", f"{_PATH}/{webhook_id}/replay", body={"after": after})
        return (await self._session.fetch(call)).into(WebhookView)
