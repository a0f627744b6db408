"""The log of requests to applications."""

from typing import ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.contract.gateway_state import RequestPage, RequestView
from gateway.http.bodies import Moment, QueryString, read_query
from gateway.http.keys import CALLER, SERVICES
from gateway.identity.model import Caller
from gateway.request_log.log import LoggedRequest, RequestFilter


class RequestQuery(QueryString):
    """Which requests."""

    EXAMPLE: ClassVar = {"status": "failed", "limit": 20}

    connector_id: UUID | None = Field(None, description="only requests of this connector")
    job_id: UUID | None = Field(None, description="only requests of this job")
    request_id: str | None = Field(None, max_length=128, description="only what this request to the gateway sent")
    status: str | None = Field(
        None,
        pattern="^([1-5]xx|[1-5][0-9][0-9]|failed)$",
        description="only this status: `404`, `5xx`, or `failed` for no complete response or a status from 400 on",
    )
    since: Moment | None = Field(None, description="only from this time on")
    limit: int = Field(100, ge=1, le=1000, description="how many a page holds")
    cursor: int | None = Field(None, ge=1, le=2**62, description="`next_cursor` of the page before")


async def list_requests(request: web.Request) -> RequestPage:
    """Every HTTP request to an application, the newest first. Queries, bodies and headers are never kept."""
    query = read_query(request, RequestQuery)
    found = await request.app[SERVICES].request_log.find(
        request[CALLER].organization_id, _filter(query, request[CALLER]), before=query.cursor, limit=query.limit + 1
    )
    page = found[: query.limit]
    next_cursor = str(page[-1].id) if len(found) > len(page) else None
    return RequestPage([request_view(each) for each in page], next_cursor)


def _filter(query: RequestQuery, caller: Caller) -> RequestFilter:
    return RequestFilter(
        connector_id=query.connector_id,
        job_id=query.job_id,
        request_id=query.request_id,
        status=None if query.status in (None, "failed") else _statuses(query.status or ""),
        is_failed=query.status == "failed",
        since=query.since,
        workspaces=caller.client.workspaces,
    )


def _statuses(status: str) -> tuple[int, int]:
    """The lowest and the highest status that `404` or `5xx` means."""
    return int(status.replace("x", "0")), int(status.replace("x", "9"))


def request_view(logged: LoggedRequest) -> RequestView:
    """A request as it is shown."""
    return RequestView(
        id=str(logged.id),
        at=logged.at,
        connector_id=str(logged.connector_id),
        operation=logged.operation,
        method=logged.method,
        path=logged.path,
        status=logged.status,
        duration_ms=logged.duration_ms,
        attempt=logged.attempt,
        bytes_in=logged.bytes_in,
        bytes_out=logged.bytes_out,
        request_id=logged.request_id,
        job_id=None if logged.job_id is None else str(logged.job_id),
        upstream_request_id=logged.upstream_request_id,
        error=logged.error,
    )
