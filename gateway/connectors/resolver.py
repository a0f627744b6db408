"""Resolves connectors to their record, credentials and engine, and caches them for half a minute.

A call of a cached connector needs no database round trip. Every process is notified of changes, and clears its cache
whenever it may have missed a notification. The half minute is a second safeguard.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from yarl import URL

from gateway.access.identity.model import Caller
from gateway.connectors.model import ConnectorRecord, SealedSecret
from gateway.connectors.store import ConnectorStore
from gateway.contract.connectors import ConnectorStatus
from gateway.errors import ConnectorNotReady, InvalidCredentials
from gateway.foundation.aio.single_flight import SingleFlight
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import Authorizer, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.upstreams import Upstreams

#: seconds for which a connector is cached
_TRUST = 30.0
#: maximum cached connectors
_MAX_CACHED = 20_000
#: the organization, the connector, the version of its credentials that was refused, and why: `TokenPersistence.refuse`
MarkNeedsReauth = Callable[[UUID, UUID, int, str], Awaitable[None]]


class AuthorizerFactory(Protocol):
    """Makes the authorizers of connectors' requests."""

    def authorizer_of(self, record: ConnectorRecord, secret: SealedSecret | None = None) -> Authorizer:
        """The authorizer for the calls of a record; `secret` was read with the record."""

    async def ensure_token_variables(self, record: ConnectorRecord) -> ConnectorRecord:
        """The record with the variables that come only with its first token."""


class SealedAuthorizer:
    """Decrypts the credentials when they are first needed; a changed record gets a new authorizer."""

    def __init__(
        self,
        store: ConnectorStore,
        catalog: Catalog,
        record: ConnectorRecord,
        mark_needs_reauth: MarkNeedsReauth,
        secret: SealedSecret | None = None,
    ) -> None:
        self._store = store
        #: the credentials that were read with the record
        self._secret = secret
        self._mark_needs_reauth = mark_needs_reauth
        self._method = catalog.served(record.kind).spec.authentication[record.auth_method or ""]
        self._record = record
        self._headers: Mapping[str, str] | None = None
        #: the version of the credentials in the headers
        self._version = 0
        self._making_headers = SingleFlight(self._make_headers)

    async def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            self._headers = await self._making_headers(self._record.id)
        return self._headers

    async def _make_headers(self, connector_id: UUID) -> Mapping[str, str]:
        secret = await self._store.unsealed(self._record, self._secret)
        secret.require_for(self._record)
        self._version = secret.version
        return headers_for(self._method, secret.values)

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        return None

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        """Make the connector `needs_reauth`, unless its credentials were replaced meanwhile."""
        record = self._record
        await self._mark_needs_reauth(record.organization_id, record.id, self._version, reason)

    async def needs_scopes(self, scopes: Sequence[str]) -> None:
        """Do nothing: credentials that a person gives are not requested by scopes."""


_NEXT_STEP = {
    ConnectorStatus.PENDING: "finish the OAuth consent, or start it again",
    ConnectorStatus.NEEDS_REAUTH: "authorize it again: start an OAuth flow with its connector_id, or PATCH credentials",
    ConnectorStatus.DISABLED: 'enable it: PATCH {"status": "active"}',
}


@dataclass(frozen=True, slots=True)
class ResolvedConnector:
    """A record and the engine's connector for it."""

    record: ConnectorRecord
    connector: UpstreamConnector

    def require_active(self) -> None:
        """Raise ConnectorNotReady, with the next step, unless calls can be made."""
        if self.record.status is not ConnectorStatus.ACTIVE:
            step = _NEXT_STEP[self.record.status]
            raise ConnectorNotReady(
                f"the connector is {self.record.status}; {step}",
                extra={"connector_status": self.record.status.value, "next_step": step},
            )


class ConnectorResolver:
    """Resolves connectors by organization and id."""

    def __init__(
        self,
        store: ConnectorStore,
        catalog: Catalog,
        upstreams: Upstreams,
        authorizers: AuthorizerFactory,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._upstreams = upstreams
        self._authorizers = authorizers
        #: connector id → when it expires, and the connector; least recently used first
        self._cached: OrderedDict[UUID, tuple[float, ResolvedConnector]] = OrderedDict()
        self._resolving = SingleFlight(self._resolve)

    async def get(self, organization_id: UUID, connector_id: UUID) -> ResolvedConnector:
        """The connector; raises NotFound, also for a connector of another organization."""
        until, cached = self._cached.get(connector_id, (0.0, None))
        if cached is not None and cached.record.organization_id == organization_id and until > time.monotonic():
            self._cached.move_to_end(connector_id)
            return cached
        return await self._resolving((organization_id, connector_id))

    async def get_for(self, caller: Caller, connector_id: UUID) -> ResolvedConnector:
        """The connector, if the caller may use it; raises NotFound and PersonalConnector."""
        resolved = await self.get(caller.organization_id, connector_id)
        resolved.record.require_usable(caller)
        return resolved

    def kind_of(self, organization_id: UUID, connector_id: UUID) -> str | None:
        """The kind of a cached connector, for logs; None if the connector is not cached."""
        _, cached = self._cached.get(connector_id, (0.0, None))
        return cached.record.kind if cached is not None and cached.record.organization_id == organization_id else None

    async def _resolve(self, key: tuple[UUID, UUID]) -> ResolvedConnector:
        now, generation = time.monotonic(), self._resolving.generation
        stored, secret = await self._store.open(*key)
        _require_method(self._catalog.served(stored.kind).spec, stored)
        record = await self._authorizers.ensure_token_variables(stored)
        resolved = self.resolve(record, secret if record is stored else None)
        if generation != self._resolving.generation:
            return resolved  # the record that was read may be older than the notification
        self._cached[record.id] = (now + _TRUST, resolved)
        self._cached.move_to_end(record.id)
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)
        return resolved

    def resolve(self, record: ConnectorRecord, secret: SealedSecret | None = None) -> ResolvedConnector:
        """The engine's connector for a record, with its credentials if they were read with it."""
        kind = self._catalog.served(record.kind)
        _require_environment(kind.spec, record, self._upstreams.overrides.get(record.kind))
        scope = RateScope.of_connector(kind.spec, record.id)
        connector = self._upstreams.connector(
            kind, record.environment, self._authorizers.authorizer_of(record, secret), scope
        )
        return ResolvedConnector(record, connector)

    def on_notify(self, connector_id: str) -> None:
        """Forget a connector that was changed, perhaps by another process."""
        self._resolving.forget()
        self._cached.pop(UUID(connector_id), None)

    def invalidate_all(self) -> None:
        """Forget every connector, because notifications may have been missed."""
        self._resolving.forget()
        self._cached.clear()


def _require_method(spec: ConnectorSpec, record: ConnectorRecord) -> None:
    """Raise ConnectorNotReady if the kind no longer has the row's authentication method."""
    if record.auth_method is not None and record.auth_method not in spec.authentication:
        step = "PATCH credentials of another method"
        raise ConnectorNotReady(
            f"the kind {spec.kind} no longer has the authentication method {record.auth_method}; {step}",
            extra={"connector_status": record.status.value, "next_step": step},
        )


def _require_environment(spec: ConnectorSpec, record: ConnectorRecord, override: URL | None) -> None:
    """Raise ConnectorNotReady if the kind does not allow the row's variables."""
    declared = {name: value for name, value in record.environment.items() if name in spec.environment}
    try:
        checked_environment(spec, declared, override)
    except InvalidCredentials as error:
        raise ConnectorNotReady(f"the connector's environment is not valid: {error.detail}") from error
