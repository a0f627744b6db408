"""Signing in to the console with a client's id and secret, and out again."""

from aiohttp import web

from gateway.errors import Forbidden, OrganizationRequired, RateLimited, RequestError, Unauthorized
from gateway.http.bodies import read_form_fields
from gateway.http.console_session import begin_session, end_session, read_console_form
from gateway.http.handlers.console.page import see_other
from gateway.http.handlers.tokens import address_of
from gateway.http.keys import PAGES, SERVICES, SESSION
from gateway.http.responses import html_response

_HOME = "/console"


async def show_sign_in(request: web.Request) -> web.Response:
    """GET /console/sign-in."""
    return _form(request, "", request.query.get("next", ""))


async def sign_in(request: web.Request) -> web.Response:
    """POST /console/sign-in: a session with a cookie of its own, and on to the page that was wanted."""
    fields = await read_form_fields(request)
    client_id, secret = fields.get("client_id", "").strip(), fields.get("client_secret", "").strip()
    organization = fields.get("organization_id", "").strip() or None
    sessions = request.app[SERVICES].console_sessions
    try:
        token = await sessions.begin(client_id, secret, organization, address_of(request))
    except (Unauthorized, RateLimited, OrganizationRequired, Forbidden) as error:
        return _form(request, client_id, fields.get("next", ""), error)
    response = see_other(_own_page(fields.get("next", "")))
    begin_session(request, response, token)
    return response


async def sign_out(request: web.Request) -> web.Response:
    """POST /console/sign-out."""
    await read_console_form(request)
    await request.app[SERVICES].console_sessions.end(request[SESSION])
    response = see_other("/console/sign-in")
    end_session(request, response)
    return response


def _own_page(wanted: str) -> str:
    """A page of the console, never an address elsewhere."""
    is_own = wanted == _HOME or wanted.startswith((f"{_HOME}/", f"{_HOME}?"))
    return wanted if is_own and "\\" not in wanted and wanted.isprintable() and wanted.isascii() else _HOME


def _form(request: web.Request, client_id: str, wanted: str, error: RequestError | None = None) -> web.Response:
    pages = request.app[PAGES]
    html = pages.render(
        "console/sign_in.html",
        client_id=client_id,
        next=wanted,
        error=error.detail if error else None,
        asks_organization=isinstance(error, OrganizationRequired),
    )
    return html_response(html, pages.headers(), 200 if error is None else 422)
