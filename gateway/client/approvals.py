"""`gateway.approvals`: calls that wait for a person's word; for clients with the scope `approve`."""

from collections.abc import Mapping
from typing import Any

from gateway.client.connectors import Connectors
from gateway.client.paths import segment
from gateway.client.session import ApiRequest, Session
from gateway.contract.approval_notices import ApprovalNoticeView
from gateway.contract.approvals import ApprovalPage, ApprovalSummaryView, ApprovalView
from gateway.contract.connectors import Connector

_PATH = "/api/v1/approvals"
_NOTICE = f"{_PATH}/notice"


class ApprovalRequests:
    """The approvals of the organization."""

    def __init__(self, session: Session, connectors: Connectors) -> None:
        self._session = session
        self._connectors = connectors

    async def list(
        self, status: str | None = None, *, connector_id: str | None = None, limit: int = 100
    ) -> list[ApprovalSummaryView]:
        """The newest approvals, at most 1,000; `status`: pending, approved, denied, expired or superseded."""
        members = {"status": status, "connector_id": connector_id, "limit": str(limit)}
        query = {name: value for name, value in members.items() if value is not None}
        call = ApiRequest(method="GET", path=_PATH, query=query)
        return (await self._session.fetch(call)).into(ApprovalPage).data

    async def get(self, approval_id: str) -> ApprovalView:
        """An approval with the exact requests and what they change; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{segment(approval_id)}"))).into(
            ApprovalView
        )

    async def approve(self, approval_id: str, digest: str, *, reason: str | None = None) -> ApprovalView:
        """Approve exactly what has this digest.

        Raises ApproverIsRequester, ApprovalChanged, ApprovalExpired and Conflict.
        """
        return await self._decide(approval_id, "approve", digest, reason)

    async def deny(self, approval_id: str, digest: str, *, reason: str | None = None) -> ApprovalView:
        """Deny the call; raises as `approve` does."""
        return await self._decide(approval_id, "deny", digest, reason)

    async def notice(self) -> ApprovalNoticeView:
        """The message that is sent when a call begins to wait; raises NotFound."""
        return (await self._session.fetch(ApiRequest(method="GET", path=_NOTICE))).into(ApprovalNoticeView)

    async def set_notice(
        self, connector: str | Connector, entity: str, action: str, params: Mapping[str, Any]
    ) -> ApprovalNoticeView:
        """Set the message; texts of the params may have placeholders such as `{{url}}`. For administrators.

        Raises InvalidParams with all faults, and DeniedByPolicy.
        """
        connector_id = (await self._connectors.resolve(connector)).id
        body = {"connector_id": connector_id, "entity": entity, "action": action, "params": dict(params)}
        call = ApiRequest(method="PUT", path=_NOTICE, body=body)
        return (await self._session.fetch(call)).into(ApprovalNoticeView)

    async def delete_notice(self) -> None:
        """Send no message any longer; raises NotFound."""
        await self._session.fetch(ApiRequest(method="DELETE", path=_NOTICE))

    async def _decide(self, approval_id: str, word: str, digest: str, reason: str | None) -> ApprovalView:
        body = {"digest": digest, **({} if reason is None else {"reason": reason})}
        call = ApiRequest(method="POST", path=f"{_PATH}/{segment(approval_id)}/{word}", body=body)
        return (await self._session.fetch(call)).into(ApprovalView)
