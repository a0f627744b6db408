"""The stdio transport: one message per line on stdin, one response or notification per line on stdout."""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

import mcp_types as types
import msgspec

from gateway.agents.mcp.context import Context, Send
from gateway.agents.mcp.messages import (
    RpcError,
    error_response,
    id_of,
    invalid_params,
    message_of,
    response,
    unsupported_version,
)
from gateway.agents.mcp.server import Server
from gateway.foundation.mcp import HANDSHAKE_VERSIONS, VERSIONS

#: maximum bytes of one message
_LINE = 64 << 20
#: seconds that requests in progress may take after the client has closed stdin
_TIMEOUT = 10.0

#: returns the response to one request, and sends notifications before it
Answer = Callable[[Any, Send], Awaitable[Mapping[str, Any]]]


class Writer(Protocol):
    """Writes lines."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...


async def serve(reader: asyncio.StreamReader, writer: Writer, answer: Answer) -> None:
    """Answer requests concurrently until the client closes stdin."""
    running: dict[str | int | None, asyncio.Task[None]] = {}

    async def send(document: Mapping[str, Any]) -> None:
        writer.write(msgspec.json.encode(document) + b"\n")
        await writer.drain()

    async def respond(document: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await send(await answer(document, send))

    while line := await reader.readline():
        if not line.strip():
            continue
        try:
            document = msgspec.json.decode(line)
        except msgspec.DecodeError:
            await send(error_response(None, RpcError(types.PARSE_ERROR, "the line is not JSON")))
            continue
        if isinstance(document, dict) and "id" not in document:
            _cancel(document, running)
            continue
        request_id = id_of(document)
        task = running[request_id] = asyncio.create_task(respond(document))
        task.add_done_callback(partial(_forget, running, request_id))
        if isinstance(document, dict) and document.get("method") == "initialize":
            await asyncio.wait([task])  # the next messages have the protocol version of its response
    if running:
        await asyncio.wait(running.values(), timeout=_TIMEOUT)


def _forget(
    running: "dict[str | int | None, asyncio.Task[None]]", request_id: str | int | None, task: "asyncio.Task[None]"
) -> None:
    if running.get(request_id) is task:
        del running[request_id]


def _cancel(document: Mapping[str, Any], running: Mapping[str | int | None, "asyncio.Task[None]"]) -> None:
    """Cancel the request that a `notifications/cancelled` names."""
    params = document.get("params")
    if document.get("method") == "notifications/cancelled" and isinstance(params, dict):
        task = running.get(params.get("requestId"))
        if task is not None:
            task.cancel()


class NoPipes(Exception):
    """Standard input or output is not a pipe, socket or terminal."""


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Standard input and output of this process; raises NoPipes for files and devices."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE)
    for stream, direction in ((sys.stdin, "input"), (sys.stdout, "output")):
        mode = os.fstat(stream.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stream.isatty()):
            raise NoPipes(
                f"standard {direction} is not a pipe. An MCP host starts this command with pipes; "
                "docs/how-to/agents.md has the configuration of the usual hosts."
            )
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        yield reader, writer
    finally:
        writer.close()


class StdioServer:
    """A server in this process. After `initialize`, requests have the protocol version of its response."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._negotiated: str | None = None

    async def answer(self, document: Any, send: Send) -> Mapping[str, Any]:
        """The response to one request."""
        try:
            message = message_of(document)
            version = message.version or self._negotiated
            if message.method == "initialize":
                version = HANDSHAKE_VERSIONS[0]
            if version is None:
                raise invalid_params(f"_meta lacks {types.PROTOCOL_VERSION_META_KEY}")
            if version not in VERSIONS:
                raise unsupported_version(version)
            result = await self._server.serve(Context(message=message, version=version, send=send, caller=None))
        except RpcError as error:
            return error_response(id_of(document), error)
        if message.method == "initialize":
            self._negotiated = result["protocolVersion"]
        return response(message.id, result)
