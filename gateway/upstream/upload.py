"""Uploads a file: builds the request of a write with a file among its params, and streams the file's bytes.

The request is built with a marker in the place of the bytes, so that what lies before and after the file is written
by the same code as for a file in base64.
"""

import secrets
from base64 import b64encode
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.errors import GatewayError, InternalError, InvalidParams, MalformedRequest
from gateway.kinds.catalog import Operation
from gateway.upstream.requests import UpstreamRequest

#: the action that takes a file
ACTION = "create"
#: bytes of the marker
_MARKER_BYTES = 32

#: holds memory for pieces of a file within a block: at least and at most so many bytes → as many as are free. Raises
#: Unavailable if the least is not free.
PieceMemory = Callable[[int, int], AbstractContextManager[int]]


def _unshared(least: int, most: int) -> AbstractContextManager[int]:
    """The memory of a process that has one caller."""
    return nullcontext(most)


class SourceFile:
    """A caller's file, which can be read once."""

    def __init__(
        self,
        name: str,
        content_type: str,
        size: int,
        chunks: AsyncIterable[bytes],
        memory: PieceMemory = _unshared,
    ) -> None:
        self.name = name
        self.content_type = content_type
        self.size = size
        self._chunks = chunks
        self.memory = memory
        #: the placeholder of the bytes while the request is built
        self.marker = secrets.token_bytes(_MARKER_BYTES)
        #: whether its bytes are being sent, and what reading them raised
        self.has_begun = False
        self.error: GatewayError | None = None
        #: whether all of them were read
        self.is_read = size == 0

    async def read(self) -> AsyncIterator[bytes]:
        """The bytes as they come; raises MalformedRequest if they are not `size`, and yields no byte beyond it."""
        self.has_begun, read = True, 0
        try:
            async for chunk in self._chunks:
                read += len(chunk)
                if read > self.size:
                    raise MalformedRequest(f"the file is longer than its {self.size} bytes; send it with its size")
                self.is_read = read == self.size
                yield chunk
            if read != self.size:
                raise MalformedRequest(f"the file ended after {read} of {self.size} bytes; send it again")
        except GatewayError as error:
            self.error = error
            raise


def with_file(operation: Operation, params: Mapping[str, Any], file: SourceFile) -> dict[str, Any]:
    """The params of a call with the file among them; raises InvalidParams for an operation that takes none."""
    name = operation.file_param
    if name is None:
        raise InvalidParams(
            f"{operation} takes no file; the operations that do have a param in base64, see the discovery of the kind"
        )
    if name in params:
        raise InvalidParams(f"{operation}: {name} is the body of the request; leave it out of the query")
    params, schema = _from_query(operation, params), operation.resolved(operation.action.params[name])
    content = b64encode(file.marker).decode()
    if "contentEncoding" not in schema:
        return {**params, name: {"content": content, "filename": file.name, "content_type": file.content_type}}
    typed = operation.action.param_in(schema.get("contentMediaType"))
    named = {"name": file.name} if "name" in operation.action.params else {}
    return {**named, **({typed: file.content_type} if typed else {}), **params, name: content}


def _from_query(operation: Operation, params: Mapping[str, Any]) -> dict[str, Any]:
    """Query values, parsed as JSON if the schema allows no string: `true`, `["a","b"]`; others stay as they are."""
    found = dict(params)
    for name, value in params.items():
        declared = operation.resolved(operation.action.params.get(name, {})).get("type", "string")
        if isinstance(value, str) and "string" not in declared:
            with suppress(msgspec.DecodeError, RecursionError):
                found[name] = msgspec.json.decode(value)
    return found


def streamed(request: UpstreamRequest, file: SourceFile) -> UpstreamRequest:
    """The request with the file in place of the marker; its bytes are read while it is sent."""
    before, found, after = (request.body or b"").partition(file.marker)
    if not found:
        raise InternalError("the request has no place for the file")
    size = len(before) + file.size + len(after)
    headers = {**request.headers, "Content-Length": str(size)}
    return replace(request, headers=headers, body=None, stream=_Framed(before, file, after), size=size)


class _Framed:
    """The bytes before the file, the file, and the bytes after it; can be read once."""

    def __init__(self, before: bytes, file: SourceFile, after: bytes) -> None:
        self._before, self._file, self._after = before, file, after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._before:
            yield self._before
        async for chunk in self._file.read():
            yield chunk
        if self._after:
            yield self._after
