"""The tools' backend in this process: one application, without a gateway; credentials stay in the process."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any
from uuid import uuid4

import msgspec

from gateway.agents.tools.addresses import resource_uri
from gateway.agents.tools.backend import AgentCall, ConnectorInfo, Part
from gateway.agents.tools.ranges import part_of_file, part_of_records, part_of_text
from gateway.errors import InvalidParams, NotFound, UpstreamTooLarge
from gateway.foundation import payloads
from gateway.foundation.aio.remembered import Remembered
from gateway.in_process import LocalConnector
from gateway.jobs.model import StoredJob
from gateway.jobs.results import line_of
from gateway.kinds.catalog import Catalog
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.index import OperationIndex, index_of
from gateway.upstream.field_selection import FieldSelection, selected_of
from gateway.upstream.responses import OperationResult

#: maximum number of stored answers and files
_MAX_RESULTS = 32
#: maximum bytes of a file
_MAX_BYTES = 32 << 20


class LocalBackend:
    """Runs operations of one connector; stores long answers in memory, and drops the oldest."""

    def __init__(self, connector: LocalConnector) -> None:
        self._connector = connector
        self.catalog = Catalog([connector.kind])
        self._index = Remembered(partial(asyncio.to_thread, index_of, self.catalog), inf, lambda: 0)
        self._results: OrderedDict[str, tuple[bytes, str]] = OrderedDict()

    async def index(self) -> OperationIndex:
        return await self._index()

    async def connectors(self, caller: Any) -> Sequence[ConnectorInfo]:
        kind = self._connector.kind
        return [ConnectorInfo(id=kind.name, name=kind.spec.application, kind=kind.name)]

    async def connector(self, caller: Any, name: str) -> ConnectorInfo | None:
        return next((each for each in await self.connectors(caller) if each.id == name), None)

    async def offered(self, caller: Any, entries: Iterable[OperationEntry]) -> Sequence[OperationEntry]:
        return list(entries)

    async def execute(self, caller: Any, call: AgentCall) -> OperationResult | StoredJob:
        if call.idempotency_key is not None:
            raise InvalidParams("idempotency_key needs a gateway, which stores it; leave it out here")
        if call.entry.action is not None and call.entry.action.download is not None:
            return await self._file(call)
        page = await self._connector.execute(call.entry.entity_id, call.entry.action_id, call.params)
        return await selected_of(call.entry.effect, page.answer, FieldSelection(select_fields=call.fields))

    async def _file(self, call: AgentCall) -> OperationResult:
        """Store a file; the answer has the URI at which ranges of it are read."""
        content = bytearray()
        async for chunk in self._connector.download(call.entry.entity_id, call.params):
            content += chunk
            if len(content) > _MAX_BYTES:
                raise UpstreamTooLarge(f"the file is larger than {_MAX_BYTES} bytes; use a gateway for larger files")
        result_id = self._save(bytes(content), "application/octet-stream")
        return OperationResult(
            result=msgspec.Raw(msgspec.json.encode({"resource": resource_uri(result_id), "bytes": len(content)}))
        )

    async def dry_run(self, caller: Any, call: AgentCall) -> list[dict[str, Any]]:
        return self._connector.dry_run(call.entry.entity_id, call.entry.action_id, call.params)

    async def save(self, caller: Any, call: AgentCall, answer: OperationResult) -> str:
        return self._save(bytes(answer.result), "application/json")

    def _save(self, content: bytes, media_type: str) -> str:
        result_id = str(uuid4())
        self._results[result_id] = (content, media_type)
        if len(self._results) > _MAX_RESULTS:
            self._results.popitem(last=False)
        return result_id

    async def part(self, caller: Any, result_id: str, offset: int, limit: int | None) -> Part:
        if result_id not in self._results:
            raise NotFound(f"there is no such result; only the last {_MAX_RESULTS} are stored")
        content, media_type = self._results[result_id]
        if media_type != "application/json":
            return await part_of_file(
                len(content), media_type, offset, limit, lambda part: _each(content[part.start : part.end + 1])
            )
        if content.startswith(b"["):
            records = payloads.items(content)
            return await part_of_records(_each("".join(map(line_of, records))), offset, limit)
        return await part_of_text(_each(content), offset, limit)


async def _each(*items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


def environment_credentials(kind_name: str, catalog: Catalog, environ: Mapping[str, str]) -> dict[str, str]:
    """A kind's credentials and variables from the environment: `SUPPORT_DESK_API_TOKEN`, `SUPPORT_DESK_SUBDOMAIN`."""
    names = variables_of(kind_name, catalog)
    return {field: environ[name] for field, name in names.items() if environ.get(name)}


def variables_of(kind_name: str, catalog: Catalog) -> dict[str, str]:
    """Field → the environment variable with its value."""
    spec = catalog.kind(kind_name).spec
    fields = [*spec.environment, *(field for method in spec.authentication.values() for field in method.credentials)]
    prefix = spec.kind.replace("-", "_").upper()
    return {field: f"{prefix}_{field.upper()}" for field in dict.fromkeys(fields)}
