"""The messages to and from an MCP server: JSON-RPC 2.0 over Streamable HTTP. Pure.

Revision 2026-07-28 has everything in each request. Earlier ones begin with `initialize`, whose response may name a
session (`Mcp-Session-Id`).
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import msgspec
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import UpstreamInvalidResponse, UpstreamRejected
from gateway.foundation import payloads
from gateway.foundation.event_stream import EventStream
from gateway.foundation.mcp import (
    ACCEPT,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HANDSHAKE_VERSIONS,
    METHOD,
    NAME,
    VERSION,
    VERSION_KEY,
    encoded,
)
from gateway.upstream.requests import UpstreamRequest

TOOLS_CALL = "tools/call"
#: the member of a message's params that `Mcp-Name` repeats
_NAMED = "name"
#: the id of each request; every one has a connection of its own, so that no other response can come
_ID = 1
#: a member that a message does not have
_ABSENT = msgspec.Raw(b"")
_CLIENT: Final = {"name": "agent-connector-gateway", "version": version("agent-connector-gateway")}


def request_body(method: str, params: Mapping[str, Any], protocol: str) -> bytes:
    """A request as JSON-RPC; since 2026-07-28 it names version, client and capabilities in `_meta`."""
    sent = dict(params)
    if protocol not in HANDSHAKE_VERSIONS:
        sent["_meta"] = {VERSION_KEY: protocol, CLIENT_KEY: _CLIENT, CAPABILITIES_KEY: {}}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": _ID, "method": method, "params": sent})


def headers(method: str, params: Mapping[str, Any], protocol: str) -> dict[str, str]:
    """The headers of a request; since 2026-07-28 they repeat the method and the name in its body."""
    found = {"Accept": ACCEPT, "Content-Type": "application/json", VERSION: protocol}
    if protocol in HANDSHAKE_VERSIONS:
        return found
    found[METHOD] = method
    if _NAMED in params:
        found[NAME] = encoded(str(params[_NAMED]))
    return found


def message(url: URL, method: str, params: Mapping[str, Any], protocol: str) -> UpstreamRequest:
    """A request to an MCP server that changes nothing."""
    return UpstreamRequest(
        method="POST",
        url=url,
        headers=headers(method, params, protocol),
        body=request_body(method, params, protocol),
        effect=Effect.READ,
        operation=f"mcp.{method}",
        reads_events=True,
    )


def initialize_params(protocol: str) -> dict[str, Any]:
    """The params of `initialize`: no capabilities, so that the server asks nothing in return."""
    return {"protocolVersion": protocol, "capabilities": {}, "clientInfo": _CLIENT}


def initialized_body() -> bytes:
    """The notification after `initialize`."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"})


class _Message(msgspec.Struct):
    """The members that tell a response from notifications and from requests of the server."""

    id: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


def response_in(stream: EventStream, chunk: bytes) -> bytes | None:
    """The response in the events that a chunk completes; None if it comes later."""
    return next((event.data for event in stream.feed(chunk) if _is_response(event.data)), None)


def _is_response(event: bytes) -> bool:
    try:
        message = payloads.typed(event, _Message)
    except msgspec.MsgspecError:
        return False
    is_answer = message.result is not _ABSENT or message.error is not _ABSENT
    return is_answer and bytes(message.id) == b"%d" % _ID


class _Result(msgspec.Struct):
    """What a server says of its result since 2026-07-28."""

    resultType: str = "complete"  # noqa: N815


def require_complete(operation: object, result: msgspec.Raw) -> None:
    """Raise an error for the result of a tool that has not done its work.

    UpstreamRejected if the tool asks a person for input; UpstreamInvalidResponse for anything else.
    """
    try:
        said = payloads.typed(result, _Result).resultType
    except msgspec.MsgspecError as error:
        raise UpstreamInvalidResponse(f"{operation}: the server's answer is not the result of a tool") from error
    if said == "input_required":
        raise UpstreamRejected(f"{operation}: the tool asks a person for input, which the gateway cannot pass on")
    if said != "complete":
        raise UpstreamInvalidResponse(f"{operation}: the server's result is {said!r}, which was not offered to it")
