"""The page of a person: own applications, who acts for the person, and what was done."""

from uuid import UUID

from aiohttp import web

from gateway.access.audit.log import EntryFilter
from gateway.access.identity.model import Scope
from gateway.contract.connectors import ConnectorSelection
from gateway.contract.members import moment
from gateway.contract.oauth import CONSOLE_CONNECTED_PATH
from gateway.errors import MalformedRequest, NotFound
from gateway.web.api.audit import entry_view
from gateway.web.bodies import path_id
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.console.session import read_console_form, read_form_once
from gateway.web.keys import ACCESS, CALLER, REQUEST_ID, SERVICES
from gateway.web.route import Route

PAGE, _LIMIT, _RECENT = "/console/me", 200, 20


async def leave_to_page(request: web.Request) -> web.Response:
    """GET /me: redirects to the page."""
    return see_other(PAGE)


async def show_page(request: web.Request) -> web.Response:
    """GET /console/me: the person's own connectors, sessions, grants and latest actions."""
    services, access, caller = request.app[SERVICES], request.app[ACCESS], request[CALLER]
    if caller.person_id is None:
        return console_page(request, "me.html", active="me", is_person=False)
    own = await services.connectors.change.find(caller, ConnectorSelection(owner_id=caller.person_id), limit=_LIMIT)
    sessions = await services.operations.delegation.of_person(caller, caller.person_id, _LIMIT)
    grants = await access.authorization.own_grants(caller, _LIMIT)
    found = await services.logs.audit.find(caller.organization_id, EntryFilter(actor=caller.person_id), limit=_RECENT)
    entries = [entry_view(each, services.catalog) for each in found]
    return console_page(
        request,
        "me.html",
        active="me",
        is_person=True,
        own=own.data,
        sessions=[(each, moment(each.created_at), moment(each.expires_at)) for each in sessions],
        grants=[(each, moment(each.created_at)) for each in grants],
        entries=[(each, moment(each.at)) for each in entries],
        connectors=await connectors_by_id(request, [each.connector_id for each in entries]),
        may_connect=Scope.WRITE in caller.client.scopes,
        may_approve=Scope.APPROVE in caller.client.scopes,
    )


async def connect(request: web.Request) -> web.Response:
    """POST /console/me/connect: create a link with which the person connects an own application, and redirect to it."""
    await read_form_once(request)
    connectors, caller = request.app[SERVICES].connectors, request[CALLER]
    workspace = await connectors.access.default_workspace(caller)
    if workspace is None:
        raise MalformedRequest("an administrator must give you a workspace first")
    return_url = request.app[SERVICES].settings.base_url + CONSOLE_CONNECTED_PATH
    return see_other((await connectors.links.create(caller, workspace, redirect_url=return_url, owner="me")).url)


async def disconnect(request: web.Request) -> web.Response:
    """POST /console/me/connectors/{connector_id}/disconnect: delete an own connector with its copy and credentials."""
    await read_console_form(request)
    services, caller, connector_id = request.app[SERVICES], request[CALLER], path_id(request, "connector_id")
    await _require_own(request, connector_id)
    await services.operations.deletion.delete_connector(caller, connector_id, request[REQUEST_ID])
    return see_other(PAGE)


async def _require_own(request: web.Request, connector_id: UUID) -> None:
    """Raise NotFound unless the connector is the person's own: shared ones are on the page of connectors."""
    caller = request[CALLER]
    record = await request.app[SERVICES].connectors.access.get(caller, connector_id)
    if record.owner_id is None or record.owner_id != caller.person_id:
        raise NotFound("you have no such connector")


async def end_session(request: web.Request) -> web.Response:
    """POST /console/me/sessions/{person_session_id}/end: stop a client that acts for the person."""
    await read_console_form(request)
    person_id = await request.app[SERVICES].operations.delegation.end_own(
        request[CALLER], path_id(request, "person_session_id")
    )
    # This process forgets the token before it responds; the others are notified.
    request.app[ACCESS].tokens.on_notify(str(person_id))
    return see_other(PAGE)


async def revoke_grant(request: web.Request) -> web.Response:
    """POST /console/me/grants/{grant_id}/revoke: revoke the access that the person gave an agent's host."""
    await read_console_form(request)
    await request.app[ACCESS].authorization.revoke_own(request[CALLER], path_id(request, "grant_id"))
    return see_other(PAGE)


#: the address of the page that people can remember; the page itself is in the console
ROUTES: tuple[Route, ...] = (
    Route("GET", "/me", leave_to_page, "The page of a person", "Console", is_open=True, is_page=True),
)
