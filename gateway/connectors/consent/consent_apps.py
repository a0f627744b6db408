"""The OAuth app of a new consent, in the order of the MCP specification: one that a person has registered, else the
gateway's metadata document, else one that the gateway registers (RFC 7591).
"""

from collections.abc import Sequence
from uuid import UUID

from pydantic import SecretStr
from yarl import URL

from gateway.connectors.consent.apps import RegisteredApps
from gateway.contract.oauth import CLIENT_DOCUMENT, ClientDocumentView
from gateway.errors import Conflict, UpstreamError, UpstreamInvalidResponse
from gateway.foundation.hosts import is_forbidden_host, is_loopback
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.oauth_tokens.fetching import document_at
from gateway.upstream.oauth_tokens.messages import endpoint
from gateway.upstream.oauth_tokens.model import App
from gateway.upstream.oauth_tokens.registration import (
    Registration,
    client_metadata,
    read_registration,
    registration_body,
)
from gateway.upstream.upstreams import Upstreams


class ConsentApps:
    """Finds the app of each new consent."""

    def __init__(self, apps: RegisteredApps, upstreams: Upstreams, base_url: str, redirect_uri: str) -> None:
        self._apps = apps
        self._upstreams = upstreams
        self._base_url = base_url
        self._redirect_uri = redirect_uri

    @property
    def document(self) -> ClientDocumentView | None:
        """The gateway's client ID metadata document; None if authorization servers cannot reach the gateway."""
        url = URL(self._base_url)
        if url.scheme != "https" or url.port != 443 or is_forbidden_host(url.host or ""):
            return None
        metadata = client_metadata(self._redirect_uri, self._base_url, "none")
        return ClientDocumentView(client_id=self._base_url + CLIENT_DOCUMENT, **metadata)

    async def app_for(self, organization_id: UUID, spec: ConnectorSpec, scopes: Sequence[str]) -> App:
        """The app for a consent; raises Conflict if there is none, and UpstreamError if it cannot be registered."""
        url = URL(self._base_url)
        if spec.mcp is not None and url.scheme != "https" and not is_loopback(url.host or ""):
            raise Conflict("people sign in to MCP servers by https only: let the operator set GATEWAY_PUBLIC_URL")
        configured = await self._apps.configured(organization_id, spec)
        if configured is not None:
            return configured
        oauth, document = spec.oauth_endpoints, self.document
        if oauth.reads_client_documents and document is not None:
            return App(document.client_id, SecretStr(""))
        if oauth.registration_url is None or oauth.issuer is None:
            return await self._apps.current(organization_id, spec)
        known = await self._apps.registered(organization_id, spec)
        if known is not None and known.is_usable(self._redirect_uri, scopes):
            return known.app
        if known is not None:  # connectors with the old app may get more scopes later
            scopes = sorted({*known.scopes, *scopes})
        made = await self._registered(spec, oauth.registration_url, scopes)
        return await self._apps.register(
            organization_id, spec, made, redirect_uri=self._redirect_uri, scopes=scopes, replaced=known
        )

    async def _registered(self, spec: ConnectorSpec, registration_url: str, scopes: Sequence[str]) -> Registration:
        """The app as the authorization server has registered it; raises UpstreamError."""
        address = endpoint(registration_url, {}, self._upstreams.override_of(spec.kind))
        body = registration_body(spec.oauth_endpoints, self._redirect_uri, self._base_url, scopes)
        try:
            status, said = await document_at(self._upstreams.transport.policy, address, body)
        except UpstreamInvalidResponse as error:
            raise UpstreamError(f"the registration endpoint of {spec.kind}: {error.detail}") from error
        return read_registration(spec.oauth_endpoints, status, said)
