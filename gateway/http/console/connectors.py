"""Connectors in the console: which there are, how they stand, and what to do about it."""

from aiohttp import web

from gateway.connectors.model import ConnectorRecord
from gateway.contract.connectors import ConnectorStatus
from gateway.errors import GatewayError, MalformedRequest
from gateway.http.api.connectors import connector_view
from gateway.http.bodies import path_id
from gateway.http.console.page import console_page, see_other
from gateway.http.console.session import name_in, read_console_form
from gateway.http.keys import AUDIT, CALLER, REQUEST_ID, SERVICES
from gateway.http.responses import cursor_of, read_time_cursor

_PAGE = "/console/connectors"
#: connectors on a page, and workspaces that are suggested
_LIMIT = 100


async def list_connectors(request: web.Request) -> web.Response:
    """GET /console/connectors."""
    services = request.app[SERVICES]
    after = read_time_cursor(request.query.get("cursor"))
    records = await services.connectors.find(request[CALLER], after=after, limit=_LIMIT + 1)
    page = records[:_LIMIT]
    workspaces = await services.connectors.workspaces(request[CALLER], limit=_LIMIT)
    return console_page(
        request,
        "connectors.html",
        active="connectors",
        connectors=[connector_view(record, services.catalog) for record in page],
        workspaces=[workspace.name for workspace in workspaces],
        cursor=cursor_of((page[-1].created_at, page[-1].id)) if len(records) > len(page) else None,
    )


async def show_connector(request: web.Request) -> web.Response:
    """GET /console/connectors/{connector_id}."""
    return await _shown(request, await _record(request))


async def connect(request: web.Request) -> web.Response:
    """POST /console/connectors/connect: a connect link for oneself, and on to it."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    workspace = name_in(fields, "workspace_name")
    if not workspace:
        raise MalformedRequest("name the workspace that the application is for")
    link = await services.connect_links.create(request[CALLER], workspace, None, None, None, 1800)
    return see_other(link.url)


async def change_connector(request: web.Request) -> web.Response:
    """POST /console/connectors/{connector_id}: rename it, or switch it on or off."""
    fields, record = await read_console_form(request), await _record(request)
    status = fields.get("status")
    await request.app[SERVICES].connector_service.change(
        request[CALLER],
        record,
        name=name_in(fields, "name"),
        credentials=None,
        status=ConnectorStatus(status) if status in (ConnectorStatus.ACTIVE, ConnectorStatus.DISABLED) else None,
    )
    return see_other(f"{_PAGE}/{record.id}")


async def renew_connector(request: web.Request) -> web.Response:
    """POST …/{connector_id}/renew: a connect link that authorizes this connector again, and on to it."""
    await read_console_form(request)
    record = await _record(request)
    link = await request.app[SERVICES].connect_links.create(
        request[CALLER], record.workspace_name, None, record.id, None, 1800
    )
    return see_other(link.url)


async def check_connector(request: web.Request) -> web.Response:
    """POST …/{connector_id}/check: ask the application now."""
    await read_console_form(request)
    record = await _record(request)
    try:
        opened = await request.app[SERVICES].resolver.get_for(request[CALLER], record.id)
        opened.require_active()
        await opened.connector.check()
    except GatewayError as error:
        return await _shown(request, await _record(request), problem=error.detail)
    return await _shown(request, await _record(request), notice="The application answers and accepts the credentials.")


async def synchronize(request: web.Request) -> web.Response:
    """POST …/{connector_id}/synchronize: bring the copies up to date now."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    record = await _record(request)
    names = [fields["entity"]] if fields.get("entity") else None
    job = await services.synchronization.request(record, names, request[CALLER], is_full=False)
    return see_other(f"/console/jobs/{job.id}")


async def delete_connector(request: web.Request) -> web.Response:
    """POST …/{connector_id}/delete: it, its records, results and secrets."""
    fields, record = await read_console_form(request), await _record(request)
    if fields.get("name") != record.name:
        return await _shown(request, record, problem=f"Write its name, {record.name}, to delete it.")
    job = await request.app[SERVICES].deletion.delete_connector(request[CALLER], record.id, request[REQUEST_ID])
    return see_other(f"/console/jobs/{job.id}")


async def _record(request: web.Request) -> ConnectorRecord:
    connector_id = path_id(request, "connector_id")
    if AUDIT in request:
        request[AUDIT].connector_id = connector_id
    return await request.app[SERVICES].connectors.get(request[CALLER], connector_id)


async def _shown(
    request: web.Request, record: ConnectorRecord, *, notice: str | None = None, problem: str | None = None
) -> web.Response:
    services = request.app[SERVICES]
    kind = services.catalog.kind(record.kind)
    return console_page(
        request,
        "connector.html",
        active="connectors",
        status=422 if problem else 200,
        connector=connector_view(record, services.catalog),
        entities={name: kind.actions_of(name) for name in kind.spec.entities},
        freshness=await services.synchronization.freshness(record),
        notice=notice,
        problem=problem,
    )
