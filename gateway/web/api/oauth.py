"""OAuth: consents that callers start and browsers finish, and the organizations' own apps."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from gateway.access.identity.model import Scope
from gateway.access.identity.tokens import new_secret
from gateway.contract.oauth import (
    CLIENT_DOCUMENT,
    CLIENT_KEYS,
    CONSENT_SECONDS,
    SIGNED_CLIENT_DOCUMENT,
    AppList,
    AppView,
    ClientDocumentView,
    ClientKeysView,
    ClientKeyView,
    ConsentRequest,
    FlowView,
    ServerToSignInTo,
    StartedConsentView,
)
from gateway.errors import NotFound, Unavailable
from gateway.kinds.spec import KIND_NAME
from gateway.web.api.connectors import require_server
from gateway.web.bodies import Body, Name, QueryString, json_response, path_id, read_body
from gateway.web.cookies import HostCookie
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import CONNECTORS, PRIVATE, Route

#: the characters of a client id (RFC 6749 appendix A.1)
Visible = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[\x20-\x7e]+$")]
# The URL of a callback contains a code: no cache may store it, and no other site may receive it.
_PRIVATE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
#: authorization servers read the documents of a client again after some minutes
_CACHED = {"Cache-Control": "max-age=300"}
_NOT_USABLE = (
    "This consent is unknown, was used already, has expired, or was begun in another browser. Nothing was connected.\n"
    "Go back to where you came from and begin again.\n"
)
_TRY_AGAIN = "Nothing was connected yet: {detail}.\nTry again: reload this page in a moment.\n"
_WAS_COMPLETED = "This consent was given already, and the application is connected.\nYou may close this page.\n"
#: binds a consent to the browser that begins it
_BROWSER = HostCookie("gateway-consent", CONSENT_SECONDS)


def _visible(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if not (value.isascii() and value.isprintable()):
        raise ValueError("it must be printable ASCII")
    return secret


class SignInServer(Body):
    """An MCP server that a person signs in to, whose tools become the operations of a kind of its own."""

    EXAMPLES: ClassVar = {"server": {"url": "https://mcp.tracker.example/mcp"}}

    url: str = Field(min_length=1, max_length=2_000, description="the https URL of the server (Streamable HTTP)")
    kind: Annotated[str, StringConstraints(pattern=KIND_NAME, max_length=60)] | None = Field(
        None, description="the name of the kind; made from the server's name when left out"
    )
    client_id: Visible | None = Field(
        None, description="the id of an OAuth app that your organization has registered at the authorization server"
    )
    client_secret: Annotated[SecretStr, Field(max_length=1000), AfterValidator(_visible)] | None = Field(
        None, description="the secret of that app, if it has one; never returned"
    )


class InitiateOAuth(Body):
    """A connector to create or reauthorize by a user's consent."""

    EXAMPLES: ClassVar = {
        "consent": {
            "workspace_name": "acme",
            "connector_type": "Team-Chat",
            "redirect_url": "https://app.example.com/connected",
        },
        "mcp": {
            "workspace_name": "acme",
            "connector_type": "Mcp",
            "mcp_server": {"url": "https://mcp.tracker.example/mcp"},
            "redirect_url": "https://app.example.com/connected",
        },
    }

    workspace_name: Name = Field(description="the workspace that the connector will belong to")
    connector_type: str = Field(max_length=100, description="the kind, such as Support-Desk; `Mcp` with `mcp_server`")
    mcp_server: SignInServer | None = Field(
        None,
        description="for the type `Mcp`: an MCP server. Whoever may import kinds accepts its tools by this consent, as "
        "writes; further connectors of its kind name the kind as their type",
    )
    redirect_url: str = Field(
        max_length=2000, description="where the browser returns to: one of the client's redirect URLs"
    )
    name: Name | None = Field(None, description="display name; the application's name when left out")
    environment: dict[str, Any] = Field(
        default_factory=dict, max_length=100, description="the kind's variables, such as subdomain"
    )
    scopes: list[str] | None = Field(None, max_length=100, description="the kind's default scopes when left out")
    connector_id: Annotated[UUID, Field(strict=False)] | None = Field(
        None, description="the existing connector to authorize again"
    )
    owner: Annotated[str, StringConstraints(max_length=47)] | None = Field(
        None, description="to whom a new connector will belong: `me`, or a person's id; shared when left out"
    )
    state: str | None = Field(None, max_length=1000, description="returned unchanged on redirect_url")


class AppConfiguration(Body):
    """An OAuth app as the application has registered it."""

    client_id: Visible = Field(description="the app's id")
    client_secret: Annotated[
        SecretStr,
        Field(min_length=1, max_length=1000, description="the app's secret; never returned"),
        AfterValidator(_visible),
    ]


class PutOAuthApp(Body):
    """An organization's own OAuth app for a kind."""

    EXAMPLES: ClassVar = {
        "app": {"connector_type": "team-chat", "configuration": {"client_id": "acme-agents", "client_secret": "…"}}
    }

    connector_type: str = Field(max_length=100, description="the kind, such as support-desk")
    configuration: AppConfiguration = Field(description="the app")


class ConsentQuery(QueryString):
    """The query of `consent_url`; the use case validates it."""

    state: str | None = Field(None, description="identifies the consent")


class CallbackQuery(BaseModel):
    """The query that the application adds to the callback; the use case validates it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    code: str | None = Field(None, description="the authorization code (RFC 6749 §4.1.2)")
    state: str | None = Field(None, description="identifies the consent")
    iss: str | None = Field(None, description="the authorization server (RFC 9207)")
    error: str | None = Field(None, description="the reason why there is no code")
    error_description: str | None = Field(None, description="the reason in the application's words")


async def initiate_oauth(request: web.Request) -> web.Response:
    """Starts a user's consent. Send the browser to `consent_url`. It returns to `redirect_url`, which must be exactly
    one of the client's redirect URLs, with your `state` and `connector_id`, or `error` and `error_description`, in
    the query. With `connector_id` in the body, an existing connector is authorized again.
    """
    body, caller, services = await read_body(request, InitiateOAuth), request[CALLER], request.app[SERVICES]
    members = {**dict(body), "mcp_server": _server(body)}
    started = await services.connectors.oauth.flows.initiate(caller, ConsentRequest(**members))
    return json_response(started.view, headers=_PRIVATE)


def _server(body: InitiateOAuth) -> ServerToSignInTo | None:
    """The MCP server of a request; raises InvalidParams if it names another type, or no server."""
    require_server(body.connector_type, body.mcp_server)
    server = body.mcp_server
    if server is None:
        return None
    secret = None if server.client_secret is None else server.client_secret.get_secret_value()
    return ServerToSignInTo(url=server.url, kind=server.kind, client_id=server.client_id, client_secret=secret)


async def client_document(request: web.Request) -> web.Response:
    """The gateway as a client of other authorization servers: its URL is the gateway's client id, where a server takes
    such documents. 404 unless the public URL of the gateway is https on a public host.
    """
    return _published(request.app[SERVICES].connectors.oauth.consent_apps.document)


async def signed_client_document(request: web.Request) -> web.Response:
    """The same for authorization servers at which the gateway must prove itself by a signed JWT (RFC 7523)."""
    return _published(request.app[SERVICES].connectors.oauth.consent_apps.signed_document)


async def client_keys(request: web.Request) -> web.Response:
    """The public keys (RFC 7517) with which authorization servers verify what the gateway signs as their client."""
    keys = request.app[SERVICES].connectors.oauth.apps.keys.public
    return json_response(ClientKeysView([ClientKeyView(**key) for key in keys]), headers=_CACHED)


def _published(document: ClientDocumentView | None) -> web.Response:
    if document is None:
        raise NotFound("authorization servers cannot reach this gateway; GATEWAY_PUBLIC_URL must be https")
    return json_response(document, headers=_CACHED)


async def begin_consent(request: web.Request) -> web.Response:
    """For browsers: binds the consent to this browser by a cookie and redirects to the application's page. 400 with a
    plain page for an unknown, used or expired consent, and 503 with one that says to try again.
    """
    browser = _BROWSER.secret(request) or new_secret()
    try:
        address = await request.app[SERVICES].connectors.oauth.flows.bind_browser(list(request.query.items()), browser)
        if address is None:
            return await _not_usable(request)
    except Unavailable as unavailable:
        return _try_again(unavailable)
    response = web.Response(status=303, headers={"Location": address, **_PRIVATE})
    _BROWSER.set(request, response, browser)
    return response


async def _not_usable(request: web.Request) -> web.Response:
    """The page for a state that is unknown, used or expired."""
    is_done = await request.app[SERVICES].connectors.oauth.flows.was_completed(
        list(request.query.items()), _BROWSER.secret(request)
    )
    return web.Response(status=400, text=_WAS_COMPLETED if is_done else _NOT_USABLE, headers=_PRIVATE)


def _try_again(unavailable: Unavailable) -> web.Response:
    """The page for a state that can be used as soon as the gateway can write."""
    headers = {"Retry-After": str(unavailable.retry_after or 1), **_PRIVATE}
    return web.Response(status=503, text=_TRY_AGAIN.format(detail=unavailable.detail), headers=headers)


async def finish_oauth(request: web.Request) -> web.Response:
    """For browsers: the application redirects here with `code` and `state`. The gateway creates the connector and
    redirects to `redirect_url`. 400 with a plain page for an unknown, used or expired `state`. 503 with one while the
    connector could not be stored, such as while the organization is moved: the page can be loaded again.
    """
    services = request.app[SERVICES]
    try:
        redirected = await services.connectors.oauth.flows.finish(list(request.query.items()), _BROWSER.secret(request))
        if redirected is None:
            return await _not_usable(request)
    except Unavailable as unavailable:
        return _try_again(unavailable)
    if redirected.connector is not None:
        await services.copy.synchronization.begin(redirected.connector, redirected.client_id)
    return web.Response(status=303, headers={"Location": redirected.url, **_PRIVATE})


async def get_oauth_flow(request: web.Request) -> FlowView:
    """The state of a consent, for callers that cannot see the browser."""
    state = await request.app[SERVICES].connectors.oauth.flows.state(request[CALLER], path_id(request, "flow_id"))
    return state.view


async def put_oauth_app(request: web.Request) -> AppView:
    """Sets the organization's own OAuth app for a kind; later consents use it. The secret is sealed and never
    returned.
    """
    body, apps = await read_body(request, PutOAuthApp), request.app[SERVICES].connectors.oauth.apps
    app = body.configuration
    return await apps.put(request[CALLER], body.connector_type, app.client_id, app.client_secret)


async def list_oauth_apps(request: web.Request) -> AppList:
    """The organization's own OAuth apps, without their secrets."""
    apps = await request.app[SERVICES].connectors.oauth.apps.find(request[CALLER].organization_id)
    return AppList(apps)


async def delete_oauth_app(request: web.Request) -> web.Response:
    """Deletes the organization's own OAuth app; later consents use the platform's app."""
    await request.app[SERVICES].connectors.oauth.apps.delete(request[CALLER], request.match_info["connector_type"])
    return web.Response(status=204)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        CONNECTORS + "/oauth/initiate",
        initiate_oauth,
        "Start a user's consent",
        "OAuth",
        body=InitiateOAuth,
        errors=(409, 424, 502, 504),
        response=StartedConsentView,
        answers={200: "The URL for the user's browser"},
        sends={200: PRIVATE},
        scope=Scope.WRITE,
        audit="oauth.initiate",
        command="gateway connect team-chat",
        python=(
            'consent = await gateway.connectors.connect("team-chat", redirect_url)\n'
            "print(consent.url)  # for the user's browser\n"
            "print(await consent.wait())"
        ),
    ),
    Route(
        "GET",
        CLIENT_DOCUMENT,
        client_document,
        "The gateway's client ID metadata document",
        "OAuth",
        errors=(404,),
        response=ClientDocumentView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        SIGNED_CLIENT_DOCUMENT,
        signed_client_document,
        "The gateway's client ID metadata document with keys",
        "OAuth",
        errors=(404,),
        response=ClientDocumentView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        CLIENT_KEYS,
        client_keys,
        "The keys that the gateway signs with as a client",
        "OAuth",
        response=ClientKeysView,
        sends={200: ("Cache-Control",)},
        is_open=True,
    ),
    Route(
        "GET",
        CONNECTORS + "/oauth/consent",
        begin_consent,
        "Begin a consent in the user's browser",
        "OAuth",
        query=ConsentQuery,
        errors=(404,),
        is_browser_step=True,
        answers={
            303: "Redirects to the application's page and sets the cookie that the callback requires",
            400: "The consent is unknown, used or expired",
            503: "The gateway cannot write now; the page can be loaded again",
        },
        media={400: ("text/plain",), 503: ("text/plain",)},
        sends={
            303: ("Location", "Set-Cookie", "Cache-Control", "Referrer-Policy"),
            400: PRIVATE,
            503: ("Retry-After", *PRIVATE),
        },
        is_open=True,
    ),
    Route(
        "GET",
        CONNECTORS + "/oauth/callback",
        finish_oauth,
        "OAuth callback",
        "OAuth",
        query=CallbackQuery,
        errors=(404,),
        is_browser_step=True,
        answers={
            303: "Redirects to redirect_url, with connector_id, or error and error_description, in its query",
            400: "The consent is unknown, used or expired",
            503: "The gateway cannot write now; the page can be loaded again",
        },
        media={400: ("text/plain",), 503: ("text/plain",)},
        sends={
            303: ("Location", "Set-Cookie", "Cache-Control", "Referrer-Policy"),
            400: PRIVATE,
            503: ("Retry-After", *PRIVATE),
        },
        audit="connector.create",
        is_open=True,
    ),
    Route(
        "GET",
        CONNECTORS + "/oauth/flows/{flow_id}",
        get_oauth_flow,
        "Get the state of a consent",
        "OAuth",
        response=FlowView,
        scope=Scope.READ,
    ),
    Route(
        "PUT",
        "/api/v1/oauth/credentials",
        put_oauth_app,
        "Set the organization's own OAuth app for a kind",
        "OAuth",
        body=PutOAuthApp,
        response=AppView,
        scope=Scope.ADMIN,
        audit="oauth_app.put",
        command="gateway apps set team-chat --client-id acme-agents",
        python='print(await gateway.apps.set("team-chat", "acme-agents", client_secret))',
    ),
    Route(
        "GET",
        "/api/v1/oauth/credentials",
        list_oauth_apps,
        "List the organization's own OAuth apps",
        "OAuth",
        response=AppList,
        scope=Scope.ADMIN,
        command="gateway apps list",
        python="print(await gateway.apps.list())",
    ),
    Route(
        "DELETE",
        "/api/v1/oauth/credentials/connector_type/{connector_type}",
        delete_oauth_app,
        "Use the platform's OAuth app again",
        "OAuth",
        answers={204: "The next consent uses the platform's app"},
        scope=Scope.ADMIN,
        audit="oauth_app.delete",
        command="gateway apps delete support-desk",
        python='await gateway.apps.delete("support-desk")',
    ),
)
