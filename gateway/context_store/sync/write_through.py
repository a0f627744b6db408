"""Read-your-writes: a write through the gateway is in the copies when the call returns."""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from gateway.context_store.entities import StoredEntity, find
from gateway.context_store.sync import schedule, transforms
from gateway.context_store.sync.single import store_documents
from gateway.errors import GatewayError
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.kinds.catalog import Operation
from gateway.kinds.members import value_at
from gateway.kinds.requests import CopyUpdate
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.prepared import prepare
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: maximum seconds that a write waits for the copies; after that, the next synchronization updates them
_TIMEOUT = 5.0
_NAME = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True)
class Write:
    """A write that succeeded."""

    operation: Operation
    params: Mapping[str, Any]
    result: OperationResult

    def value(self, name: str) -> Any:
        """The value of `{name}`: a param, or else a member of the answer; None if there is neither."""
        path = tuple(name.split("."))
        if path[0] in self.params:
            return value_at(self.params, path)
        document = self.result.decoded()
        return value_at(document, path) if isinstance(document, dict) else None

    def filled(self, value: Any) -> Any:
        """The value with each `{name}` replaced; a text that is only `{name}` becomes the value itself."""
        if not isinstance(value, str):
            return value
        match = _NAME.fullmatch(value)
        return self.value(match[1]) if match else _NAME.sub(lambda each: str(self.value(each[1])), value)

    def all_filled(self, members: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.filled(value) for name, value in members.items()}

    def applies(self, update: CopyUpdate) -> bool:
        return update.if_param is None or value_at(self.params, update.if_param) is not None


def copy_updates_of(operation: Operation) -> Sequence[CopyUpdate]:
    """The copies that this operation changes: those of `write_through` in its spec, by default the record's own."""
    if operation.action.write_through is not None:
        return operation.action.write_through
    if operation.entity.search is None:
        return ()
    if operation.action_id != "delete":
        return (CopyUpdate(entity=operation.entity_id),)
    in_path = operation.path_params
    return (CopyUpdate(entity=operation.entity_id, deleted_id=f"{{{in_path[-1]}}}"),) if in_path else ()


class WriteThrough:
    """Updates copies after writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def apply_write(
        self, organization_id: UUID, connector_id: UUID, connector: UpstreamConnector, write: Write
    ) -> None:
        """Apply a write to the copies. The write has succeeded, so that errors here are only logged."""
        for update in copy_updates_of(write.operation):
            if not write.applies(update):
                continue
            entity = None
            try:
                async with self._database.all_copies(organization_id) as connection:
                    entity = await find(connection, connector_id, update.entity)
                if entity is not None:
                    async with asyncio.timeout(_TIMEOUT):
                        await self._apply(entity, connector, write, update)
            except (GatewayError, TimeoutError, msgspec.MsgspecError) as error:
                log.warning(
                    "a copy was not updated after a write; it is synchronized soon",
                    extra={"connector_id": str(connector_id), "entity": update.entity, "error": type(error).__name__},
                )
                await self._run_soon(entity)
            except Exception:
                log.exception("a copy was not updated after a write because of a bug", extra={"entity": update.entity})
                await self._run_soon(entity)

    async def _apply(
        self, entity: StoredEntity, connector: UpstreamConnector, write: Write, update: CopyUpdate
    ) -> None:
        if update.resync:
            await self._run_soon(entity)
            return
        requested_at = CLOCK.now()
        if update.deleted_id is not None:
            documents = transforms.Documents(gone=[str(write.filled(update.deleted_id))])
        else:
            documents = await self._read(connector, write, update)
        await store_documents(self._database, entity, documents, requested_at)

    async def _read(self, connector: UpstreamConnector, write: Write, update: CopyUpdate) -> transforms.Documents:
        result = write.result
        if update.read is not None:
            operation = connector.kind.operation(update.entity, update.read)
            call = prepare(operation, write.all_filled(update.params))
            result = await connector.session.call(call)
        search = connector.kind.entity(update.entity).search
        under = None if update.parent_id is None else str(write.filled(update.parent_id))
        assert search is not None
        read = result.records if bytes(memoryview(result.result)[:1]) == b"[" else [result.result]
        return transforms.documents(search, read, write.all_filled(update.add_fields), under)

    async def _run_soon(self, entity: StoredEntity | None) -> None:
        if entity is None:
            return
        try:
            async with self._database.all_copies(entity.organization_id) as connection:
                await schedule.run_soon(connection, entity)
        except GatewayError:
            log.warning("a copy is updated by its next scheduled synchronization", extra={"entity": entity.entity})
