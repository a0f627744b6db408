"""People in the console, for administrators: list, add, change, suspend, delete, and what acts for a person."""

from collections.abc import Mapping
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web

from gateway.access.identity.model import Scope, id_of
from gateway.contract.connectors import ConnectorSelection
from gateway.contract.people import NewPerson, PersonChange, PersonSelection, PersonStatus, PersonView
from gateway.errors import Conflict, FieldError, InsufficientScope, InvalidParams
from gateway.web.bodies import path_id
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.console.rights import lines_in, rights_fields, scopes_in, workspaces_in
from gateway.web.console.session import read_console_form, read_form_once
from gateway.web.keys import ACCESS, CALLER, REQUEST_ID, SERVICES

PAGE = "/console/people"
#: people of a page; and maximum connectors, sessions, grants and schedules of a person
_LIMIT, _MOST = 25, 200
#: errors that are shown at the form
_REFUSED = (InvalidParams, Conflict, InsufficientScope)


async def list_people(request: web.Request) -> web.Response:
    """GET /console/people: the people that match the filters, and the form for another one."""
    return await _listed(request)


async def add_person(request: web.Request) -> web.Response:
    """POST /console/people: add a person, and redirect to the page of the person."""
    fields = await read_form_once(request)
    try:
        new = NewPerson(
            email=_text(fields, "email"),
            name=_text(fields, "name"),
            issuer=_text(fields, "issuer"),
            subject=_text(fields, "subject"),
            client_id=_client_in(fields),
            groups=lines_in(fields, "groups"),
            workspaces=workspaces_in(fields),
            scopes=scopes_in(fields),
        )
        person = await request.app[ACCESS].directory.create(request[CALLER], new)
    except _REFUSED as error:
        return await _listed(request, problem=error.detail, fields=fields)
    return see_other(f"{PAGE}/{person.id}")


async def show_person(request: web.Request) -> web.Response:
    """GET /console/people/{person_id}: the person, own connectors by name only, and who acts for the person."""
    return await _shown(request)


async def change_person(request: web.Request) -> web.Response:
    """POST /console/people/{person_id}: change name, email address and rights."""
    fields, person_id = await read_console_form(request), path_id(request, "person_id")
    change = PersonChange(
        email=_text(fields, "email"),
        name=_text(fields, "name"),
        groups=lines_in(fields, "groups"),
        workspaces=workspaces_in(fields),
        scopes=scopes_in(fields),
    )
    try:
        await request.app[ACCESS].directory.change(request[CALLER], person_id, change)
    except _REFUSED as error:
        return await _shown(request, problem=error.detail, fields=fields)
    return see_other(f"{PAGE}/{person_id}")


async def suspend_person(request: web.Request) -> web.Response:
    """POST /console/people/{person_id}/status: suspend the person and end what acts for the person, or reactivate."""
    fields, person_id = await read_console_form(request), path_id(request, "person_id")
    status = PersonStatus.ACTIVE if fields.get("status") == PersonStatus.ACTIVE else PersonStatus.SUSPENDED
    try:
        await request.app[ACCESS].directory.change(request[CALLER], person_id, PersonChange(status=status))
    except Conflict as error:
        return await _shown(request, problem=error.detail)
    return see_other(f"{PAGE}/{person_id}")


async def delete_person(request: web.Request) -> web.Response:
    """POST /console/people/{person_id}/delete: delete the person, and redirect to the job that deletes connectors."""
    fields, person_id = await read_console_form(request), path_id(request, "person_id")
    if "confirm" not in fields:
        return await _shown(request, problem="Check the box to delete the person.")
    deletion = request.app[SERVICES].operations.deletion
    try:
        job = await deletion.delete_person(request[CALLER], person_id, request[REQUEST_ID])
    except Conflict as error:
        return await _shown(request, problem=error.detail)
    return see_other(f"/console/jobs/{job.id}")


async def _listed(
    request: web.Request, *, problem: str | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    chosen = {name: request.query.get(name, "").strip() for name in ("query", "group", "status")}
    statuses = [status.value for status in PersonStatus]
    selection = PersonSelection(
        containing=chosen["query"] or None,
        group=chosen["group"] or None,
        status=PersonStatus(chosen["status"]) if chosen["status"] in statuses else None,
    )
    directory = request.app[ACCESS].directory
    page = await directory.find(request[CALLER], selection, request.query.get("cursor"), _LIMIT)
    sent = {name: value for name, value in chosen.items() if value}
    return console_page(
        request,
        "people.html",
        active="people",
        status=422 if problem else 200,
        people=page.data,
        chosen=chosen,
        statuses=statuses,
        is_filtered=bool(sent),
        more=page.next_cursor and urlencode({**sent, "cursor": page.next_cursor}),
        all_scopes=[scope.value for scope in Scope],
        provider=request.app[SERVICES].settings.oidc_issuer,
        fields=fields or {},
        problem=problem,
    )


async def _shown(
    request: web.Request, *, problem: str | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    services, access, caller = request.app[SERVICES], request.app[ACCESS], request[CALLER]
    person_id = path_id(request, "person_id")
    person = await access.directory.get(caller, person_id)
    own = await services.connectors.change.find(
        caller, ConnectorSelection(owner_id=person_id), limit=_MOST, with_personal=True
    )
    schedules = await services.operations.schedules.find(caller, None, _MOST, client_id=person_id)
    return console_page(
        request,
        "person.html",
        active="people",
        status=422 if problem else 200,
        person=person,
        product=(await access.clients.names(caller, [person.client_id])).get(person.client_id or ""),
        own=own.data,
        sessions=await services.operations.delegation.of_person(caller, person_id, _MOST),
        grants=(await access.authorization.grants(caller, None, _MOST, person_id)).data,
        schedules=schedules.data,
        connectors=await connectors_by_id(request, (each.connector_id for each in schedules.data)),
        all_scopes=[scope.value for scope in Scope],
        fields=fields or _fields_of(person),
        is_self=person_id == caller.client_id,
        problem=problem,
    )


def _fields_of(person: PersonView) -> Mapping[str, str]:
    named = {"name": person.name or "", "email": person.email or ""}
    return {**named, **rights_fields(person.scopes, person.workspaces, person.groups)}


def _text(fields: Mapping[str, str], name: str) -> str | None:
    return fields.get(name, "").strip() or None


def _client_in(fields: Mapping[str, str]) -> UUID | None:
    """The client in whose namespace the subject is; raises InvalidParams for text that is no id."""
    text = _text(fields, "client_id")
    client_id = id_of(text)
    if text is not None and client_id is None:
        message = f"client_id: {text[:60]!r} is no id of a client; the page Clients lists them"
        raise InvalidParams(faults=[FieldError("/client_id", "client_id", "invalid", message)])
    return client_id
