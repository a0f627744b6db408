"""Reads long answers and files in parts, for the tool `read`: with most hosts, a model cannot read resources."""

from collections.abc import AsyncIterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.results import Result, structured
from gateway.agents.tools import answers
from gateway.agents.tools.addresses import ResultAddress, read_hint
from gateway.agents.tools.backend import Backend, Part, ResultForm
from gateway.agents.tools.descriptions import DEFAULT_BYTES
from gateway.agents.tools.ranges import lines_of, part_of_text
from gateway.errors import InvalidParams
from gateway.foundation import payloads
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.field_selection import FieldSelection, selected, selected_records
from gateway.upstream.responses import OperationResult

#: maximum bytes of a document whose fields are selected
_MAX_DOCUMENT = 32 << 20
#: members of a record that are compared with the name of one that is not there
_COMPARED = 1000
#: records without a member
_EMPTY = (b"{}", b"[]", b'""', b"null", b"false", b"0")


class StoredResults:
    """`read` of `gateway://results/…` with `offset`, `limit`, `fields` and `max_bytes`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def read(self, context: Context, arguments: Mapping[str, Any]) -> Result:
        """The part as `{result | text | base64, offset, hint?}`; `hint` is the call for the next part.

        Raises NotFound, ResultExpired, and InvalidParams for an invalid URI.
        """
        at = ResultAddress.of(arguments["operation"])
        offset, limit = arguments.get("offset", at.offset), arguments.get("limit", at.limit)
        max_bytes = arguments.get("max_bytes", DEFAULT_BYTES)
        part = await self._backend.part(context.caller, at.id, offset, limit)
        if part.form is ResultForm.RECORDS:
            document, count = await _records(part, arguments.get("fields"), max_bytes)
        else:
            # `limit` counts bytes here, and records in a list.
            in_bytes = min(max_bytes if limit is None else limit, max_bytes)
            part = await self._bytes(
                context, at.id, offset=offset, limit=in_bytes, part=part, fields=arguments.get("fields")
            )
            document, count = _content(part), part.count
        if not part.is_last or count < part.count:
            following = {name: arguments[name] for name in ("limit", "fields", "max_bytes") if name in arguments}
            document["hint"] = read_hint("next part", at.id, offset=offset + count, **following)
        return structured({"offset": offset, **document})

    async def _bytes(
        self, context: Context, result_id: str, offset: int, limit: int, part: Part, fields: list[str] | None
    ) -> Part:
        """The range of a file, or of a JSON document that is reduced to the fields."""
        if part.form is ResultForm.DOCUMENT and fields:
            answer = OperationResult(result=msgspec.Raw(await self._document(context, result_id)))
            content = bytes((await selected(answer, FieldSelection(select_fields=fields))).result)
            return await part_of_text(_chunks(content), offset, limit)
        return await self._backend.part(context.caller, result_id, offset, limit)

    async def _document(self, context: Context, result_id: str) -> bytes:
        content = bytearray()
        while True:
            part = await self._backend.part(context.caller, result_id, len(content), _MAX_DOCUMENT)
            content += part.data.encode() if isinstance(part.data, str) else part.data
            if part.is_last:
                return bytes(content)
            if len(content) >= _MAX_DOCUMENT:
                raise InvalidParams(f"the result is larger than {_MAX_DOCUMENT} bytes; read it without fields")


async def _records(part: Part, fields: list[str] | None, max_bytes: int) -> tuple[dict[str, Any], int]:
    """The first records that fit into `max_bytes`, at least one, and their number."""
    assert isinstance(part.data, str)
    lines = [msgspec.Raw(line.encode()) for line in lines_of(part.data)]
    records = await selected_records(lines, FieldSelection(select_fields=fields))
    if fields and records and all(bytes(record) in _EMPTY for record in records):
        names = islice(payloads.value(lines[0]), _COMPARED)
        raise InvalidParams(f"no record has {', '.join(fields)}; {did_you_mean(fields[0], names)}")
    fitting: list[Any] = []
    used = 0
    for record in records:
        used += len(msgspec.json.encode(record))
        if fitting and used > max_bytes:
            break
        fitting.append(record)
    if used <= max_bytes or len(fitting) > 1 or fields:
        return {"result": fitting}, len(fitting)
    advice = f"the record was shortened from {used} bytes; name fields to read members in full"
    return {"result": answers.preview([payloads.value(fitting[0])]), "shortened": advice}, 1


def _content(part: Part) -> dict[str, Any]:
    """A complete JSON document as `result`; other text as `text`, bytes as `base64`."""
    if part.form is ResultForm.DOCUMENT and part.offset == 0 and part.is_last:
        assert isinstance(part.data, str)
        return {"result": msgspec.Raw(part.data.encode())}
    facts = {} if part.form is ResultForm.DOCUMENT else {"media_type": part.media_type}
    content = {"text": part.data} if isinstance(part.data, str) else {"base64": part.data}
    return {**facts, **content, **({} if part.total is None else {"bytes": part.total})}


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content
