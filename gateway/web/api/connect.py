"""Connect links: programs create them and people open them; the pages work without scripts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field, StringConstraints
from yarl import URL

from gateway.access.identity.model import Scope
from gateway.contract.connectors import (
    MAX_LINK_SECONDS,
    SECRET,
    ConnectLinkView,
    ConnectSession,
    ConnectSessionView,
    SessionStatus,
)
from gateway.contract.oauth import FlowStatus
from gateway.errors import FieldError, GatewayError, InvalidCredentials, InvalidParams
from gateway.kinds.catalog import Kind
from gateway.web.bodies import Body, Name, json_response, path_id, read_body, read_form_fields
from gateway.web.keys import CALLER, SERVICES
from gateway.web.pages.connect_form import REFERENCE, methods_of
from gateway.web.pages.rendering import PAGES, html_response
from gateway.web.pages.sign_in import console_caller
from gateway.web.route import Route


class CreateConnectSession(Body):
    """A link with which a person connects one application."""

    EXAMPLES: ClassVar = {"link": {"workspace_name": "acme", "connector_types": ["support-desk", "team-chat"]}}

    workspace_name: Name = Field(description="the workspace that the connector will belong to")
    connector_types: list[str] | None = Field(
        None, min_length=1, max_length=100, description="the kinds to choose from; all when left out"
    )
    connector_id: Annotated[UUID, Field(strict=False)] | None = Field(
        None, description="the existing connector to authorize again"
    )
    redirect_url: str | None = Field(
        None, max_length=2000, description="where the browser returns to: one of the client's redirect URLs"
    )
    owner: Annotated[str, StringConstraints(max_length=47)] | None = Field(
        None, description="to whom a new connector will belong: `me`, or a person's id; shared when left out"
    )
    name: Name | None = Field(None, description="display name of a new connector; the application's when left out")
    expires_in: int = Field(
        MAX_LINK_SECONDS, ge=1, le=MAX_LINK_SECONDS, description="seconds for which the link is valid"
    )


async def create_connect_session(request: web.Request) -> web.Response:
    """Creates a link with which a person connects one application, by consent or with a key. The link works once, for
    at most 30 minutes. `redirect_url` must be one of the client's redirect URLs.
    """
    body, services = await read_body(request, CreateConnectSession), request.app[SERVICES]
    link = await services.connectors.links.create(
        request[CALLER],
        body.workspace_name,
        connector_types=body.connector_types,
        connector_id=body.connector_id,
        redirect_url=body.redirect_url,
        seconds=body.expires_in,
        owner=body.owner,
        name=body.name,
    )
    return json_response(link, 201, {"Location": f"/api/v1/connect/sessions/{link.id}", "Cache-Control": "no-store"})


async def get_connect_session(request: web.Request) -> ConnectSessionView:
    """The state of a link: `pending`, `completed` with the `connector_id`, or `expired`."""
    return await request.app[SERVICES].connectors.links.get(request[CALLER], path_id(request, "session_id"))


async def show_connect_page(request: web.Request) -> web.Response:
    """GET /connect/{token}: the applications to choose from, or the form of the chosen one."""
    session = await _session(request)
    if session.status is not SessionStatus.PENDING:
        return _ended(request, session)
    chosen = request.query.get("kind") or (session.kinds[0] if len(session.kinds) == 1 else None)
    catalog = request.app[SERVICES].catalog
    if chosen not in session.kinds:
        served = [catalog.kinds[name].spec for name in session.kinds if name in catalog.kinds]
        kinds = [
            {"name": spec.kind, "application": spec.application, "title": spec.title}
            for spec in sorted(served, key=lambda spec: spec.application.casefold())
        ]
        return _page(request, session, "connect/choose.html", workspace=session.workspace_name, kinds=kinds)
    return await _form(request, session, catalog.served(chosen))


async def send_connect_form(request: web.Request) -> web.Response:
    """POST /connect/{token}: connect with the credentials of the form, or continue to the application's consent."""
    session, fields = await _session(request), await read_form_fields(request)
    links, catalog = request.app[SERVICES].connectors.links, request.app[SERVICES].catalog
    if session.status is not SessionStatus.PENDING:
        return _ended(request, session)
    kind, method = catalog.kind(fields.pop("kind", "")), fields.pop("method", "")
    values = {name: value.strip() for name, value in fields.items() if value.strip()}
    try:
        if method == kind.spec.oauth_method and _is_by_consent(kind, values):
            address = await links.begin_consent(session, request.match_info["token"], kind.name, values)
            return _page(request, session, "connect/leave.html", kind=_named(kind), address=address)
        credentials = _with_references(values) if await _places(request, session) else values
        record = await links.connect(session, kind.name, credentials)
    except (InvalidParams, InvalidCredentials) as error:
        return await _form(request, session, kind=kind, method=method, values=values, error=error)
    await request.app[SERVICES].copy.synchronization.begin(record, session.client_id)
    return _done(request, session, kind, record.id)


async def finish_connect(request: web.Request) -> web.Response:
    """GET /connect/return: the redirect URL of consents that began at a link."""
    token = request.query.get("state", "")
    session, state = await request.app[SERVICES].connectors.links.finish_consent(token)
    kind = request.app[SERVICES].catalog.served(state.kind)
    if state.status is FlowStatus.COMPLETED:
        return _done(request, session, kind, state.connector_id)
    pages = request.app[PAGES]
    was_denied = state.error == "access_denied"
    html = pages.render(
        "connect/done.html",
        status="failed",
        heading="You did not give consent" if was_denied else f"{kind.spec.application} could not be connected",
        text="Nothing was connected."
        if was_denied
        else f"Nothing was connected: {state.error_description or state.error or 'the application gave no reason'}",
        connector_id=None,
        origin=_origin(session),
        next_url=None,
        retry_url=f"/connect/{token}",
    )
    return html_response(html, pages.headers(_frame_ancestors(session)))


async def _session(request: web.Request) -> ConnectSession:
    return await request.app[SERVICES].connectors.links.open(request.match_info["token"])


async def _places(request: web.Request, session: ConnectSession) -> Sequence[str]:
    """The places in Vault whose secrets the form may name: only for who made the link, signed in to the console.

    Others who open a link, such as a customer, could have a secret sent to a server of their own.
    """
    allowed = request.app[SERVICES].settings.secret_references.get(session.organization_id, ())
    caller = await console_caller(request) if allowed else None
    is_own = caller is not None and (caller.client_id, caller.organization_id) == (
        session.client_id,
        session.organization_id,
    )
    return allowed if is_own else ()


def _with_references(values: Mapping[str, str]) -> dict[str, Any]:
    """The credentials as the API takes them; raises InvalidCredentials for both a value and a reference."""
    references = {
        name.removeprefix(REFERENCE): {SECRET: text} for name, text in values.items() if name.startswith(REFERENCE)
    }
    faults = [
        FieldError(f"/credentials/{name}", name, "reference", f"{name}: give either its value or a reference")
        for name in references
        if name in values
    ]
    if faults:
        raise InvalidCredentials(faults=faults)
    return {**{name: text for name, text in values.items() if not name.startswith(REFERENCE)}, **references}


def _is_by_consent(kind: Kind, values: Mapping[str, str]) -> bool:
    """Whether a form of the OAuth method asks for consent: it contains only variables, no tokens."""
    return kind.spec.oauth is not None and all(name in kind.spec.environment for name in values)


async def _form(
    request: web.Request,
    session: ConnectSession,
    kind: Kind,
    method: str = "",
    values: Mapping[str, str] | None = None,
    error: GatewayError | None = None,
) -> web.Response:
    places = await _places(request, session)
    methods = methods_of(kind, method, values or {}, error.faults if error else (), takes_references=bool(places))
    field_errors = {each["error"] for shown in methods for each in shown["fields"] if each["error"]}
    return _page(
        request,
        session,
        "connect/form.html",
        status=422 if error else 200,
        kind=_named(kind),
        methods=methods,
        place=places[0] if places else None,
        is_renewal=session.reauthorizes is not None,
        has_choice=len(session.kinds) > 1,
        error=error.detail if error and not field_errors else None,
    )


def _named(kind: Kind) -> dict[str, Any]:
    return {"name": kind.name, "application": kind.spec.application}


def _page(
    request: web.Request, session: ConnectSession, template: str, *, status: int = 200, **context: Any
) -> web.Response:
    pages = request.app[PAGES]
    html = pages.render(template, **{"address": f"/connect/{request.match_info['token']}", **context})
    return html_response(html, pages.headers(_frame_ancestors(session)), status)


def _ended(request: web.Request, session: ConnectSession) -> web.Response:
    """The page of a link that was used or has expired."""
    pages = request.app[PAGES]
    heading, text = (
        ("Already connected", "This link has been used; it is valid once.")
        if session.status is SessionStatus.COMPLETED
        else ("This link has expired", "Ask for a new one where you got it.")
    )
    return html_response(pages.render("message.html", heading=heading, text=text), pages.headers(), 410)


def _done(request: web.Request, session: ConnectSession, kind: Kind, connector_id: UUID | None) -> web.Response:
    pages, next_url = request.app[PAGES], None
    if session.redirect_url is not None:
        next_url = str(URL(session.redirect_url, encoded=True).update_query(connector_id=str(connector_id)))
    html = pages.render(
        "connect/done.html",
        status="completed",
        heading="Connected",
        text=f"{kind.spec.application} is connected.",
        connector_id=str(connector_id),
        origin=_origin(session),
        next_url=next_url,
        retry_url=None,
    )
    return html_response(html, pages.headers(_frame_ancestors(session)))


def _origin(session: ConnectSession) -> str | None:
    """The origin of the redirect URL: its pages receive the result and may show the link in a frame."""
    return str(URL(session.redirect_url, encoded=True).origin()) if session.redirect_url else None


def _frame_ancestors(session: ConnectSession) -> str:
    return _origin(session) or "'none'"


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/api/v1/connect/sessions",
        create_connect_session,
        "Create a link with which a person connects an application",
        "Connect links",
        body=CreateConnectSession,
        response=ConnectLinkView,
        answers={201: "The link, valid once"},
        sends={201: ("Location", "Cache-Control")},
        errors=(409,),
        scope=Scope.WRITE,
        audit="connect_session.create",
        python='link = await gateway.connectors.create_link(["support-desk", "team-chat"])\nprint(link.url)',
        in_session=True,
    ),
    Route(
        "GET",
        "/api/v1/connect/sessions/{session_id}",
        get_connect_session,
        "Get the state of a link",
        "Connect links",
        response=ConnectSessionView,
        answers={200: "The state of the link"},
        scope=Scope.READ,
        in_session=True,
    ),
    Route(
        "GET",
        "/connect/return",
        finish_connect,
        "The redirect URI of a link's consent",
        "Pages",
        is_open=True,
        is_page=True,
        is_browser_step=True,
    ),
    Route(
        "GET",
        "/connect/{token}",
        show_connect_page,
        "The page of a connect link",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route(
        "POST",
        "/connect/{token}",
        send_connect_form,
        "The form of a connect link",
        "Pages",
        audit="connector.create",
        is_open=True,
        is_page=True,
    ),
)
