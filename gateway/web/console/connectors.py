"""Connectors in the console: list, state and actions."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web

from gateway.access.audit.activity import MAX_ERRORS
from gateway.access.audit.log import EntryFilter
from gateway.access.identity.model import id_of
from gateway.contract.connectors import Connector, ConnectorSelection, ConnectorSettings, ConnectorStatus
from gateway.contract.gateway_state import RequestSelection
from gateway.contract.oauth import CONSOLE_CONNECTED_PATH
from gateway.errors import GatewayError, MalformedRequest
from gateway.jobs.model import JobFilter
from gateway.web.api.audit import entry_view
from gateway.web.api.jobs import job_view
from gateway.web.bodies import path_id
from gateway.web.console.page import console_page, see_other
from gateway.web.console.plots import plots_of
from gateway.web.console.session import chosen_in, name_in, read_console_form, read_form_once
from gateway.web.keys import AUDIT, CALLER, REQUEST_ID, SERVICES

_PAGE = "/console/connectors"
#: maximum connectors of a page, and maximum suggested workspaces
_LIMIT = 100
#: maximum calls, requests and jobs on the page of a connector
_RECENT = 10


async def list_connectors(request: web.Request) -> web.Response:
    """GET /console/connectors: the connectors that match the filters, with their last use and errors.

    Connect links of the console return here with their `connector_id`.
    """
    if connected_id := id_of(request.query.get("connector_id")):
        return see_other(f"{_PAGE}/{connected_id}?connected")
    services, caller = request.app[SERVICES], request[CALLER]
    chosen = {name: request.query.get(name, "").strip() for name in ("query", "kind", "status", "workspace")}
    selection = ConnectorSelection(
        workspace_name=chosen["workspace"] or None,
        kind=chosen["kind"] or None,
        status=chosen["status"] or None,
        containing=chosen["query"] or None,
    )
    found = await services.connectors.change.find(caller, selection, request.query.get("cursor"), _LIMIT)
    sent = {name: value for name, value in chosen.items() if value}
    workspaces = await services.connectors.access.workspaces(caller, limit=_LIMIT)
    activity = await services.logs.audit.activity(caller.organization_id, [UUID(each.id) for each in found.data])
    return console_page(
        request,
        "connectors.html",
        active="connectors",
        connectors=[(each, activity[UUID(each.id)]) for each in found.data],
        max_errors=MAX_ERRORS,
        may_import=services.connectors.imports.may(request[CALLER]),
        kinds=sorted((kind.spec.application, kind.name) for kind in services.catalog),
        statuses=[status.value for status in ConnectorStatus],
        workspaces=[workspace.name for workspace in workspaces],
        served_now=services.catalog.kinds.get(request.query.get("served", "")),
        chosen=chosen,
        is_filtered=bool(sent),
        more=found.next_cursor and urlencode({"cursor": found.next_cursor, **sent}),
    )


async def show_connector(request: web.Request) -> web.Response:
    """GET /console/connectors/{connector_id}: one tab of its page."""
    return await _shown(request, await _record(request))


async def connect(request: web.Request) -> web.Response:
    """POST /console/connectors/connect: create a connect link, which returns to the console, and redirect to it."""
    fields, services = await read_form_once(request), request.app[SERVICES]
    workspace = name_in(fields, "workspace_name")
    if not workspace:
        raise MalformedRequest("enter the workspace of the new connector")
    link = await services.connectors.links.create(
        request[CALLER],
        workspace,
        connector_types=[fields["kind"]] if fields.get("kind") else None,
        redirect_url=services.settings.base_url + CONSOLE_CONNECTED_PATH,
        name=name_in(fields, "name"),
    )
    return see_other(link.url)


async def change_connector(request: web.Request) -> web.Response:
    """POST /console/connectors/{connector_id}: rename, enable or disable it."""
    fields, connector_id = await read_console_form(request), path_id(request, "connector_id")
    status = fields.get("status")
    await request.app[SERVICES].connectors.change.change(
        request[CALLER],
        connector_id,
        ConnectorSettings(name=name_in(fields, "name")),
        status=ConnectorStatus(status) if status in (ConnectorStatus.ACTIVE, ConnectorStatus.DISABLED) else None,
    )
    return see_other(f"{_PAGE}/{connector_id}?tab=settings")


async def renew_connector(request: web.Request) -> web.Response:
    """POST …/{connector_id}/renew: create a connect link that authorizes this connector again, and redirect to it."""
    await read_form_once(request)
    record = await _record(request)
    link = await request.app[SERVICES].connectors.links.create(
        request[CALLER],
        record.workspace_name,
        connector_id=UUID(record.id),
        redirect_url=request.app[SERVICES].settings.base_url + CONSOLE_CONNECTED_PATH,
    )
    return see_other(link.url)


async def check_connector(request: web.Request) -> web.Response:
    """POST …/{connector_id}/check: check the credentials at the application."""
    await read_console_form(request)
    record = await _record(request)
    try:
        opened = await request.app[SERVICES].connectors.resolver.get_for(request[CALLER], UUID(record.id))
        opened.require_active()
        await opened.connector.check()
    except GatewayError as error:
        return await _shown(request, await _record(request), problem=error.detail)
    return await _shown(request, await _record(request), notice="The application answers and accepts the credentials.")


async def synchronize(request: web.Request) -> web.Response:
    """POST …/{connector_id}/synchronize: synchronize the chosen copies now; all if none is chosen."""
    fields, services = await read_form_once(request), request.app[SERVICES]
    record = await services.connectors.access.get(request[CALLER], path_id(request, "connector_id"))
    names = chosen_in(fields, "entity:") or None
    job = await services.copy.synchronization.request(record, names, request[CALLER], is_full=False)
    return see_other(f"/console/jobs/{job.id}")


async def delete_connector(request: web.Request) -> web.Response:
    """POST …/{connector_id}/delete: delete it with its records, results and secrets."""
    fields, record = await read_console_form(request), await _record(request)
    if fields.get("name") != record.name:
        return await _shown(request, record, tab="settings", problem=f"Enter its name, {record.name}, to delete it.")
    job = await request.app[SERVICES].operations.deletion.delete_connector(
        request[CALLER], UUID(record.id), request[REQUEST_ID]
    )
    return see_other(f"/console/jobs/{job.id}")


async def _record(request: web.Request) -> Connector:
    connector_id = path_id(request, "connector_id")
    if AUDIT in request:
        request[AUDIT].connector_id = connector_id
    return await request.app[SERVICES].connectors.change.get(request[CALLER], connector_id)


async def _shown(
    request: web.Request,
    connector: Connector,
    *,
    tab: str | None = None,
    notice: str | None = None,
    problem: str | None = None,
) -> web.Response:
    chosen = tab or request.query.get("tab", "")
    shown = chosen if chosen in _TABS else _TABS[0]
    address = f"{_PAGE}/{connector.id}"
    return console_page(
        request,
        "connector.html",
        active="connectors",
        status=422 if problem else 200,
        connector=connector,
        is_connected="connected" in request.query,
        tab=shown,
        tabs=[(each, f"{address}?tab={each}") for each in _TABS],
        notice=notice,
        problem=problem,
        **await _TAB_CONTEXT[shown](request, connector),
    )


async def _activity(request: web.Request, connector: Connector) -> dict[str, Any]:
    """Calls over time, and the latest requests, calls and jobs."""
    services, caller, connector_id = request.app[SERVICES], request[CALLER], UUID(connector.id)
    organization_id = caller.organization_id
    activity = await services.logs.audit.activity(organization_id, [connector_id])
    entries = await services.logs.audit.find(organization_id, EntryFilter(connector_id=connector_id), limit=_RECENT)
    selection = RequestSelection(connector_id=connector_id, person_id=caller.person_id)
    requests = await services.logs.requests.find(organization_id, selection, limit=_RECENT)
    jobs = await services.jobs.access.latest(caller, JobFilter(connector_id=connector_id), _RECENT)
    return {
        **await plots_of(request, "connector", connector_id),
        "activity": activity[connector_id],
        "max_errors": MAX_ERRORS,
        "entries": [entry_view(entry, services.catalog) for entry in entries],
        "requests": requests.data,
        "jobs": [job_view(request, job) for job in jobs],
    }


async def _copies(request: web.Request, connector: Connector) -> dict[str, Any]:
    """The state of each entity's copy."""
    synchronization = request.app[SERVICES].copy.synchronization
    freshness = await synchronization.freshness(request[CALLER], UUID(connector.id), connector.kind)
    return {"freshness": freshness, "records": sum(each.records for each in freshness.values())}


async def _operations(request: web.Request, connector: Connector) -> dict[str, Any]:
    """The operations by entity; none if the kind is not served."""
    kind = request.app[SERVICES].catalog.kinds.get(connector.kind)
    return {"entities": {} if kind is None else {name: kind.actions_of(name) for name in kind.spec.entities}}


async def _settings(_request: web.Request, _connector: Connector) -> dict[str, Any]:
    """Nothing beside the connector."""
    return {}


#: the tabs of a connector's page, and how each is read
_TAB_CONTEXT = {"activity": _activity, "copies": _copies, "operations": _operations, "settings": _settings}
_TABS = tuple(_TAB_CONTEXT)
