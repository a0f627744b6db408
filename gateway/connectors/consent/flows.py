"""The consent flow, from the request for a connector to the connector, exactly once.

A new connector is saved as soon as there are tokens: they are fresh, and a check that fails for another reason must not
lose the grant. A connector that is authorized again keeps its old credentials until the application has accepted the
new ones, because the old ones may still be valid.
"""

import logging
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from urllib.parse import urlencode
from uuid import UUID, uuid4

from pydantic import SecretStr

from gateway.access.audit.log import Audit
from gateway.access.identity import redirect_urls
from gateway.access.identity.model import Caller, Client, Scope
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent import consent_request
from gateway.connectors.consent.apps import RegisteredApps
from gateway.connectors.consent.consent_apps import ConsentApps
from gateway.connectors.consent.store import Flow, FlowState, FlowStore
from gateway.connectors.imports.service import Imports
from gateway.connectors.model import ConnectorRecord, NewConnector
from gateway.contract.oauth import CONSOLE_RETURN_PATH, ConsentRequest, StartedConsentView
from gateway.errors import (
    Conflict,
    FieldError,
    GatewayError,
    InvalidCredentials,
    InvalidParams,
    NotFound,
    ReauthorizationRequired,
    Unavailable,
    UpstreamInvalidResponse,
)
from gateway.foundation.aio.retries import retry_until_available
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.challenges import MAX_SCOPES
from gateway.upstream.mcp_servers import McpAddress
from gateway.upstream.mcp_sign_in import McpSignIn, sign_in_of
from gateway.upstream.oauth_tokens.client import TokenClient
from gateway.upstream.oauth_tokens.messages import (
    Code,
    ConsentParams,
    Query,
    consent_url,
    endpoint,
    issuer_of,
    printable,
    read_code,
    single,
)
from gateway.upstream.oauth_tokens.model import (
    App,
    TokenError,
    TokenErrorKind,
    TokenSet,
    app_in,
    credentials_of,
    credentials_of_app,
    missing_token_variables,
)
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.upstreams import Upstreams

log = logging.getLogger(__name__)

#: seconds for which storing a grant is retried while PostgreSQL is unavailable
_SAVE_TIMEOUT = 20.0

#: path at which browsers begin a consent, and path to which authorization servers redirect them
CONSENT_PATH = "/api/v1/integrations/connectors/oauth/consent"
CALLBACK_PATH = "/api/v1/integrations/connectors/oauth/callback"
#: path of the gateway's own page to which a connect link's consent returns; every client may use it
CONNECT_RETURN_PATH = "/connect/return"


@dataclass(frozen=True, slots=True)
class Started:
    """A consent that the person has not given or refused yet."""

    flow_id: UUID
    consent_url: str
    expires_at: datetime

    @property
    def view(self) -> StartedConsentView:
        """The consent as callers see it."""
        return StartedConsentView(self.consent_url, str(self.flow_id), self.expires_at)


@dataclass(frozen=True, slots=True)
class RedirectResult:
    """The URL of the final redirect, the client that began the consent, and the consent's connector."""

    url: str
    client_id: UUID
    #: None if the consent failed; the URL has the error
    connector: ConnectorRecord | None = None


class Flows:
    """Consents: callers begin them, and browsers complete them."""

    def __init__(
        self,
        audit: Audit,
        catalog: Catalog,
        identity: IdentityStore,
        connectors: ConnectorAccess,
        apps: RegisteredApps,
        consent_apps: ConsentApps,
        imports: Imports,
        store: FlowStore,
        upstreams: Upstreams,
        *,
        base_url: str,
        is_embedded: bool,
    ) -> None:
        self._audit = audit
        self._catalog = catalog
        self._identity = identity
        self._connectors = connectors
        self._apps = apps
        self._consent_apps = consent_apps
        self._imports = imports
        self.store = store
        self._upstreams = upstreams
        self._consent = base_url + CONSENT_PATH
        self._callback = base_url + CALLBACK_PATH
        self._own_pages = frozenset(base_url + path for path in (CONNECT_RETURN_PATH, CONSOLE_RETURN_PATH))
        self._is_embedded = is_embedded

    async def initiate(self, caller: Caller, requested: ConsentRequest) -> Started:
        """Begin a consent and return the browser's URL; raises InvalidParams, NotFound, and Conflict without an app."""
        with self._audit.record("oauth.initiate", caller, connector_id=requested.connector_id):
            return await self._initiate(caller, requested)

    async def _initiate(self, caller: Caller, requested: ConsentRequest) -> Started:
        server = await self._server(caller, requested)
        spec = self._catalog.kind(requested.connector_type).spec if server is None else server.spec
        consent_request.require_oauth(spec)
        requested, asked = await self._complete(caller, requested, spec.kind)
        owner_id = await self._connectors.owner_named(caller, requested.owner)
        override = self._upstreams.overrides.get(spec.kind)
        redirect_error = self._redirect_error(requested.redirect_url, caller.client)
        environment, scopes = consent_request.checked(spec, requested, redirect_error, override)
        oauth = spec.oauth_endpoints
        scopes = tuple(dict.fromkeys((*scopes, *asked)))[: max(len(scopes), MAX_SCOPES)]
        given = _given_app(requested)
        app = await self._consent_apps.app_for(caller.organization_id, spec, scopes, given)
        state = secrets.token_urlsafe(32)
        verifier = secrets.token_urlsafe(48) if oauth.pkce else None
        address = endpoint(oauth.authorization_url, environment, override)
        flow = Flow(
            id=uuid4(),
            organization_id=caller.organization_id,
            client_id=caller.client_id,
            workspace_id=await self._identity.workspace_named(caller.organization_id, requested.workspace_name),
            kind=spec.kind,
            name=requested.name,
            redirect_url=requested.redirect_url,
            environment=environment,
            app_client_id=app.client_id,
            verifier=verifier,
            authorization_url=consent_url(oauth, address, app, ConsentParams(self._callback, scopes, state, verifier)),
            state=requested.state,
            reauthorizes=requested.connector_id,
            owner_id=owner_id,
            issuer=issuer_of(spec, environment, override),
            server=server,
            app=credentials_of_app(spec.authentication[spec.oauth_method or ""], app),
            is_app_given=given is not None,
        )
        expires_at = await self.store.create(flow, hashed(state))
        return Started(flow.id, f"{self._consent}?{urlencode({'state': state})}", expires_at)

    async def _server(self, caller: Caller, requested: ConsentRequest) -> McpSignIn | None:
        """How people sign in to the MCP server of a request; raises NotFound for callers that may not import."""
        server = requested.mcp_server
        if server is None:
            return None
        self._imports.require(caller)
        if requested.connector_id is not None:
            raise InvalidParams("a connector to an MCP server is authorized again by its own connector_type")
        if server.kind is not None:
            self._imports.require_free(server.kind)
        sign_in = await sign_in_of(self._upstreams, McpAddress(url=server.url, kind=server.kind))
        self._imports.require_free(sign_in.kind)
        self._imports.require_same_server(sign_in.spec)
        if server.client_id is not None:
            caller.require_whole_organization()
        return sign_in

    async def bind_browser(self, query: Query, browser: str) -> str | None:
        """Bind the consent to the browser; returns the application's consent URL, or None if the state is invalid."""
        state = single(query, "state")
        flow = await self.store.bind(hashed(state), hashed(browser)) if state else None
        return flow.authorization_url if flow else None

    async def state(self, caller: Caller, flow_id: UUID) -> FlowState:
        """The state of a consent; raises NotFound, also if the caller does not see its workspace, or if it is another
        person's and the caller did not begin it.
        """
        state = await self.store.state(caller.organization_id, flow_id)
        caller.require_workspace(state.workspace_name, "OAuth flow")
        if not caller.owns(state.owner_id) and state.client_id != caller.client_id:
            raise NotFound("there is no such OAuth flow")
        return state

    async def _complete(
        self, caller: Caller, requested: ConsentRequest, kind: str
    ) -> tuple[ConsentRequest, Sequence[str]]:
        """The request, completed from the connector to reauthorize, and the scopes that its application asked for.

        Raises NotFound and InvalidParams.
        """
        if requested.connector_id is None:
            caller.require_own_workspace(requested.workspace_name)
            return requested, ()
        record = await self._connectors.get(caller, requested.connector_id)
        pairs = {
            "connector_type": (kind, record.kind),
            "workspace_name": (requested.workspace_name, record.workspace_name),
        }
        faults = [
            FieldError(f"/{name}", name, "mismatch", f"{name} is {requested_value!r}, and the connector's is {own!r}")
            for name, (requested_value, own) in pairs.items()
            if requested_value != own
        ]
        if faults:
            raise InvalidParams(faults[0].message, faults=faults)
        completed = replace(requested, environment={**record.environment, **requested.environment})
        return completed, record.asked_scopes

    async def finish(self, query: Query, browser: str | None) -> RedirectResult | None:
        """Handle the authorization response; None if the state is invalid, or the client may no longer connect or get
        the browser.

        A state is valid once, and only in the browser to which `bind_browser` has bound it. Raises Unavailable before
        the state is used if its connector could not be stored: the browser may come again.
        """
        state = single(query, "state")
        if not state or not browser:
            return None
        hashes = hashed(state), hashed(browser)
        flow = await self.store.find(*hashes)
        caller = await self._caller(flow) if flow else None
        app = await self._app(flow) if flow else None
        if caller is not None:
            caller.require_settled()
        flow = await self.store.use(*hashes)
        # The browser is sent back to the client only while its redirect URL is registered.
        if flow is None or caller is None or self._redirect_error(flow.redirect_url, caller.client):
            return None
        # The browser has no token, so the audit log records the client that began the consent.
        what = "connector.reauthorize" if flow.reauthorizes else "connector.create"
        with self._audit.record(what, flow, connector_id=flow.reauthorizes, changed=["credentials"]) as entry:
            entry.kind = flow.kind
            outcome = await self._connect(caller, flow, app, query)
            if isinstance(outcome, TokenError):
                with suppress(Unavailable):  # a used consent without an outcome counts as failed soon
                    await self.store.fail(flow, outcome.code, outcome.description)
                entry.outcome = outcome.code
                members = {"error": outcome.code, "error_description": outcome.description}
                return RedirectResult(result_url(flow.redirect_url, flow.state, members), flow.client_id)
            entry.connector_id, entry.target = outcome.id, str(outcome.id)
        members = {"connector_id": str(outcome.id)}
        return RedirectResult(result_url(flow.redirect_url, flow.state, members), flow.client_id, outcome)

    async def _caller(self, flow: Flow) -> Caller | None:
        """The client that began the consent, while it may connect in the workspace; None otherwise."""
        caller = await self._identity.caller(flow.client_id, flow.organization_id)
        if caller is None or Scope.WRITE not in caller.client.scopes:
            return None
        state = await self.store.state(flow.organization_id, flow.id)
        return caller if caller.sees(state.workspace_name) else None

    async def was_completed(self, query: Query, browser: str | None) -> bool:
        """Whether a used state has created a connector in this browser: the person went back or reloaded the page."""
        state = single(query, "state")
        return bool(state and browser and await self.store.was_completed(hashed(state), hashed(browser)))

    def _redirect_error(self, url: str, client: Client) -> FieldError | None:
        """The fault of a redirect URL; every client may use the gateway's own pages."""
        if url in self._own_pages:
            return None
        return redirect_urls.redirect_error(url, client.redirect_urls, is_embedded=self._is_embedded)

    async def _connect(self, caller: Caller, flow: Flow, app: App | None, query: Query) -> ConnectorRecord | TokenError:
        """The connector of a consent, or why there is none."""
        spec = self._spec(flow)
        if spec is None or app is None:
            return _failure(self._catalog.unserved_reason(flow.kind) or f"{flow.kind} is served again; begin again")
        override = self._upstreams.overrides.get(flow.kind)
        if flow.issuer is not None and flow.issuer != issuer_of(spec, flow.environment, override):
            return _failure(f"the authorization server of {flow.kind} has changed; begin again")
        code = read_code(query, spec, flow.environment, override)
        if isinstance(code, TokenError):
            return code
        server = TokenClient(spec, flow.environment, self._upstreams, RateScope.of_tokens(spec, flow.id))
        tokens = await server.redeem(app, Code(code, self._callback, flow.verifier))
        if isinstance(tokens, TokenError):
            if tokens.kind is TokenErrorKind.APP:
                await self._apps.forget(flow.organization_id, spec, app)
            return tokens
        try:
            return await self._connected(caller, flow, app, tokens)
        except GatewayError as error:
            if _ends_grant(flow, error):
                await server.revoke(app, tokens.credentials)
            if isinstance(error, Unavailable):
                log.error("a consent was lost: %s", error.detail, extra={"flow_id": str(flow.id)})
                return _failure(f"{error.detail}; begin again", "temporarily_unavailable")
            return _failure(error.detail)

    def _spec(self, flow: Flow) -> ConnectorSpec | None:
        """The spec by which tokens are requested; None if the kind is not served."""
        if flow.server is not None:
            return flow.server.spec
        served = self._catalog.kinds.get(flow.kind)
        return None if served is None else served.spec

    async def _app(self, flow: Flow) -> App | None:
        """The app with which the consent was begun, even if another one has replaced it meanwhile; None if its kind is
        not served.
        """
        spec = self._spec(flow)
        if spec is None:
            return None
        method = spec.authentication[spec.oauth_method or ""]
        named = {method.client_id: flow.app_client_id, **flow.app}
        if flow.is_app_given:
            return app_in(method, named)
        return await self._apps.of(flow.organization_id, spec, method, named)

    async def _connected(self, caller: Caller, flow: Flow, app: App, tokens: TokenSet) -> ConnectorRecord:
        """The connector with the tokens, which exist nowhere else; raises GatewayError if it cannot be stored.

        Retried while PostgreSQL is unavailable, and while the organization is moved.
        """
        kind = await retry_until_available(lambda: self._kind(caller, flow, tokens), timeout=_SAVE_TIMEOUT)
        record = await retry_until_available(lambda: self._save(flow, kind, app, tokens), timeout=_SAVE_TIMEOUT)
        if flow.is_app_given:
            try:
                put = partial(self._apps.put_of, caller, kind.spec, app.client_id, app.client_secret)
                await retry_until_available(put, timeout=_SAVE_TIMEOUT)
            except GatewayError as error:  # the connector has its app with its credentials
                log.warning("the app of a consent was not stored: %s", error.detail, extra={"kind": kind.name})
        return record

    async def _kind(self, caller: Caller, flow: Flow, tokens: TokenSet) -> Kind:
        """The kind of a consent; that of an MCP server is served now, with the tools that the person may list.

        Raises GatewayError, also if the tools differ from those that were accepted.
        """
        if flow.server is None:
            return self._catalog.kinds[flow.kind]
        address = flow.server.address(tokens.credentials["access_token"])
        name = await self._imports.serve_server(caller, address)
        kind = self._catalog.kinds.get(name)
        if kind is None:
            raise Conflict(f"{name} was deleted meanwhile; begin again")
        # Another consent may have served a kind of this name since, to whose server this token must not go.
        self._imports.require_same_server(flow.server.spec)
        if kind.spec.oauth is None or kind.spec.oauth.issuer != flow.server.spec.oauth_endpoints.issuer:
            raise Conflict(f"{name} has another authorization server now; begin again")
        return kind

    async def _save(self, flow: Flow, kind: Kind, app: App, tokens: TokenSet) -> ConnectorRecord:
        spec, override = kind.spec, self._upstreams.overrides.get(flow.kind)
        environment = checked_environment(spec, {**flow.environment, **tokens.environment}, override)
        if missing := missing_token_variables(spec, environment):
            raise InvalidCredentials(f"the application's token response has no {missing[0]}")
        method = spec.oauth_method or ""
        credentials = credentials_of(spec.authentication[method], app, tokens)
        new = NewConnector(
            workspace_id=flow.workspace_id,
            kind=spec.kind,
            settings={"name": flow.name or spec.application},
            auth_method=method,
            environment=environment,
            credentials=credentials,
            expires_at=tokens.expires_at,
            owner_id=flow.owner_id,
        )
        if flow.reauthorizes is None:
            return await self.store.complete(flow, new)
        await self._require_accepted(kind, new)
        return await self.store.complete_again(flow, flow.reauthorizes, new)

    async def _require_accepted(self, kind: Kind, new: NewConnector) -> None:
        """Raise ReauthorizationRequired when the application refuses the new credentials; other errors are ignored."""
        headers = headers_for(kind.spec.authentication[new.auth_method], new.credentials)
        scope = RateScope.of_credentials(kind.spec, new.credentials)
        connector = self._upstreams.connector(kind, new.environment, StaticAuthorizer(headers), scope)
        try:
            await connector.check()
        except ReauthorizationRequired as error:
            message = f"the new credentials are refused, and the connector keeps its old ones: {error.detail}"
            raise ReauthorizationRequired(message) from error
        except GatewayError as error:
            log.info("new credentials could not be checked: %s", error.code, extra={"kind": kind.name})


def _given_app(requested: ConsentRequest) -> App | None:
    """The app that a request gives for its MCP server."""
    server = requested.mcp_server
    if server is None or server.client_id is None:
        return None
    return App(server.client_id, SecretStr(server.client_secret or ""), is_own=True)


def _failure(reason: str, code: str = "server_error") -> TokenError:
    """A consent that has not failed at the application."""
    return TokenError(
        code=code,
        description=printable(reason),
        kind=TokenErrorKind.TRANSIENT,
        error=UpstreamInvalidResponse,
    )


def _ends_grant(flow: Flow, error: GatewayError) -> bool:
    """Whether a grant that cannot be stored is revoked.

    Applications may revoke all tokens of a person with it. So a connector that is authorized again keeps its old
    credentials, unless it was deleted.
    """
    return flow.reauthorizes is None or isinstance(error, NotFound)


def result_url(redirect_url: str, state: str | None, members: Mapping[str, str]) -> str:
    """The redirect URL with the members and the caller's state added to its query."""
    joint = "" if redirect_url.endswith(("?", "&")) else "&" if "?" in redirect_url else "?"
    added = members if state is None else {**members, "state": state}
    return f"{redirect_url}{joint}{urlencode(added)}"
