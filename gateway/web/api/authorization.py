"""The authorization server for agents' hosts: metadata, sign-in, consent, registration."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

from aiohttp import web
from multidict import MultiDict

from gateway.access.identity.model import Caller, Client, caller_among, id_of, organizations_of
from gateway.access.identity.tokens import hashed, new_secret
from gateway.agents.mcp.origins import is_origin_allowed, origins_of
from gateway.contract.oauth import (
    AUTHORIZE,
    REGISTER,
    RESOURCE_METADATA,
    SERVER_METADATA,
    AuthorizationRequest,
    HostRegistration,
    NewGrant,
    RegisteredHostView,
    ResourceMetadataView,
    ServerMetadataView,
)
from gateway.contract.problems import OAuthErrorView
from gateway.errors import (
    GatewayError,
    MalformedRequest,
    NotFound,
    OAuthError,
    RateLimited,
    Unauthorized,
    Unavailable,
    UnknownConnectorType,
)
from gateway.web.bodies import json_response, read_bytes, read_json
from gateway.web.cookies import HostCookie
from gateway.web.keys import ACCESS, SERVICES
from gateway.web.pages.rendering import PAGES, html_response
from gateway.web.pages.sign_in import provider_page, sign_in_methods
from gateway.web.route import PAGE_HEADERS, Route

#: the purpose of a sign-in at the provider that continues an authorization request
AUTHORIZE_PAGE = "authorize"

_BROWSER = HostCookie("gateway-authorize", 600, "Strict")
_MAX_FIELDS, _MAX_WORKSPACES = 1000, 500
#: maximum bytes of a form: names of so many workspaces, with few escapes
_MAX_FORM = 128 << 10
_STALE = "This page has expired, or was opened in another browser. Go back to your agent and start again."
_MEANING = {
    "read": "Read: see everything in the workspaces' applications",
    "write": "Write: change data there, and connect applications",
}
# Hosts show the description to the person who is connecting them.
_NO_REGISTRATION = OAuthErrorView(
    "access_denied",
    "this gateway does not let hosts register themselves; its operator allows it with GATEWAY_MCP_REGISTRATION=true. "
    "A host with a client ID metadata document needs no registration",
)
_PUBLIC = {"Cache-Control": "max-age=300"}
_NO_STORE = {"Cache-Control": "no-store"}


async def resource_metadata(request: web.Request) -> web.Response:
    """The metadata of the resource `/mcp` (RFC 9728 §2)."""
    return _resource_metadata(request, "/mcp")


async def six_tools_metadata(request: web.Request) -> web.Response:
    """The metadata of the resource `/mcp`, at the path of RFC 9728 §3.1."""
    return _resource_metadata(request, "/mcp")


async def kind_metadata(request: web.Request) -> web.Response:
    """The metadata of the resource `/mcp/{kind}` (RFC 9728 §2)."""
    try:
        kind = request.app[SERVICES].catalog.kind(request.match_info["kind"])
    except UnknownConnectorType as error:
        raise NotFound(error.detail) from error
    return _resource_metadata(request, f"/mcp/{kind.name}")


def _resource_metadata(request: web.Request, path: str) -> web.Response:
    return json_response(request.app[ACCESS].authorization.resource_metadata(path), headers=_PUBLIC)


async def server_metadata(request: web.Request) -> web.Response:
    """The metadata of the authorization server for agents' hosts (RFC 8414 §2)."""
    return json_response(request.app[ACCESS].authorization.server_metadata(), headers=_PUBLIC)


async def register(request: web.Request) -> web.Response:
    """Registers an agent's host that has no metadata document (RFC 7591), if `GATEWAY_MCP_REGISTRATION` allows it;
    otherwise 403 with an `error_description` that names the setting.
    """
    if not request.app[SERVICES].settings.registers_hosts:
        return json_response(_NO_REGISTRATION, 403, _NO_STORE)
    await request.app[ACCESS].attempts.require("registration of a host", request.remote or "")
    document = await read_json(request)
    try:
        return json_response(await request.app[ACCESS].authorization.register(document), 201, _NO_STORE)
    except OAuthError as error:
        return json_response(OAuthErrorView(error.code, error.description), 400, _NO_STORE)


async def authorize(request: web.Request) -> web.Response:
    """For browsers: the page on which a person signs in to give an agent's host access, by the authorization code grant
    with PKCE. The gateway redirects only after the person has acted.
    """
    query = dict(request.query)
    if len(query) < len(request.query):
        return _refusal(request, "The request has a parameter twice.")
    try:
        authorization_request = await request.app[ACCESS].authorization.requested(query, request.remote or "")
    except OAuthError as error:
        return _refusal(request, error.description, error.back, error.host_name)
    browser = _BROWSER.secret(request) or new_secret()
    sealed = request.app[ACCESS].page_seals.sealed({"request": asdict(authorization_request)}, hashed(browser))
    response = _sign_in_page(request, authorization_request, sealed)
    _BROWSER.set(request, response, browser)
    return response


async def sign_in(request: web.Request) -> web.Response:
    """For browsers: the form of the sign-in page, with a client's id and secret."""
    form = await _Form.read(request)
    if form is None:
        return _refusal(request, _STALE)
    if not form.app[SERVICES].settings.secret_sign_in:
        raise NotFound("sign-in with a client's id and secret is turned off; sign in at the provider")
    try:
        client = await request.app[ACCESS].tokens.authenticated(
            form.text("client_id"), form.text("client_secret"), request.remote or ""
        )
    except (Unauthorized, RateLimited) as error:
        await request.app[ACCESS].clients.sign_in_failed("agent.sign_in", form.text("client_id"), error)
        return _sign_in_page(request, form.authorization_request, form.sealed(), error.detail)
    return await _signed_in(request, form, [client])


async def leave_to_sign_in(request: web.Request) -> web.Response:
    """For browsers: redirects to the operator's OpenID Connect provider to sign in there."""
    form = await _Form.read(request)
    if form is None:
        return _refusal(request, _STALE)
    try:
        return await provider_page(request, {"page": AUTHORIZE_PAGE, **form.carried})
    except (RateLimited, Unavailable) as error:
        return _sign_in_page(request, form.authorization_request, form.sealed(), error.detail)


async def signed_in_by_provider(
    request: web.Request, purpose: Mapping[str, Any], identified: Sequence[Client] | GatewayError
) -> web.Response:
    """Continues a request after the sign-in at the provider: with the consent page, or with the sign-in page and the
    reason of the refusal.
    """
    form = _Form.of(request.app, purpose)
    if isinstance(identified, GatewayError):
        return _sign_in_page(request, form.authorization_request, form.sealed(), identified.detail)
    return await _signed_in(request, form, identified)


async def _signed_in(request: web.Request, form: "_Form", clients: Sequence[Client]) -> web.Response:
    """The consent page; first the choice of an organization if the clients of the person have several."""
    ids = organizations_of(clients)
    if len(ids) == 1:
        return await _consent_page(request, form, caller_among(clients, None))
    known = {each.id: each.name for each in await form.app[SERVICES].identity.organizations()}
    names = {str(each): known[each] for each in sorted(ids, key=known.__getitem__)}
    sealed = form.sealed(client_ids=" ".join(str(each.id) for each in clients))
    return _page(request, "organization", request=form.authorization_request, sealed=sealed, names=names)


async def choose_organization(request: web.Request) -> web.Response:
    """For browsers: the organization for which the host acts."""
    form = await _Form.read(request)
    clients = () if form is None else await form.clients()
    chosen = None if form is None else id_of(form.text("organization_id"))
    if form is None or chosen not in organizations_of(clients):
        return _refusal(request, _STALE)
    return await _consent_page(request, form, caller_among(clients, str(chosen)))


def _sign_in_page(
    request: web.Request, authorization_request: AuthorizationRequest, sealed: str, error: str | None = None
) -> web.Response:
    return _page(
        request,
        "sign_in",
        403 if error else 200,
        request=authorization_request,
        place=authorization_request.place,
        sealed=sealed,
        error=error,
        **sign_in_methods(request),
    )


async def _consent_page(request: web.Request, form: "_Form", caller: Caller) -> web.Response:
    authorization_request, client = form.authorization_request, caller.client
    workspaces = await form.app[SERVICES].connectors.access.workspaces(caller, limit=_MAX_WORKSPACES)
    sealed = form.sealed(client_id=str(client.id), organization_id=str(caller.organization_id))
    return _page(
        request,
        "consent",
        form_target=authorization_request.form_target,
        request=authorization_request,
        place=authorization_request.place,
        sealed=sealed,
        client=client.name,
        scopes={scope: _MEANING[scope] for scope in authorization_request.scopes if scope in client.scopes},
        workspaces=[workspace.name for workspace in workspaces],
    )


async def consent(request: web.Request) -> web.Response:
    """For browsers: redirects to the host with a code, or with an error if the person denied access."""
    form = await _Form.read(request)
    client = None if form is None else await form.client()
    if form is None or client is None or form.organization_id not in client.organization_ids:
        return _refusal(request, _STALE)
    server, authorization_request = request.app[ACCESS].authorization, form.authorization_request
    scopes = tuple(each for each in authorization_request.scopes if each in form.all("scope") and each in client.scopes)
    if form.text("decision") != "allow" or not scopes:
        return _redirect(server.denied(authorization_request))
    assert form.organization_id is not None
    # Ticked workspaces override the box for all, which is ticked when the page opens.
    chosen = tuple(form.all("workspace"))
    workspaces = chosen if chosen or form.text("all_workspaces") != "yes" else None
    caller = Caller(client, form.organization_id)
    return _redirect(await server.granted(authorization_request, caller, NewGrant(scopes, workspaces)))


class _Form:
    """A form of a page, sent by the browser that the page was made for."""

    def __init__(self, app: web.Application, fields: "MultiDict[str]", state: dict[str, Any], context: bytes) -> None:
        self.app = app
        self._fields = fields
        self._state = state
        self._context = context
        members = state["request"]
        self.authorization_request = AuthorizationRequest(**{**members, "scopes": tuple(members["scopes"])})

    @classmethod
    async def read(cls, request: web.Request) -> "_Form | None":
        """The form; None if it is from another browser or site, or has expired."""
        if not is_origin_allowed(request, origins_of(request.app[SERVICES].settings.base_url)):
            return None
        if request.content_type != "application/x-www-form-urlencoded":
            raise MalformedRequest("the body must be application/x-www-form-urlencoded")
        try:
            text = (await read_bytes(request, _MAX_FORM)).decode()
            fields = MultiDict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS))
            browser = _BROWSER.secret(request)
            if browser is None or any("\x00" in value for value in fields.values()):
                return None
            context = hashed(browser)
            state = request.app[ACCESS].page_seals.opened(fields.get("request", ""), context)
            return cls(request.app, fields, state, context)
        except (KeyError, ValueError):
            return None

    @classmethod
    def of(cls, app: web.Application, carried: Mapping[str, Any]) -> "_Form":
        """The form from the members of `carried`, after the sign-in at the provider."""
        return cls(app, MultiDict(), {"request": carried["request"]}, bytes.fromhex(carried["context"]))

    @property
    def carried(self) -> dict[str, Any]:
        """The members with which the request continues after the sign-in at the provider, in the same browser."""
        return {"request": asdict(self.authorization_request), "context": self._context.hex()}

    def text(self, name: str) -> str:
        return self._fields.get(name, "")

    def all(self, name: str) -> list[str]:
        return self._fields.getall(name, [])

    def sealed(self, **more: str) -> str:
        """The sealed state for the next page."""
        return self.app[ACCESS].page_seals.sealed(
            {"request": asdict(self.authorization_request), **more}, self._context
        )

    @property
    def organization_id(self) -> UUID | None:
        text = self._state.get("organization_id")
        return None if text is None else UUID(text)

    async def clients(self) -> Sequence[Client]:
        """The clients of the person who signed in, without those that were disabled since."""
        ids = str(self._state.get("client_ids", "")).split()
        found = [await self.app[SERVICES].identity.enabled_client(UUID(each)) for each in ids]
        return [each for each in found if each is not None]

    async def client(self) -> Client | None:
        """The client that signed in, unless it was disabled since."""
        text = self._state.get("client_id")
        return None if text is None else await self.app[SERVICES].identity.enabled_client(UUID(text))


def _page(http: web.Request, name: str, status: int = 200, form_target: str = "", **context: Any) -> web.Response:
    pages = http.app[PAGES]
    html = pages.render(f"authorize/{name}.html", **context)
    return html_response(html, pages.headers(form_target=form_target), status)


def _refusal(request: web.Request, text: str, back: str | None = None, host_name: str = "") -> web.Response:
    """The page with the reason of the refusal, and a link back to the host instead of a redirect."""
    return _page(request, "refusal", 400, text=text, back=back, host_name=host_name)


def _redirect(url: str) -> web.Response:
    return web.Response(status=303, headers={"Location": url, **_NO_STORE, "Referrer-Policy": "no-referrer"})


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        RESOURCE_METADATA,
        resource_metadata,
        "Metadata of the resource /mcp (RFC 9728)",
        "Agents",
        response=ResourceMetadataView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        RESOURCE_METADATA + "/mcp",
        six_tools_metadata,
        "Metadata of the resource /mcp (RFC 9728)",
        "Agents",
        response=ResourceMetadataView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        RESOURCE_METADATA + "/mcp/{kind}",
        kind_metadata,
        "Metadata of the resource /mcp/{kind} (RFC 9728)",
        "Agents",
        response=ResourceMetadataView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        SERVER_METADATA,
        server_metadata,
        "Metadata of the authorization server (RFC 8414)",
        "Agents",
        response=ServerMetadataView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        AUTHORIZE,
        authorize,
        "Start a consent for an agent's host (RFC 6749 §4.1.1)",
        "Agents",
        answers={200: "The sign-in page", 400: "A page that says what is wrong"},
        media={200: ("text/html",), 400: ("text/html",)},
        sends={
            200: ("Set-Cookie", *PAGE_HEADERS),
            400: PAGE_HEADERS,
        },
        is_browser_step=True,
        is_open=True,
    ),
    Route(
        "POST",
        AUTHORIZE + "/sign-in",
        sign_in,
        "Sign in with a client's id and secret",
        "Agents",
        answers={
            200: "The consent page",
            400: "A page that says what is wrong",
            403: "The sign-in page with the reason of the refusal",
        },
        media={200: ("text/html",), 400: ("text/html",), 403: ("text/html",)},
        reads=("Origin",),
        sends={
            200: PAGE_HEADERS,
            400: PAGE_HEADERS,
            403: PAGE_HEADERS,
        },
        is_browser_step=True,
        is_open=True,
    ),
    Route(
        "POST",
        AUTHORIZE + "/provider",
        leave_to_sign_in,
        "Sign in at the operator's OpenID Connect provider",
        "Agents",
        answers={
            200: "The page that redirects to the provider",
            400: "A page that says what is wrong",
            403: "The sign-in page with the reason of the refusal",
        },
        media={200: ("text/html",), 400: ("text/html",), 403: ("text/html",)},
        reads=("Origin",),
        sends={
            200: ("Set-Cookie", *PAGE_HEADERS),
            400: PAGE_HEADERS,
            403: PAGE_HEADERS,
        },
        is_browser_step=True,
        is_open=True,
    ),
    Route(
        "POST",
        AUTHORIZE + "/organization",
        choose_organization,
        "Choose the organization for which the host acts",
        "Agents",
        answers={200: "The consent page", 400: "A page that says what is wrong"},
        media={200: ("text/html",), 400: ("text/html",)},
        reads=("Origin",),
        sends={
            200: PAGE_HEADERS,
            400: PAGE_HEADERS,
        },
        is_browser_step=True,
        is_open=True,
    ),
    Route(
        "POST",
        AUTHORIZE + "/consent",
        consent,
        "Grant or deny access to the host",
        "Agents",
        answers={303: "Redirects to the host, with a code or an error", 400: "A page that says what is wrong"},
        media={400: ("text/html",)},
        reads=("Origin",),
        sends={
            303: ("Location", "Cache-Control", "Referrer-Policy"),
            400: PAGE_HEADERS,
        },
        audit="agent.grant",
        is_browser_step=True,
        is_open=True,
    ),
    Route(
        "POST",
        REGISTER,
        register,
        "Register an agent's host (RFC 7591), if the operator allows it",
        "Agents",
        body=HostRegistration,
        response={201: RegisteredHostView, 400: OAuthErrorView, 403: OAuthErrorView},
        answers={201: "The host", 400: "The error in the metadata", 403: "The operator does not allow it"},
        sends={201: ("Cache-Control",), 400: ("Cache-Control",), 403: ("Cache-Control",)},
        is_open=True,
    ),
)
