"""`gateway.logs`: the audit log, and the HTTP requests that the gateway sent to applications."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta

import aiohttp

from gateway.client.session import ApiRequest, Session, connection_lost
from gateway.contract.gateway_state import (
    AuditEntryView,
    AuditKeyView,
    AuditPage,
    RequestPage,
    RequestView,
)

#: maximum items of a page
_PAGE = 1000
#: seconds between reads of the request log; processes write to it every half second
_INTERVAL = 1.0
#: period that each read repeats: processes write in batches, so that an earlier request may appear after a later one
_OVERLAP = timedelta(seconds=10)
#: number of yielded requests whose ids are stored, to yield each request once
_STORED_IDS = 10_000


class Logs:
    """Reads the audit log, and the log of requests to applications."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def audit(
        self,
        *,
        connector_id: str | None = None,
        actor: str | None = None,
        operation: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[AuditEntryView, None]:
        """Entries of the audit log, newest first, at most `limit`; fetches page after page.

        `actor` is the id or the name of a client; `outcome` is `succeeded`, `accepted` or an error code. Needs the
        scope admin.
        """
        query = {
            "connector_id": connector_id,
            "actor": actor,
            "operation": operation,
            "target": target,
            "outcome": outcome,
            "since": since and since.isoformat(),
            "until": until and until.isoformat(),
            "limit": min(limit or _PAGE, _PAGE),
        }
        async for entry in self._session.views("/api/v1/audit", query, AuditPage, limit):
            yield entry

    async def export_audit(
        self, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The exported audit log with its proof, NDJSON in pieces; needs the scope admin. Raises Unavailable."""
        period = {"since": since and since.isoformat(), "until": until and until.isoformat()}
        query = {name: value for name, value in period.items() if value is not None}
        call = ApiRequest(method="GET", path="/api/v1/audit/export", query=query)
        async with await self._session.open(call) as response:
            try:
                async for piece in response.content.iter_any():
                    yield piece
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise connection_lost(error) from error

    async def audit_keys(self) -> Sequence[AuditKeyView]:
        """The public keys that sign the exported audit log, the newest first."""
        answer = await self._session.fetch(ApiRequest(method="GET", path="/api/v1/audit/keys"))
        return answer.into(list[AuditKeyView])

    async def requests(
        self,
        *,
        connector_id: str | None = None,
        job_id: str | None = None,
        request_id: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[RequestView, None]:
        """Requests to applications, newest first, at most `limit`; fetches page after page.

        `status` is a status code, a class (`5xx`) or `failed`.
        """
        query = {
            "connector_id": connector_id,
            "job_id": job_id,
            "request_id": request_id,
            "status": status,
            "since": since and since.isoformat(),
            "limit": min(limit or _PAGE, _PAGE),
        }
        async for request in self._session.views("/api/v1/requests", query, RequestPage, limit):
            yield request

    async def follow_requests(
        self, *, connector_id: str | None = None, job_id: str | None = None, status: str | None = None
    ) -> AsyncGenerator[RequestView, None]:
        """New requests to applications as they end, each once; the iteration does not end."""
        newest = [each async for each in self.requests(connector_id=connector_id, job_id=job_id, limit=1)]
        since, yielded_ids = next((each.at for each in newest), None), deque((each.id for each in newest), _STORED_IDS)
        while True:
            found = self.requests(connector_id=connector_id, job_id=job_id, status=status, since=since)
            new = [each async for each in found if each.id not in yielded_ids]
            for request in sorted(new, key=lambda each: each.at):
                yielded_ids.append(request.id)
                yield request
            if new:
                newest_overlap = max(each.at for each in new) - _OVERLAP
                since = newest_overlap if since is None else max(since, newest_overlap)
            await asyncio.sleep(_INTERVAL)
