"""OAuth tokens held in memory: for connectors in a caller's own process, and for credentials not stored yet.

Imports no database; authlib only when a token is renewed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from gateway.errors import ConnectorNotReady
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import headers_for
from gateway.upstream.oauth_tokens.model import (
    App,
    TokenError,
    app_in,
    credentials_of,
    gateway_error_of,
    is_due,
    is_renewable,
    missing_token_variables,
    require_refresh_token,
    with_token_variables,
)
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.upstreams import Upstreams


class RefreshingAuthorizer:
    """Renews its tokens; concurrent callers share one renewal. `credentials` holds the new tokens, to be saved."""

    def __init__(
        self,
        spec: ConnectorSpec,
        credentials: Mapping[str, str],
        environment: Mapping[str, str],
        upstreams: Upstreams,
        app: App | None = None,
        method: str | None = None,
    ) -> None:
        self._spec = spec
        self._method = spec.authentication[method or spec.oauth_method or ""]
        self._upstreams = upstreams
        self._scope = RateScope.of_credentials(spec, credentials).tokens()
        self._app = app
        self._renewing: asyncio.Future[None] | None = None
        #: the current tokens: a renewal may have replaced the refresh token too
        self.credentials: Mapping[str, str] = dict(credentials)
        self.environment: Mapping[str, str] = dict(environment)
        self.expires_at: datetime | None = None

    async def ensure_token_variables(self) -> Mapping[str, str]:
        """The variables, with those that only a token response contains; renews the token if one is missing."""
        if missing_token_variables(self._spec, self.environment) and is_renewable(self._method, self.credentials):
            await self._renew(self.credentials)
        return self.environment

    async def headers(self) -> Mapping[str, str]:
        has_none = not self.credentials.get(self._method.access_token)
        is_needed = has_none or is_due(self.expires_at, CLOCK.now())
        if is_needed and is_renewable(self._method, self.credentials):
            await self._renew(self.credentials)
        return headers_for(self._method, self.credentials)

    async def used(self) -> Sequence[Mapping[str, str]]:
        return [await self.headers()]

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        current = self.credentials
        if headers_for(self._method, current) == refused:
            if not is_renewable(self._method, current):
                return None
            await self._renew(current)
        return headers_for(self._method, self.credentials)

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        """Do nothing: there is no stored connector to mark."""

    async def needs_scopes(self, scopes: Sequence[str]) -> None:
        """Do nothing: there is no stored connector whose next consent could request them."""

    async def _renew(self, stale: Mapping[str, str]) -> None:
        """Replace the stale tokens, unless another caller has done so."""
        if self.credentials is not stale:
            return
        if self._renewing is None:
            self._renewing = asyncio.ensure_future(self._refresh())
            self._renewing.add_done_callback(self._on_done)
        # Shielded: a caller's cancellation must not lose a response that rotates the refresh token.
        await asyncio.shield(self._renewing)

    def _on_done(self, renewing: "asyncio.Future[None]") -> None:
        self._renewing = None
        if not renewing.cancelled():
            renewing.exception()  # mark the exception as retrieved, even if every caller was canceled

    async def _refresh(self) -> None:
        try:
            from gateway.upstream.oauth_tokens.client import TokenClient
        except ModuleNotFoundError as error:
            message = f'renewing OAuth tokens needs {error.name}: install "agent-connector-gateway[server]"'
            raise ConnectorNotReady(message) from error
        if not is_renewable(self._method, self.credentials):
            require_refresh_token(self.credentials)
        app = self._app or app_in(self._method, self.credentials)
        client = TokenClient(self._spec, self.environment, self._upstreams, self._scope)
        tokens = await client.renew(app, self.credentials, self._method)
        if isinstance(tokens, TokenError):
            raise gateway_error_of(self._method, tokens, app)
        self.environment = with_token_variables(
            self._spec, self.environment, tokens, self._upstreams.overrides.get(self._spec.kind)
        )
        self.credentials = credentials_of(self._method, app, tokens, self.credentials)
        self.expires_at = tokens.expires_at
