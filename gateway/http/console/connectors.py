"""Connectors in the console: which there are, how they stand, and what to do about it."""

from urllib.parse import urlencode

from aiohttp import web

from gateway.audit.activity import MAX_ERRORS
from gateway.audit.log import EntryFilter
from gateway.connectors.model import ConnectorRecord
from gateway.contract.connectors import ConnectorStatus
from gateway.contract.cursors import page_of, read_time_cursor
from gateway.contract.gateway_state import RequestSelection
from gateway.errors import GatewayError, MalformedRequest
from gateway.http.api.audit import entry_view
from gateway.http.api.connectors import connector_view
from gateway.http.api.jobs import job_view
from gateway.http.bodies import path_id
from gateway.http.console.page import console_page, see_other
from gateway.http.console.session import chosen_in, name_in, read_console_form
from gateway.http.keys import AUDIT, CALLER, REQUEST_ID, SERVICES
from gateway.identity.model import Scope
from gateway.jobs.model import JobFilter

_PAGE = "/console/connectors"
#: connectors on a page, and workspaces that are suggested
_LIMIT = 100
#: calls, requests and jobs that the page of a connector shows
_RECENT = 10


async def list_connectors(request: web.Request) -> web.Response:
    """GET /console/connectors: those that match the filters, with their last use and their errors."""
    services, caller = request.app[SERVICES], request[CALLER]
    chosen = {name: request.query.get(name, "").strip() for name in ("query", "kind", "status", "workspace")}
    records = await services.connectors.find(
        caller,
        workspace_name=chosen["workspace"] or None,
        kind=chosen["kind"] or None,
        status=chosen["status"] or None,
        containing=chosen["query"] or None,
        after=read_time_cursor(request.query.get("cursor")),
        limit=_LIMIT + 1,
    )
    page, cursor = page_of(records, _LIMIT)
    workspaces = await services.connectors.workspaces(caller, limit=_LIMIT)
    activity = await services.audit.activity(caller.organization_id, [record.id for record in page])
    return console_page(
        request,
        "connectors.html",
        active="connectors",
        connectors=[(connector_view(record, services.catalog), activity[record.id]) for record in page],
        max_errors=MAX_ERRORS,
        kinds=sorted((kind.spec.application, kind.name) for kind in services.catalog),
        statuses=[status.value for status in ConnectorStatus],
        workspaces=[workspace.name for workspace in workspaces],
        chosen=chosen,
        is_filtered=any(chosen.values()),
        more=cursor and urlencode({"cursor": cursor, **{name: value for name, value in chosen.items() if value}}),
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
    names = chosen_in(fields, "entity:") or None
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
    services, organization_id = request.app[SERVICES], record.organization_id
    kind = services.catalog.kind(record.kind)
    activity = await services.audit.activity(organization_id, [record.id])
    entries = await services.audit.find(organization_id, EntryFilter(connector_id=record.id), limit=_RECENT)
    requests = await services.request_log.find(
        record.organization_id, RequestSelection(connector_id=record.id), limit=_RECENT
    )
    jobs = await services.jobs.find(request[CALLER], JobFilter(connector_id=record.id), None, _RECENT)
    freshness = await services.synchronization.freshness(record)
    return console_page(
        request,
        "connector.html",
        active="connectors",
        status=422 if problem else 200,
        connector=connector_view(record, services.catalog),
        activity=activity[record.id],
        max_errors=MAX_ERRORS,
        entities={name: kind.actions_of(name) for name in kind.spec.entities},
        freshness=freshness,
        records=sum(each.records for each in freshness.values()),
        entries=[entry_view(entry, services.catalog) for entry in entries],
        may_audit=Scope.ADMIN in request[CALLER].client.scopes,
        requests=requests.data,
        jobs=[job_view(request, job) for job in jobs],
        notice=notice,
        problem=problem,
    )
