"""HTTP requests to the provider: its metadata and keys, which are cached, and tokens for a code."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from gateway.access.identity.people import ProviderUnavailable, SignInRefused
from gateway.access.sign_in.id_token import ALGORITHMS
from gateway.access.sign_in.model import ProviderSettings
from gateway.foundation.aio.remembered import Remembered
from gateway.kinds.authentication import OAuthEndpoints
from gateway.upstream.egress import EgressPolicy, bounded_response
from gateway.upstream.oauth_tokens.messages import Code, ConsentParams, code_request, consent_url
from gateway.upstream.oauth_tokens.model import App
from gateway.upstream.redaction import NO_SECRETS, Secrets

Document = TypeVar("Document")

_DISCOVERY = "/.well-known/openid-configuration"
#: timeout of a request in seconds
_TIMEOUT = 10.0
#: maximum bytes of a response
_MAX_BYTES = 256 << 10
#: seconds for which metadata and keys are cached
_TRUST = 300.0
#: minimum seconds between requests for new keys, so that forged key ids do not cause many
_KEY_INTERVAL = 30.0
#: maximum characters of the provider's message in an error
_MAX_WORDS = 200


class ProviderMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The members of OpenID Connect Discovery §3 that the gateway uses."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: Sequence[str] = ("client_secret_basic",)
    id_token_signing_alg_values_supported: Sequence[str] = ALGORITHMS
    #: whether every authorization response has `iss` (RFC 9207)
    authorization_response_iss_parameter_supported: bool = False


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]]


class _TokenResponse(msgspec.Struct):
    id_token: str
    access_token: str | None = None


class _TokenRefusal(msgspec.Struct):
    error: str
    error_description: str = ""


class Provider:
    """One provider; its methods raise ProviderUnavailable if it does not respond correctly."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._issuer = URL(settings.issuer)
        # The host of the issuer may be private, because the operator chose it; all other hosts must be public.
        self._policy = EgressPolicy.of([self._issuer.origin()] if settings.is_private else [])
        self.metadata = Remembered(self._metadata, _TRUST)
        self._keys = Remembered(self._fetched_keys, _TRUST)
        self._new_keys = Remembered(self._fetched_keys, _KEY_INTERVAL)

    async def address(self, consent: ConsentParams, nonce: str) -> str:
        """The URL of the provider's sign-in page (OpenID Connect Core §3.1.2.1)."""
        endpoints = await self._endpoints({"nonce": nonce})
        return consent_url(endpoints, URL(endpoints.authorization_url, encoded=True), self._app(), consent)

    async def keys(self, *, are_new: bool = False) -> Sequence[Mapping[str, Any]]:
        """Its public keys (RFC 7517); `are_new` fetches them again."""
        return await (self._new_keys() if are_new else self._keys())

    async def redeem(self, code: Code) -> tuple[str, str | None]:
        """The ID token and the access token for a code; raises SignInRefused if the provider refuses it."""
        endpoints = await self._endpoints({})
        request = code_request(endpoints, URL(endpoints.token_url, encoded=True), self._app(), code)
        status, body = await self._fetch(request.method, request.url, request.headers, request.body)
        try:
            if status == 200:
                tokens = msgspec.json.decode(body, type=_TokenResponse)
                return tokens.id_token, tokens.access_token
            refusal = msgspec.json.decode(body, type=_TokenRefusal)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderUnavailable(
                f"the provider's token endpoint responds with status {status} and no token"
            ) from error
        text = error_text(refusal.error, refusal.error_description, request.secrets_beside({}))
        raise SignInRefused(f"the provider refuses the code: {text}")

    async def _metadata(self) -> ProviderMetadata:
        url = URL(self.settings.issuer.rstrip("/") + _DISCOVERY)
        document = await self._document(url, ProviderMetadata)
        if document.issuer != self.settings.issuer:
            # OpenID Connect Discovery §4.3
            raise ProviderUnavailable(
                "the provider's discovery document is another issuer's; check GATEWAY_OIDC_ISSUER"
            )
        for address in (document.authorization_endpoint, document.token_endpoint, document.jwks_uri):
            self._require_address(address)
        return document

    async def _fetched_keys(self) -> Sequence[Mapping[str, Any]]:
        url = URL((await self.metadata()).jwks_uri, encoded=True)
        return (await self._document(url, _Keys)).keys

    async def _endpoints(self, params: dict[str, str]) -> OAuthEndpoints:
        """The provider's endpoints in the type of applications' authorization servers."""
        document = await self.metadata()
        by_header = "client_secret_basic" in document.token_endpoint_auth_methods_supported
        return OAuthEndpoints(
            authorization_url=document.authorization_endpoint,
            token_url=document.token_endpoint,
            client_authentication="basic" if by_header else "body",
            pkce=True,
            authorization_params=params,
        )

    def _app(self) -> App:
        return App(self.settings.client_id, self.settings.client_secret)

    def _require_address(self, text: str) -> None:
        try:
            url = URL(text, encoded=True)
            is_good = url.scheme == "https" and bool(url.host) and not url.user
            is_own = self.settings.is_private and url.origin() == self._issuer.origin()
        except ValueError:
            is_good = is_own = False
        if not (is_good or is_own):
            raise ProviderUnavailable("the provider's discovery document has a URL that is not https")

    async def _document(self, url: URL, model: type[Document]) -> Document:
        status, body = await self._fetch("GET", url, {"Accept": "application/json"}, None)
        try:
            if status == 200:
                return msgspec.json.decode(body, type=model)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderUnavailable(f"the provider's response at {url.path} is not valid") from error
        raise ProviderUnavailable(f"the provider responds with status {status} at {url.path}")

    async def _fetch(self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None) -> tuple[int, bytes]:
        try:
            status, content = await bounded_response(
                self._policy, method, url, headers, body, timeout=_TIMEOUT, max_bytes=_MAX_BYTES
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ProviderUnavailable(
                "the provider does not respond; try again in a moment, or ask the operator"
            ) from error
        if len(content) > _MAX_BYTES:
            raise ProviderUnavailable(f"the provider's response at {url.path} is larger than {_MAX_BYTES >> 10} KiB")
        return status, content


def error_text(code: str, description: str = "", secrets: Secrets = NO_SECRETS) -> str:
    """The provider's error, short and on one line, with the secrets of the request masked."""
    text = secrets.masked(f"{code}: {description}" if description else code)
    return "".join(each for each in text[:_MAX_WORDS] if each.isprintable())
