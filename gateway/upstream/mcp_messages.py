"""The messages to and from an MCP server: JSON-RPC 2.0 over Streamable HTTP. Pure.

Revision 2026-07-28 has everything in each request. Earlier ones begin with `initialize`, whose response may name a
session (`Mcp-Session-Id`).
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import msgspec
from msgspec.structs import replace
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
    TASKS,
    VERSION,
    VERSION_KEY,
    encoded,
)
from gateway.kinds.long_running import TaskMethod
from gateway.upstream.requests import UpstreamRequest

TOOLS_CALL = "tools/call"
#: the members of a message's params that `Mcp-Name` repeats
_NAMED = frozenset({"name", "taskId"})
#: the id of each request, which has a connection of its own
_ID = 1
#: a member that a message does not have
_ABSENT = msgspec.Raw(b"")
#: JSON of a member that says nothing
_NOTHING = (b"", b"null")
#: milliseconds for which a server of 2025-11-25 is asked to keep a task
_TASK_KEPT: Final = 24 * 3600 * 1000
_CLIENT: Final = {"name": "agent-connector-gateway", "version": version("agent-connector-gateway")}


def request_body(method: str, params: Mapping[str, Any], protocol: str, *, takes_task: bool = False) -> bytes:
    """A request as JSON-RPC; since 2026-07-28 it names version, client and capabilities in `_meta`.

    `takes_task`: whether the server may answer the call of a tool with a task, which it is asked for before 2026-07-28.
    """
    sent = dict(params)
    if protocol not in HANDSHAKE_VERSIONS:
        extensions: dict[str, Any] = {"extensions": {TASKS: {}}} if takes_task else {}
        sent["_meta"] = {VERSION_KEY: protocol, CLIENT_KEY: _CLIENT, CAPABILITIES_KEY: extensions}
    elif takes_task and method == TOOLS_CALL:
        sent["task"] = {"ttl": _TASK_KEPT}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": _ID, "method": method, "params": sent})


def headers(method: str, params: Mapping[str, Any], protocol: str) -> dict[str, str]:
    """The headers of a request; since 2026-07-28 they repeat the method and the name in its body."""
    found = {"Accept": ACCEPT, "Content-Type": "application/json", VERSION: protocol}
    if protocol in HANDSHAKE_VERSIONS:
        return found
    found[METHOD] = method
    for name in _NAMED & params.keys():
        found[NAME] = encoded(str(params[name]))
    return found


def message(
    url: URL, method: str, params: Mapping[str, Any], protocol: str, *, takes_task: bool = False
) -> UpstreamRequest:
    """A request to an MCP server that changes nothing."""
    return UpstreamRequest(
        method="POST",
        url=url,
        headers=headers(method, params, protocol),
        body=request_body(method, params, protocol, takes_task=takes_task),
        effect=Effect.READ,
        operation=f"mcp.{method}",
        mcp_method=method,
    )


def task_message(url: URL, method: TaskMethod, task_id: str, protocol: str) -> UpstreamRequest:
    """A request about a task. Since 2026-07-28 `tasks/get` has the outcome too, so that there is no `tasks/result`."""
    reads_outcome = method == "result" and protocol not in HANDSHAKE_VERSIONS
    name = "tasks/get" if reads_outcome else f"tasks/{method}"
    request = message(url, name, {"taskId": task_id}, protocol, takes_task=True)
    return replace(request, reads_outcome=reads_outcome)


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
    return next((event.data for event in stream.feed(chunk) if is_response(event.data)), None)


def is_response(text: bytes) -> bool:
    """Whether a message is the response to the request of its connection; an error need not have the id.

    JSON-RPC has no id in the error of a request that the server could not read.
    """
    try:
        message = payloads.typed(text, _Message)
    except msgspec.MsgspecError:
        return False
    has_id = bytes(message.id) == b"%d" % _ID
    if bytes(message.error) not in _NOTHING:
        return has_id or bytes(message.id) in _NOTHING
    return has_id and message.result is not _ABSENT


def is_to_request(text: bytes) -> bool:
    """Whether a message has the id of the request of its connection, so that the server has read the request."""
    try:
        return bytes(payloads.typed(text, _Message).id) == b"%d" % _ID
    except msgspec.MsgspecError:
        return False


class _Task(msgspec.Struct):
    """What the call of a tool has come to, once its task has ended."""

    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


class _TaskResponse(msgspec.Struct):
    result: _Task


def outcome_in(body: bytes) -> bytes:
    """The response to the call of a tool, from that to `tasks/get`; an empty one if the task has no outcome."""
    try:
        task = payloads.typed(body, _TaskResponse).result
    except msgspec.MsgspecError:
        return body
    if task.error is not _ABSENT:
        return b'{"error":%b}' % bytes(task.error)
    return b"{}" if task.result is _ABSENT else b'{"result":%b}' % bytes(task.result)


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
