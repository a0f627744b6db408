"""The operations that a caller is offered: without those that the policies never allow to it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.access.identity.model import Caller
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.model import ConnectorRecord
from gateway.kinds.find.entries import OperationEntry
from gateway.operations.permission import Permission


@dataclass(frozen=True)
class Offers:
    """Decides which operations tools and searches of operations show."""

    connectors: ConnectorAccess
    permission: Permission

    async def among(self, caller: Caller, entries: Iterable[OperationEntry]) -> Sequence[OperationEntry]:
        """The operations of which some call is allowed by some connector; all of kinds without a connector."""
        entries = list(entries)
        if not await self.permission.is_needed(caller):
            return entries
        records: dict[str, list[ConnectorRecord]] = defaultdict(list)
        for record in await self.connectors.find(caller):
            records[record.kind].append(record)
        offered = []
        for entry in entries:
            if await self._is_offered(caller, entry, records[entry.kind.name]):
                offered.append(entry)
            await asyncio.sleep(0)  # the statements about an operation are found in milliseconds, once
        return offered

    async def _is_offered(self, caller: Caller, entry: OperationEntry, records: Sequence[ConnectorRecord]) -> bool:
        for record in records:
            if await self.permission.is_possible(caller, record, entry.kind, entry.entity_id, entry.action_id):
                return True
        return not records
