"""`gateway.approvals`: calls that wait for a person's word; for clients with the scope `approve`."""

from gateway.client.session import ApiRequest, Session
from gateway.contract.approvals import ApprovalPage, ApprovalSummaryView, ApprovalView

_PATH = "/api/v1/approvals"


class ApprovalRequests:
    """The approvals of the organization."""

    def __init__(self, session: Session) -> None:
        self._session = session

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
        return (await self._session.fetch(ApiRequest(method="GET", path=f"{_PATH}/{approval_id}"))).into(ApprovalView)

    async def approve(self, approval_id: str, digest: str, *, reason: str | None = None) -> ApprovalView:
        """Approve exactly what has this digest.

        Raises ApproverIsRequester, ApprovalChanged, ApprovalExpired and Conflict.
        """
        return await self._decide(approval_id, "approve", digest, reason)

    async def deny(self, approval_id: str, digest: str, *, reason: str | None = None) -> ApprovalView:
        """Deny the call; raises as `approve` does."""
        return await self._decide(approval_id, "deny", digest, reason)

    async def _decide(self, approval_id: str, word: str, digest: str, reason: str | None) -> ApprovalView:
        body = {"digest": digest, **({} if reason is None else {"reason": reason})}
        call = ApiRequest(method="POST", path=f"{_PATH}/{approval_id}/{word}", body=body)
        return (await self._session.fetch(call)).into(ApprovalView)
