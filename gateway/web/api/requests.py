"""The log of requests to applications."""

from typing import ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.gateway_state import RequestPage, RequestSelection
from gateway.web.bodies import Moment, QueryString, read_query
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route


class RequestQuery(QueryString):
    """The filter and page of requests."""

    EXAMPLE: ClassVar = {"status": "failed", "limit": 20}

    connector_id: UUID | None = Field(None, description="only requests of this connector")
    job_id: UUID | None = Field(None, description="only requests of this job")
    request_id: str | None = Field(
        None, max_length=128, description="only requests that this request to the gateway sent"
    )
    status: str | None = Field(
        None,
        pattern="^([1-5]xx|[1-5][0-9][0-9]|failed)$",
        description="only this status: `404`, `5xx`, or `failed` for no complete response or a status from 400 on",
    )
    since: Moment | None = Field(None, description="only from this time on")
    limit: int = Field(100, ge=1, le=1000, description="maximum requests of a page")
    cursor: int | None = Field(None, ge=1, le=2**62, description="`next_cursor` of the page before")


async def list_requests(request: web.Request) -> RequestPage:
    """Every HTTP request to an application, the newest first. Queries, bodies and headers are never stored."""
    query = read_query(request, RequestQuery)
    caller = request[CALLER]
    selection = RequestSelection(
        connector_id=query.connector_id,
        job_id=query.job_id,
        request_id=query.request_id,
        status=query.status,
        since=query.since,
        workspaces=caller.client.workspaces,
        person_id=caller.person_id,
    )
    return await request.app[SERVICES].logs.requests.find(
        caller.organization_id, selection, before=query.cursor, limit=query.limit
    )


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/requests",
        list_requests,
        "List the HTTP requests to applications",
        "Audit",
        query=RequestQuery,
        response=RequestPage,
        scope=Scope.READ,
        command="gateway logs --limit 20",
    ),
)
