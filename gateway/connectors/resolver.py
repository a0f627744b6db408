"""Resolves connectors to their record, credentials and engine, and caches them until they are changed.

A call of a cached connector needs no database round trip. Every process is notified of changes, and clears its cache
whenever it may have missed a notification.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from yarl import URL

from gateway.access.identity.model import Caller
from gateway.connectors.model import ConnectorRecord, SealedSecret, references_in
from gateway.connectors.store import ConnectorStore
from gateway.contract.connectors import ConnectorStatus
from gateway.errors import ConnectorNotReady, InvalidCredentials, ReauthorizationRequired
from gateway.foundation.aio.notified_cache import NotifiedCache
from gateway.foundation.aio.single_flight import SingleFlight
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.auth import Authorizer, headers_for, is_header_text
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.upstreams import Upstreams

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
    """Decrypts the credentials when they are first needed; a changed record gets a new authorizer.

    Credentials with references are read for each request, because their values change without the record.
    """

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
        #: the references in the credentials
        self._references: Collection[str] = ()
        #: the latest headers, with those before a secret was rotated
        self._used: deque[Mapping[str, str]] = deque(maxlen=2)
        self._making_headers = SingleFlight(self._make_headers)

    async def headers(self) -> Mapping[str, str]:
        if self._headers is None or self._references:
            self._headers = await self._making_headers(self._record.id)
        return self._headers

    async def used(self) -> Sequence[Mapping[str, str]]:
        return self._used or [await self.headers()]

    async def _make_headers(self, connector_id: UUID) -> Mapping[str, str]:
        secret = await self._store.unsealed(self._record, self._secret)
        secret.require_for(self._record)
        self._version, self._references = secret.version, references_in(secret.values).values()
        headers = headers_for(self._method, secret.values)
        if not all(map(is_header_text, headers.values())):  # the check at creation has seen an earlier value
            raise ReauthorizationRequired(
                f"a secret is not a line of printable characters: correct {', '.join(self._references)}"
            )
        if headers not in self._used:
            self._used.append(headers)
        return headers

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        """Headers with the current values of references, if these are not the refused ones."""
        if not self._references:
            return None
        current = await self.headers()
        if current == refused:
            self._store.forget_values(self._record.organization_id, self._references)
            current = await self.headers()
        return None if current == refused else current

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
        is_current: Callable[[], bool],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._upstreams = upstreams
        self._authorizers = authorizers
        #: by organization and connector
        self._cache: NotifiedCache[tuple[UUID, UUID], ResolvedConnector] = NotifiedCache(
            self._resolve, is_current, max_cached=_MAX_CACHED, subjects=lambda key, _: (key[1],)
        )
        self.on_notify, self.invalidate_all = self._cache.on_notify, self._cache.invalidate_all

    async def get(self, organization_id: UUID, connector_id: UUID) -> ResolvedConnector:
        """The connector; raises NotFound, also for a connector of another organization."""
        return await self._cache.get((organization_id, connector_id))

    async def get_for(self, caller: Caller, connector_id: UUID) -> ResolvedConnector:
        """The connector, if the caller may use it; raises NotFound and PersonalConnector."""
        resolved = await self.get(caller.organization_id, connector_id)
        resolved.record.require_usable(caller)
        return resolved

    def kind_of(self, organization_id: UUID, connector_id: UUID) -> str | None:
        """The kind of a cached connector, for logs; None if the connector is not cached."""
        cached = self._cache.peek((organization_id, connector_id))
        return None if cached is None else cached.record.kind

    async def _resolve(self, key: tuple[UUID, UUID]) -> ResolvedConnector:
        stored, secret = await self._store.open(*key)
        _require_method(self._catalog.served(stored.kind).spec, stored)
        record = await self._authorizers.ensure_token_variables(stored)
        return self.resolve(record, secret if record is stored else None)

    def resolve(self, record: ConnectorRecord, secret: SealedSecret | None = None) -> ResolvedConnector:
        """The engine's connector for a record, with its credentials if they were read with it."""
        kind = self._catalog.served(record.kind)
        _require_environment(kind.spec, record, self._upstreams.overrides.get(record.kind))
        scope = RateScope.of_connector(kind.spec, record.id)
        connector = self._upstreams.connector(
            kind, record.environment, self._authorizers.authorizer_of(record, secret), scope
        )
        return ResolvedConnector(record, connector)


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
