"""The connectors that a caller may see: those of its organization, and of its workspaces if it is limited to some."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec.structs import replace

from gateway.access.identity.model import Caller
from gateway.access.identity.store import IdentityStore, Workspace
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.store import ConnectorStore
from gateway.connectors.views import as_served
from gateway.contract.connectors import ConnectorSelection, ConnectorStatus
from gateway.kinds.catalog import Catalog


class ConnectorAccess:
    """Look-ups of connectors and workspaces; raises NotFound for a connector that the caller may not see."""

    def __init__(self, store: ConnectorStore, identity: IdentityStore, catalog: Catalog) -> None:
        self._catalog = catalog
        self._store = store
        self._identity = identity

    async def get(self, caller: Caller, connector_id: UUID) -> ConnectorRecord:
        """The record of a connector, `unserved` if its kind is not served."""
        record = as_served(await self._store.get(caller.organization_id, connector_id), self._catalog)
        caller.require_workspace(record.workspace_name, "connector")
        return record

    async def find(
        self,
        caller: Caller,
        selection: ConnectorSelection | None = None,
        *,
        after: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
    ) -> Sequence[ConnectorRecord]:
        """Matching records in the order of their creation; all of them without a limit."""
        visible = replace(
            selection or ConnectorSelection(), workspaces=caller.client.workspaces, served=list(self._catalog.kinds)
        )
        records = await self._store.find(caller.organization_id, visible, after=after, limit=limit)
        return [as_served(record, self._catalog) for record in records]

    async def latest_of_each_kind(self, caller: Caller, limit: int) -> Sequence[ConnectorRecord]:
        """The latest records of each kind, at most `limit` of one kind, in the order of their creation."""
        records = await self._store.latest_of_each_kind(caller.organization_id, limit, caller.client.workspaces)
        return [as_served(record, self._catalog) for record in records]

    async def count(self, caller: Caller) -> dict[ConnectorStatus, int]:
        """The number of the caller's connectors by status."""
        return await self._store.count(caller.organization_id, caller.client.workspaces, list(self._catalog.kinds))

    async def workspaces(
        self, caller: Caller, name_contains: str | None = None, after: tuple[str, UUID] | None = None, limit: int = 1000
    ) -> Sequence[Workspace]:
        """The caller's workspaces by name."""
        own = caller.client.workspaces
        return await self._identity.workspaces(caller.organization_id, name_contains, after, limit, own)
