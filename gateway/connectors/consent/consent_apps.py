"""The OAuth app of a new consent, in the order of the MCP specification: one that a person has registered, else the
gateway's metadata document, else one that the gateway registers (RFC 7591).
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import SecretStr
from yarl import URL

from gateway.connectors.consent.apps import RegisteredApps
from gateway.contract.oauth import CLIENT_DOCUMENT, CLIENT_KEYS, SIGNED_CLIENT_DOCUMENT, ClientDocumentView
from gateway.errors import Conflict, UpstreamError, UpstreamInvalidResponse
from gateway.foundation.hosts import is_forbidden_host, is_loopback
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.challenges import scopes_in
from gateway.upstream.oauth_tokens.client_keys import SIGNED
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
        self._jwks_uri = base_url + CLIENT_KEYS

    @property
    def document(self) -> ClientDocumentView | None:
        """The gateway's client ID metadata document; None if authorization servers cannot reach the gateway."""
        metadata = client_metadata(self._redirect_uri, self._base_url, "none")
        return self._published(CLIENT_DOCUMENT, metadata)

    @property
    def signed_document(self) -> ClientDocumentView | None:
        """The same for authorization servers at which the gateway must sign."""
        metadata = client_metadata(self._redirect_uri, self._base_url, SIGNED, self._jwks_uri)
        return self._published(SIGNED_CLIENT_DOCUMENT, metadata)

    def _published(self, path: str, metadata: dict[str, Any]) -> ClientDocumentView | None:
        url = URL(self._base_url)
        if url.scheme != "https" or url.port != 443 or is_forbidden_host(url.host or ""):
            return None
        return ClientDocumentView(client_id=self._base_url + path, **metadata)

    async def app_for(
        self, organization_id: UUID, spec: ConnectorSpec, scopes: Sequence[str], given: App | None = None
    ) -> App:
        """The app for a consent: the given one, if there is one.

        Raises Conflict if there is none, and UpstreamError if it cannot be registered.
        """
        url = URL(self._base_url)
        if spec.mcp is not None and url.scheme != "https" and not is_loopback(url.host or ""):
            raise Conflict("people sign in to MCP servers by https only: let the operator set GATEWAY_PUBLIC_URL")
        configured = given or await self._apps.configured(organization_id, spec)
        if configured is not None:
            return configured
        oauth = spec.oauth_endpoints
        document = self.signed_document if oauth.client_document_authentication == SIGNED else self.document
        if oauth.reads_client_documents and document is not None:
            return App(document.client_id, SecretStr(""))
        if oauth.client_authentication == SIGNED and self.signed_document is None:
            raise Conflict(
                f"the authorization server of {spec.kind} accepts only clients that sign (private_key_jwt), and must "
                "read the gateway's keys: GATEWAY_PUBLIC_URL must be https on a public host"
            )
        if oauth.registration_url is None or oauth.issuer is None:
            return await self._apps.current(organization_id, spec)
        known = await self._apps.registered(organization_id, spec)
        if known is not None and known.is_usable(self._redirect_uri, spec.oauth_endpoints.token_url, scopes):
            return known.app
        if known is not None:  # connectors with the old app may get more scopes later
            scopes = scopes_in((*scopes, *sorted(known.scopes)))
        made = await self._registered(spec, oauth.registration_url, scopes)
        return await self._apps.register(
            organization_id, spec, made, redirect_uri=self._redirect_uri, scopes=scopes, replaced=known
        )

    async def _registered(self, spec: ConnectorSpec, registration_url: str, scopes: Sequence[str]) -> Registration:
        """The app as the authorization server has registered it; raises UpstreamError."""
        address = endpoint(registration_url, {}, self._upstreams.override_of(spec.kind))
        body = registration_body(spec.oauth_endpoints, self._redirect_uri, self._base_url, self._jwks_uri, scopes)
        try:
            status, said = await document_at(self._upstreams.transport.policy, address, body)
        except UpstreamInvalidResponse as error:
            raise UpstreamError(f"the registration endpoint of {spec.kind}: {error.detail}") from error
        return read_registration(spec.oauth_endpoints, status, said)
