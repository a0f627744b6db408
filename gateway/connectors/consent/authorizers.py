"""The OAuth grants of stored connectors: the authorizer of each record, and revocation."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from gateway.connectors.consent.apps import RegisteredApps
from gateway.connectors.consent.renewals import Renewals
from gateway.connectors.consent.token_persistence import TokenPersistence
from gateway.connectors.model import ConnectorRecord, SealedSecret, Secret
from gateway.connectors.resolver import SealedAuthorizer
from gateway.connectors.store import ConnectorStore
from gateway.contract.connectors import ConnectorStatus
from gateway.errors import GatewayError, ReauthorizationRequired
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.single_flight import SingleFlight
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import Authorizer, headers_for
from gateway.upstream.oauth_tokens.client import TokenClient
from gateway.upstream.oauth_tokens.model import is_due, is_renewable, missing_token_variables
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.upstreams import Upstreams

log = logging.getLogger(__name__)

_NOT_RENEWABLE = (
    "the application refused the access token, and there is no refresh token to renew it with; "
    "authorize again: start an OAuth flow with this connector_id, or PATCH credentials"
)


@dataclass(frozen=True, slots=True)
class _Cached:
    """Credentials and the request headers built from them."""

    secret: Secret
    headers: Mapping[str, str]


class StoredAuthorizer:
    """A connector's OAuth tokens, renewed before they expire and when the application refuses them."""

    def __init__(
        self,
        record: ConnectorRecord,
        method: AuthMethod,
        connectors: ConnectorStore,
        renewals: Renewals,
        persistence: TokenPersistence,
        secret: SealedSecret | None = None,
    ) -> None:
        self._record = record
        #: the credentials that were read with the record, until their first use
        self._secret = secret
        self._method = method
        self._connectors = connectors
        self._renewals = renewals
        self._persistence = persistence
        self._cached: _Cached | None = None
        self._reading = SingleFlight(self._read_first)

    async def headers(self) -> Mapping[str, str]:
        if self._cached is not None and not is_due(self._cached.secret.expires_at, CLOCK.now()):
            return self._cached.headers
        secret = await self._reading(self._record.id)
        if self._is_renewable(secret) and (self._lacks_token(secret) or is_due(secret.expires_at, CLOCK.now())):
            secret = await self._renewed_early(secret)
        return self._cache(secret)

    async def used(self) -> Sequence[Mapping[str, str]]:
        return [await self.headers()]

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        secret = await self._read(self._record.id)
        if not self._lacks_token(secret) and headers_for(self._method, secret.values) != refused:
            return self._cache(secret)
        if not self._is_renewable(secret):
            self._cache(secret)
            return None
        return self._cache(await self._renewals.renewed(self._record, secret))

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        """Mark the connector `needs_reauth`, unless the refused credentials have been replaced."""
        if self._cached is None or self._cached.headers != credentials:
            return
        secret, record = self._cached.secret, self._record
        reason = f"{reason}; authorize again" if self._is_renewable(secret) else _NOT_RENEWABLE
        await self._persistence.refuse(record.organization_id, record.id, secret.version, reason)

    async def needs_scopes(self, scopes: Sequence[str]) -> None:
        """Note the scopes; the connector stays active for calls that need fewer."""
        await self._persistence.ask_scopes(self._record.organization_id, self._record.id, scopes)

    async def _renewed_early(self, secret: Secret) -> Secret:
        """New tokens; the old ones if they are still valid and the renewal fails temporarily."""
        try:
            return await self._renewals.renewed(self._record, secret)
        except GatewayError as error:
            has_ended = secret.expires_at is None or secret.expires_at <= CLOCK.now()
            if isinstance(error, ReauthorizationRequired) or self._lacks_token(secret) or has_ended:
                raise
            return secret

    async def _read_first(self, connector_id: UUID) -> Secret:
        """The credentials that were read with the record, once; after that, the stored ones."""
        secret, self._secret = self._secret, None
        return await (self._read(connector_id) if secret is None else self._connectors.unsealed(self._record, secret))

    async def _read(self, connector_id: UUID) -> Secret:
        secret = await self._connectors.secret(self._record.organization_id, connector_id)
        secret.require_for(self._record)
        return secret

    def _is_renewable(self, secret: Secret) -> bool:
        return is_renewable(self._method, secret.values)

    def _lacks_token(self, secret: Secret) -> bool:
        return not secret.values.get(self._method.access_token)

    def _cache(self, secret: Secret) -> Mapping[str, str]:
        self._cached = _Cached(secret, headers_for(self._method, secret.values))
        return self._cached.headers


class OAuthAuthorizers:
    """Creates authorizers for connector records, requests first tokens and revokes grants."""

    def __init__(
        self,
        catalog: Catalog,
        connectors: ConnectorStore,
        apps: RegisteredApps,
        renewals: Renewals,
        persistence: TokenPersistence,
        upstreams: Upstreams,
    ) -> None:
        self._catalog = catalog
        self._connectors = connectors
        self._apps = apps
        self._renewals = renewals
        self._persistence = persistence
        self._upstreams = upstreams

    def authorizer_of(self, record: ConnectorRecord, secret: SealedSecret | None = None) -> Authorizer:
        """The authorizer of a record's calls; `secret` is the credentials that were read with the record."""
        spec = self._catalog.served(record.kind).spec
        if not _is_oauth(record, spec):
            return SealedAuthorizer(self._connectors, self._catalog, record, self._persistence.refuse, secret)
        method = spec.authentication[record.auth_method or ""]
        return StoredAuthorizer(
            record=record,
            method=method,
            connectors=self._connectors,
            renewals=self._renewals,
            persistence=self._persistence,
            secret=secret,
        )

    async def ensure_token_variables(self, record: ConnectorRecord) -> ConnectorRecord:
        """The record with the variables that only a token response has; requests a token if they are missing."""
        spec = self._catalog.served(record.kind).spec
        is_complete = not _is_oauth(record, spec) or not missing_token_variables(spec, record.environment)
        if is_complete or record.status is not ConnectorStatus.ACTIVE:
            return record
        secret = await self._connectors.secret(record.organization_id, record.id)
        if not is_renewable(spec.authentication[record.auth_method or ""], secret.values):
            return record
        await self._renewals.renewed(record, secret)
        return await self._connectors.get(record.organization_id, record.id)

    async def revoke(self, record: ConnectorRecord) -> bool:
        """Revoke the grant at the application, best effort; returns whether the application confirmed it."""
        try:
            return await self._revoke(record, self._catalog.served(record.kind).spec)
        except GatewayError as error:
            log.info("a grant could not be revoked", extra={"connector_id": str(record.id), "code": error.code})
            return False

    async def _revoke(self, record: ConnectorRecord, spec: ConnectorSpec) -> bool:
        if not _is_oauth(record, spec) or spec.oauth is None or spec.oauth.revocation_url is None:
            return False
        secret = await self._connectors.secret(record.organization_id, record.id)
        is_by_token = spec.oauth.revocation_style == "bearer"
        if is_by_token and is_due(secret.expires_at, CLOCK.now()):
            secret = await self._renewals.renewed(record, secret)
        method = spec.authentication[record.auth_method or ""]
        app = None if is_by_token else await self._apps.of(record.organization_id, spec, method, secret.values)
        server = TokenClient(spec, record.environment, self._upstreams, RateScope.of_tokens(spec, record.id))
        return await server.revoke(app, secret.values)


def _is_oauth(record: ConnectorRecord, spec: ConnectorSpec) -> bool:
    method = spec.authentication.get(record.auth_method or "")
    return method is not None and method.oauth
