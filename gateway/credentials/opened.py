"""Connectors opened for use: record, credentials and engine together, remembered for a few seconds.

A warm call makes no database round trip. Every change is told to all processes at once; the few seconds are for news
that was lost.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from yarl import URL

from gateway.connectors.auth import Authorizer
from gateway.connectors.catalog import Catalog
from gateway.connectors.connector import Connector
from gateway.connectors.transport import Transport
from gateway.credentials.store import ConnectorRecord, ConnectorStatus, ConnectorStore
from gateway.errors import ConnectorNotReady, ReauthorizationRequired
from gateway.single_flight import SingleFlight

_TRUST = 5.0
_REMEMBERED = 10_000


class Proof(Protocol):
    """Who proves to applications that connectors may call them."""

    def authorizer_of(self, record: ConnectorRecord) -> Authorizer:
        """Who authenticates the calls of a record."""

    async def completed(self, record: ConnectorRecord) -> ConnectorRecord:
        """The record with the variables that come only with its first token."""

    async def refused(self, record: ConnectorRecord, reason: str) -> None:
        """Note that the application refused credentials that are as new as can be."""


_NEXT_STEP = {
    ConnectorStatus.PENDING: "finish the OAuth consent, or start it again",
    ConnectorStatus.NEEDS_REAUTH: "authorize it again: start an OAuth flow with its connector_id, or PATCH credentials",
    ConnectorStatus.DISABLED: 'enable it: PATCH {"status": "active"}',
}


@dataclass(frozen=True, slots=True)
class OpenedConnector:
    """A record and the engine's connector for it."""

    record: ConnectorRecord
    connector: Connector

    def need_ready(self) -> None:
        """Raise ConnectorNotReady, with the next step, unless calls can be made."""
        if self.record.status is not ConnectorStatus.ACTIVE:
            step = _NEXT_STEP[self.record.status]
            raise ConnectorNotReady(
                f"the connector is {self.record.status}; {step}",
                extra={"connector_status": self.record.status.value, "next_step": step},
            )


class OpenConnectors:
    """Opens connectors by organization and id."""

    def __init__(
        self,
        store: ConnectorStore,
        catalog: Catalog,
        transport: Transport,
        proof: Proof,
        overrides: Mapping[str, URL],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._transport = transport
        self._proof = proof
        self._overrides = overrides
        self._opened: dict[tuple[UUID, UUID], tuple[float, OpenedConnector]] = {}
        self._looking_up = SingleFlight(self._look_up)

    async def get(self, organization_id: UUID, connector_id: UUID) -> OpenedConnector:
        """The connector; raises NotFound for another organization's as for one that is not there."""
        known = self._opened.get((organization_id, connector_id))
        if known is not None and known[0] > time.monotonic():
            return known[1]
        return await self._looking_up((organization_id, connector_id))

    async def _look_up(self, key: tuple[UUID, UUID]) -> OpenedConnector:
        now = time.monotonic()
        record = await self._store.get(*key)
        opened = self.open(await self._proof.completed(record))
        if len(self._opened) >= _REMEMBERED:
            self._opened.clear()
        self._opened[key] = (now + _TRUST, opened)
        return opened

    def open(self, record: ConnectorRecord) -> OpenedConnector:
        """The engine's connector for a record at hand."""
        connector = Connector(
            kind=self._catalog.kind(record.kind),
            environment=record.environment,
            authorizer=self._proof.authorizer_of(record),
            transport=self._transport,
            override=self._overrides.get(record.kind),
            account=str(record.id),
        )
        return OpenedConnector(record, connector)

    async def refused(self, record: ConnectorRecord, refusal: ReauthorizationRequired) -> None:
        """Make the connector `needs_reauth` when it is the application that refused its credentials."""
        if refusal.upstream is not None:
            await self._proof.refused(record, refusal.detail)

    def heard(self, topic: str, subject: str) -> None:
        """News of another process: what changed is opened anew."""
        if topic == "connector":
            self._looking_up.forget()
            stale = [key for key in self._opened if str(key[1]) == subject]
            for key in stale:
                del self._opened[key]

    def forget_all(self) -> None:
        self._looking_up.forget()
        self._opened.clear()
