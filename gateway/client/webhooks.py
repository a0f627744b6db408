"""`gateway.webhooks`: subscriptions to events; and `verify`, which a receiver calls for each delivery."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from standardwebhooks.webhooks import Webhook as Signature
from standardwebhooks.webhooks import WebhookVerificationError

from gateway.client.paths import segment
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
from gateway.foundation import payloads

_PATH = "/api/v1/webhooks"
#: maximum items of a page
_PAGE = 1000


def verify(body: bytes, headers: Mapping[str, str], secret: str | Sequence[str]) -> EventView:
    """Check the signature and the age (at most 5 minutes) of a delivery, and return its event.

    `body` is the unparsed body of the request. `secret` is the webhook's secret, or several of which one must match.
    Raises `gateway.errors.Unauthorized`; respond with 401. A repeated delivery has the same `webhook-id`.
    """
    for each in [secret] if isinstance(secret, str) else secret:
        try:
            Signature(each).verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError) as error:
            reason = error
        else:
            return payloads.typed(body, _Delivered)
    raise Unauthorized(f"the delivery's signature is not valid: {reason}")


class _Delivered(EventView, frozen=True, kw_only=True):
    """An event whose type may be unknown to this client, as of a later gateway, or `webhook.test`."""

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
        """Create a webhook for new events. Its `secret` is returned only here. `types` may be groups: `job.*`."""
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
        return (await self._session.fetch(ApiRequest(method="POST", path=_PATH, body=given))).into(CreatedWebhookView)

    async def list(self) -> AsyncGenerator[WebhookView, None]:
        """Every webhook, newest first."""
        async for webhook in self._session.views(_PATH, {"limit": _PAGE}, WebhookPage):
            yield webhook

    async def get(self, webhook_id: str) -> WebhookView:
        """One webhook by its id; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{segment(webhook_id)}"))).into(
            WebhookView
        )

    async def change(self, webhook_id: str, **members: Any) -> WebhookView:
        """Change members; `status="active"` enables a webhook that was disabled."""
        call = ApiRequest(method="PATCH", path=f"{_PATH}/{segment(webhook_id)}", body=members)
        return (await self._session.fetch(call)).into(WebhookView)

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries."""
        await self._session.fetch(ApiRequest(method="DELETE", path=f"{_PATH}/{segment(webhook_id)}"))

    async def test(self, webhook_id: str) -> WebhookTestView:
        """Send a test event now; returns the receiver's response."""
        return (await self._session.fetch(ApiRequest(method="POST", path=f"{_PATH}/{segment(webhook_id)}/test"))).into(
            WebhookTestView
        )

    async def rotate(self, webhook_id: str) -> RotatedSecretView:
        """Create a new secret; for a day, deliveries are signed with the previous secret too."""
        return (
            await self._session.fetch(ApiRequest(method="POST", path=f"{_PATH}/{segment(webhook_id)}/rotate"))
        ).into(RotatedSecretView)

    async def deliveries(
        self, webhook_id: str, *, status: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[DeliveryView, None]:
        """Deliveries, newest event first, at most `limit`; `status` is pending, succeeded or failed."""
        query = {"status": status, "limit": min(limit or _PAGE, _PAGE)}
        async for delivery in self._session.views(
            f"{_PATH}/{segment(webhook_id)}/deliveries", query, DeliveryPage, limit
        ):
            yield delivery

    async def replay(self, webhook_id: str, after: int) -> WebhookView:
        """Deliver the events after this id again."""
        call = ApiRequest(method="POST", path=f"{_PATH}/{segment(webhook_id)}/replay", body={"after": after})
        return (await self._session.fetch(call)).into(WebhookView)
