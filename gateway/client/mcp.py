"""Forwards messages of the Model Context Protocol from stdio to a gateway, over HTTP with a token."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import mcp_types as types
import msgspec

from gateway.agents.mcp.context import Send
from gateway.agents.mcp.headers import NAMED_BY
from gateway.agents.mcp.messages import Message, RpcError, error_response, id_of, message_of
from gateway.client.session import ApiRequest, Session
from gateway.errors import GatewayError
from gateway.foundation import payloads
from gateway.foundation.event_stream import EventStream
from gateway.foundation.mcp import ACCEPT, HANDSHAKE_VERSIONS, METHOD, NAME, VERSION, encoded


class StdioBridge:
    """Forwards requests to a gateway. After `initialize`, requests have the protocol version of its response."""

    def __init__(self, session: Session, path: str, query: Mapping[str, str]) -> None:
        self._session = session
        self._path = path
        self._query = query
        self._negotiated: str | None = None

    async def answer(self, document: Any, send: Send) -> Mapping[str, Any]:
        """The gateway's response to one request; notifications before it are passed to `send`."""
        try:
            message = message_of(document)
            call = ApiRequest(
                method="POST",
                path=self._path,
                query=self._query,
                body=document,
                headers={"Accept": ACCEPT, **self._headers(message)},
            )
            async with await self._session.exchange(call) as reply:
                answered = await _response_of(reply, send)
        except RpcError as error:
            return error_response(id_of(document), error)
        except GatewayError as error:
            return error_response(id_of(document), RpcError(types.INTERNAL_ERROR, error.detail))
        if message.method == "initialize" and "result" in answered:
            self._negotiated = answered["result"]["protocolVersion"]
        return answered

    def _headers(self, message: Message) -> dict[str, str]:
        """The headers that repeat members of the body; none for the `initialize` of an earlier protocol version."""
        version = message.version or self._negotiated
        if version is None:
            return {}
        if version in HANDSHAKE_VERSIONS:
            return {VERSION: version}
        headers = {VERSION: version, METHOD: message.method}
        named = message.params.get(NAMED_BY.get(message.method, ""))
        return {**headers, NAME: encoded(named)} if isinstance(named, str) else headers


async def _response_of(reply: aiohttp.ClientResponse, send: Send) -> dict[str, Any]:
    """The response; notifications before it are passed to `send`. Raises RpcError if it is not a protocol message."""
    try:
        if reply.content_type == "text/event-stream":
            async for document in _events(reply):
                if "id" in document:
                    return document
                await send(document)
            raise RpcError(types.INTERNAL_ERROR, "the gateway closed the stream before it answered")
        answered = payloads.typed(await reply.read(), Any)
    except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
        raise RpcError(types.INTERNAL_ERROR, f"the gateway's response was lost: {error}") from error
    if not isinstance(answered, dict) or "jsonrpc" not in answered:
        detail = answered.get("detail") if isinstance(answered, dict) else None
        raise RpcError(types.INTERNAL_ERROR, detail or f"the gateway answered with status {reply.status}")
    return answered


async def _events(reply: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The messages of a stream."""
    stream = EventStream()
    async for chunk in reply.content.iter_any():
        for event in stream.feed(chunk):
            yield payloads.typed(event.data, dict[str, Any])
