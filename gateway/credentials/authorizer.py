"""Credentials of a stored connector that cannot be renewed: tokens, keys and Basic pairs."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from gateway.aio.single_flight import SingleFlight
from gateway.connectors.auth import headers_for
from gateway.credentials.store import ConnectorRecord, ConnectorStore, SealedSecret
from gateway.kinds.catalog import Catalog

#: the organization, the connector, the version of its credentials that was refused, and why: `TokenPersistence.refuse`
MarkNeedsReauth = Callable[[UUID, UUID, int, str], Awaitable[None]]


class SealedAuthorizer:
    """Opens the credentials when they are first needed; a change of the record makes a new authorizer."""

    def __init__(
        self,
        store: ConnectorStore,
        catalog: Catalog,
        record: ConnectorRecord,
        mark_needs_reauth: MarkNeedsReauth,
        secret: SealedSecret | None = None,
    ) -> None:
        self._store = store
        #: what came with the record
        self._secret = secret
        self._mark_needs_reauth = mark_needs_reauth
        self._method = catalog.kind(record.kind).spec.authentication[record.auth_method or ""]
        self._record = record
        self._headers: Mapping[str, str] | None = None
        #: of the credentials that the headers were made of
        self._version = 0
        self._opening = SingleFlight(self._opened)

    async def headers(self) -> Mapping[str, str]:
        if self._headers is None:
            self._headers = await self._opening(self._record.id)
        return self._headers

    async def _opened(self, connector_id: UUID) -> Mapping[str, str]:
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
