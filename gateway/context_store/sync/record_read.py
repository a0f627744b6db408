"""Reads single records of the copy by their ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.context_store.sync import transforms
from gateway.context_store.sync.sources import params_with_fields
from gateway.context_store.sync.transforms import Documents
from gateway.errors import UpstreamNotFound
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.sync import Search
from gateway.upstream.connector import UpstreamConnector


@dataclass(frozen=True)
class RecordRead:
    """The `get` of an entity, with the fields of its list."""

    operation: Operation
    search: Search
    id_param: str
    constant_params: Mapping[str, Any]

    def params(self, record_id: str) -> dict[str, Any]:
        """The params that read one record; a decimal id becomes an integer if `get` takes one."""
        is_number = self.operation.action.params[self.id_param].get("type") == "integer" and record_id.isdecimal()
        return {**self.constant_params, self.id_param: int(record_id) if is_number else record_id}

    async def read(self, connector: UpstreamConnector, record_id: str) -> Documents:
        """The record, or its deletion if the application does not find it; raises GatewayError."""
        try:
            answer = await connector.call(self.operation, self.params(record_id))
        except UpstreamNotFound:
            return Documents(gone=[record_id])
        return transforms.documents(self.search, [answer.result])


def record_read(kind: Kind, entity_id: str) -> RecordRead | None:
    """How one record of the copy is read; None for an entity whose records only a list returns."""
    entity = kind.spec.entities.get(entity_id)
    id_param = None if entity is None else entity.record_id_param
    if entity is None or id_param is None or entity.search is None or entity.search.sync is None:
        return None
    operation = kind.operation(entity_id, "get")
    sync = entity.search.sync
    constant_params = params_with_fields(sync.params, entity.search)
    shared = {name: value for name, value in constant_params.items() if name in operation.action.params}
    return RecordRead(operation, entity.search, id_param, {**shared, **sync.get_params})
