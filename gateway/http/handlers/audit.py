"""The audit log, for those who administer an organization."""

from dataclasses import asdict
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.http.bodies import Moment, Query, read_query
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import json_response
from gateway.jobs.model import moment


class AuditQuery(Query):
    """Which entries."""

    connector_id: UUID | None = None
    actor: UUID | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: int = Field(100, ge=1, le=1000)
    cursor: int | None = Field(None, ge=1, le=2**62)


async def list_audit(request: web.Request) -> web.Response:
    """GET /api/v1/audit: who did what, when, with which outcome; the newest first."""
    query, caller = read_query(request, AuditQuery), request[CALLER]
    found = await request.app[SERVICES].audit.find(
        caller.organization_id,
        connector_id=query.connector_id,
        actor=query.actor,
        since=query.since,
        until=query.until,
        before=query.cursor,
        limit=query.limit + 1,
    )
    page = found[: query.limit]
    data = [
        {**asdict(entry), "id": str(entry.id), "at": moment(entry.at), "actor": entry.actor and str(entry.actor)}
        for entry in page
    ]
    next_cursor = str(page[-1].id) if len(found) > len(page) else None
    return json_response({"data": data, "next_cursor": next_cursor})
