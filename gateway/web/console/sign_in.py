"""Sign-in to the console, with a client's id and secret or at the provider, and sign-out."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from gateway.access.identity.model import Client, caller_among, id_of, organizations_of
from gateway.errors import (
    Forbidden,
    GatewayError,
    NotFound,
    OrganizationRequired,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from gateway.web.api.tokens import address_of
from gateway.web.console.page import see_other
from gateway.web.console.session import read_console_form, read_sign_in_form
from gateway.web.keys import ACCESS, AUDIT, SERVICES, SESSION
from gateway.web.pages.rendering import PAGES, html_response
from gateway.web.pages.sign_in import SESSION_COOKIE, SIGN_IN, provider_page, sign_in_methods

_HOME = "/console"
#: maximum characters of the page to redirect to after the sign-in
_MAX_NEXT = 2000
#: the purpose of a sign-in at the provider that begins a console session
_CONSOLE_PAGE = "console"


async def show_sign_in(request: web.Request) -> web.Response:
    """GET /console/sign-in."""
    return _form(request, request.query.get("next", ""))


async def sign_in(request: web.Request) -> web.Response:
    """POST /console/sign-in: begin a session with its own cookie, and redirect to the requested page."""
    fields, services = await read_sign_in_form(request), request.app[SERVICES]
    if not services.settings.secret_sign_in:
        raise NotFound("sign-in with a client's id and secret is turned off; sign in at the provider")
    client_id, secret = fields.get("client_id", "").strip(), fields.get("client_secret", "").strip()
    next_page = fields.get("next", "")
    try:
        client = await request.app[ACCESS].tokens.authenticated(client_id, secret, address_of(request))
        return await _session(request, [client], fields.get("organization_id", ""), next_page)
    except OrganizationRequired as error:
        organizations = ", ".join(sorted(map(str, client.organization_ids)))
        problem = OrganizationRequired(f"{error.detail}: {organizations}")
        return _form(request, next_page, problem, client_id=client_id, asks_organization=True)
    except (Unauthorized, RateLimited, Forbidden) as error:
        await request.app[ACCESS].clients.sign_in_failed("console.sign_in", client_id, error)
        return _form(request, next_page, error, client_id=client_id)


async def leave_to_sign_in(request: web.Request) -> web.Response:
    """POST /console/sign-in/provider: continue to the provider, and then to the requested page."""
    fields = await read_sign_in_form(request)
    organization_id = id_of(fields.get("organization_id", "").strip())
    # The members are stored until the person returns, so their length is limited.
    members = {"next": _own_page(fields.get("next", "")), "organization_id": str(organization_id or "")}
    try:
        return await provider_page(request, {"page": _CONSOLE_PAGE, **members})
    except (RateLimited, Unavailable) as error:
        return _form(request, members["next"], error)


async def console_signed_in_by_provider(
    request: web.Request, purpose: Mapping[str, Any], identified: Sequence[Client] | GatewayError
) -> web.Response:
    """Begin a session for the person that the provider identified, or show the reason of the refusal."""
    if isinstance(identified, GatewayError):
        return _form(request, purpose["next"], identified)
    try:
        return await _session(request, identified, purpose["organization_id"], purpose["next"])
    except OrganizationRequired:
        all_organizations = await request.app[SERVICES].identity.organizations()
        ids = organizations_of(identified)
        organizations = {str(each.id): each.name for each in all_organizations if each.id in ids}
        return _form(request, purpose["next"], organizations=organizations)
    except Forbidden as error:
        return _form(request, purpose["next"], error)


async def sign_out(request: web.Request) -> web.Response:
    """POST /console/sign-out."""
    await read_console_form(request)
    await request.app[ACCESS].console_sessions.end(request[SESSION])
    response = see_other(SIGN_IN)
    SESSION_COOKIE.delete(request, response)
    return response


async def _session(request: web.Request, clients: Sequence[Client], organization: str, next_page: str) -> web.Response:
    """Begin a session; raises OrganizationRequired and OrganizationForbidden."""
    caller, pending = caller_among(clients, organization.strip() or None), request[AUDIT]
    pending.organization_id, pending.actor = caller.organization_id, caller.client_id
    token = await request.app[ACCESS].console_sessions.begin(caller)
    response = see_other(_own_page(next_page))
    SESSION_COOKIE.set(request, response, token)
    return response


def _own_page(next_page: str) -> str:
    """The path if it is a page of the console, else the overview: no redirect leads to another site."""
    is_own = len(next_page) <= _MAX_NEXT and (next_page == _HOME or next_page.startswith((f"{_HOME}/", f"{_HOME}?")))
    return next_page if is_own and "\\" not in next_page and next_page.isprintable() and next_page.isascii() else _HOME


def _form(
    request: web.Request,
    next_page: str,
    error: GatewayError | None = None,
    *,
    client_id: str = "",
    asks_organization: bool = False,
    organizations: Mapping[str, str] | None = None,
) -> web.Response:
    pages = request.app[PAGES]
    html = pages.render(
        "console/sign_in.html",
        client_id=client_id,
        next=next_page,
        error=error.detail if error else None,
        asks_organization=asks_organization,
        organizations=organizations or {},
        **sign_in_methods(request),
    )
    return html_response(html, pages.headers(), 200 if error is None else 422)
