"""The client of one application's authorization server; sends through `UpstreamSession` like all requests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import SecretStr
from yarl import URL

from gateway.errors import GatewayError
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.failures import Failure
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.oauth_tokens import messages
from gateway.upstream.oauth_tokens.assertions import AssertionSigner
from gateway.upstream.oauth_tokens.model import App, TokenError, TokenErrorKind, TokenSet, require_refresh_token
from gateway.upstream.private_keys import BadKey
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.session import UpstreamSession
from gateway.upstream.upstreams import Upstreams

#: seconds for a whole token request
_TIMEOUT = 20.0
# Only statuses decide about a retry; `read_tokens` interprets the body.
_BY_STATUS = Failure()
#: token requests authenticate the client themselves
_NO_CREDENTIALS = StaticAuthorizer({})


@dataclass(frozen=True, slots=True)
class TokenClient:
    """The authorization server of a kind, as one connector's variables address it."""

    spec: ConnectorSpec
    environment: Mapping[str, str]
    upstreams: Upstreams
    #: the rate scope of its requests: `RateScope.of_tokens`
    scope: RateScope

    async def redeem(self, app: App, code: messages.Code) -> TokenSet | TokenError:
        """Exchange a code for tokens; a failure is a TokenError. A code is never sent twice."""
        oauth = self.spec.oauth_endpoints
        request = messages.code_request(oauth, self._address(oauth.token_url), self._proven(app), code)
        return await self._tokens(request)

    async def renew(self, app: App, credentials: Mapping[str, str], method: AuthMethod) -> TokenSet | TokenError:
        """New tokens for the refresh token, for the app's own credentials, or for a JWT that the private key signs.

        Raises ReauthorizationRequired if there is no refresh token.
        """
        oauth, app = self.spec.oauth_endpoints, self._proven(app)
        address = self._address(oauth.token_url)
        if method.grant_type == "client_credentials":
            result = await self._tokens(messages.client_request(oauth, address, app, self.environment))
        elif method.grant_type == "jwt_bearer":
            result = await self._exchanged(app, address, credentials, method)
        else:
            refresh_token = require_refresh_token(credentials)
            return await self._tokens(messages.refresh_request(oauth, address, app, refresh_token))
        # Without a person's consent the app is the grant: a refusal is permanent.
        if isinstance(result, TokenError) and result.kind is TokenErrorKind.APP:
            return replace(result, kind=TokenErrorKind.GRANT)
        return result

    async def _exchanged(
        self, app: App, address: URL, credentials: Mapping[str, str], method: AuthMethod
    ) -> TokenSet | TokenError:
        """Tokens for a new assertion. It is sent to the kind's token URL, whatever URL a key file names."""
        signer = AssertionSigner(spec=self.spec, method=method, credentials=credentials, environment=self.environment)
        try:
            assertion = await in_thread(signer.signed, CLOCK.now())
        except BadKey as bad:
            return messages.unsigned(str(bad))
        request = messages.assertion_request(self.spec.oauth_endpoints, address, app, method, assertion)
        return await self._tokens(request, has_times=True)

    async def revoke(self, app: App | None, credentials: Mapping[str, str]) -> bool:
        """Revoke the grant at the application; returns whether the application confirmed it."""
        oauth = self.spec.oauth_endpoints
        if oauth.revocation_url is None:
            return False
        # Servers of the official MCP SDK also read the secret of other apps from the form, an empty one too. It is sent
        # only after a refusal, because RFC 6749 §2.3 forbids a second proof.
        attempts = (False, True) if oauth.resource is not None and (app is None or app.keys is None) else (False,)
        address = self._address(oauth.revocation_url)
        for attempt in attempts:
            proven = None if app is None else self._proven(app)
            request = messages.revoke_request(oauth, address, proven, credentials, is_secret_in_form=attempt)
            if request is None:
                return False
            try:
                exchange = await self._session(self.spec.failure).exchange(request, timeout=_TIMEOUT)
            except GatewayError:
                return False
            if exchange.error is None:
                return True
            if exchange.response.status not in (400, 401):
                break
        return False

    def _proven(self, app: App) -> App:
        """The app with a new proof for one request, if its keys prove it."""
        if app.keys is None:
            return app
        override = self.upstreams.overrides.get(self.spec.kind)
        audience = messages.issuer_of(self.spec, self.environment, override)
        return replace(app, assertion=SecretStr(app.keys.assertion(app.client_id, audience, CLOCK.now())))

    def _address(self, template: str) -> URL:
        return messages.endpoint(template, self.environment, self.upstreams.overrides.get(self.spec.kind))

    def _session(self, failure: Failure) -> UpstreamSession:
        return self.upstreams.session(self.spec, self.environment, _NO_CREDENTIALS, self.scope, failure=failure)

    async def _tokens(self, request: UpstreamRequest, *, has_times: bool = False) -> TokenSet | TokenError:
        """The tokens in the response; `has_times` says that the request has times of the gateway's clock."""
        session = self._session(_BY_STATUS)
        # The clock is read before sending: a token may expire later than computed, never earlier.
        sent_at = CLOCK.now()
        try:
            exchange = await session.exchange(request, timeout=_TIMEOUT)
        except GatewayError as error:
            return messages.unanswered(error)
        result = messages.read_tokens(self.spec, exchange.response, sent_at)
        if has_times and isinstance(result, TokenError):
            return messages.of_clock(result, exchange.response.headers, sent_at)
        return result
