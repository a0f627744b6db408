"""The messages to and from an MCP server: JSON-RPC 2.0 over Streamable HTTP. Pure.

Revision 2026-07-28 has everything in each request. Earlier ones begin with `initialize`, whose response may name a
session (`Mcp-Session-Id`).
"""

from collections.abc import Mapping
from importlib.metadata import version
from itertools import count
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
    METHOD,
    NAME,
    TASKS,
    VERSION,
    VERSION_KEY,
    encoded,
    has_handshake,
)
from gateway.kinds.long_running import TaskMethod
from gateway.upstream.requests import UpstreamRequest

TOOLS_CALL = "tools/call"
#: the members of a message's params that `Mcp-Name` repeats
_NAMED = frozenset({"name", "taskId"})
#: the id of a request until it is sent
_ID = 1
#: the ids of sent requests; none is used twice, because servers tell the streams of a session apart by them
_IDS = count(1)
#: requests of a server that are answered while it works on one of the gateway
_MAX_REPLIES: Final = 20
#: JSON-RPC's code for a method that the gateway does not have
_NO_METHOD = -32601
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
    if not has_handshake(protocol):
        extensions: dict[str, Any] = {"extensions": {TASKS: {}}} if takes_task else {}
        sent["_meta"] = {VERSION_KEY: protocol, CLIENT_KEY: _CLIENT, CAPABILITIES_KEY: extensions}
    elif takes_task and method == TOOLS_CALL:
        sent["task"] = {"ttl": _TASK_KEPT}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": _ID, "method": method, "params": sent})


def headers(method: str, params: Mapping[str, Any], protocol: str) -> dict[str, str]:
    """The headers of a request; since 2026-07-28 they repeat the method and the name in its body."""
    found = {"Accept": ACCEPT, "Content-Type": "application/json", VERSION: protocol}
    if has_handshake(protocol):
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
    reads_outcome = method == "result" and not has_handshake(protocol)
    name = "tasks/get" if reads_outcome else f"tasks/{method}"
    request = message(url, name, {"taskId": task_id}, protocol, takes_task=True)
    return replace(request, reads_outcome=reads_outcome)


def initialize_params(protocol: str) -> dict[str, Any]:
    """The params of `initialize`: no capabilities, so that the server asks nothing in return."""
    return {"protocolVersion": protocol, "capabilities": {}, "clientInfo": _CLIENT}


def initialized_body() -> bytes:
    """The notification after `initialize`."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"})


def numbered(request: UpstreamRequest) -> UpstreamRequest:
    """The request with an id of its own, for one try to send it."""
    assert request.body is not None
    number = next(_IDS)
    body = request.body.replace(b'"id":%d,' % _ID, b'"id":%d,' % number, 1)
    return replace(request, body=body, message_id=number)


class _Message(msgspec.Struct):
    """The members that tell a response from notifications and from requests of the server."""

    id: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT
    method: str | None = None


class Answers:
    """Reads what a server sends for one request until its response: a stream of events, and what it asks meanwhile."""

    def __init__(self, message_id: int, *, has_requests: bool) -> None:
        """`has_requests`: whether the server may ask, as it may in the revisions before 2026-07-28."""
        self._stream = EventStream()
        self._id = message_id
        self._replies_left = _MAX_REPLIES if has_requests else 0
        #: replies that are to be sent
        self.replies: list[bytes] = []

    def response_in(self, chunk: bytes) -> bytes | None:
        """The response in the events that a chunk completes; None if it comes later."""
        for event in self._stream.feed(chunk):
            if is_response(event.data, self._id):
                return event.data
            if self._replies_left and (reply := _reply_to(event.data)) is not None:
                self._replies_left -= 1
                self.replies.append(reply)
        return None


def _reply_to(text: bytes) -> bytes | None:
    """The response to a request of the server: an empty result for a ping, else an error; None for anything else."""
    message = _read(text)
    if message is None or message.method is None or bytes(message.id) in _NOTHING:
        return None
    error = {"code": _NO_METHOD, "message": "the client has no such capability"}
    said = {"result": {}} if message.method == "ping" else {"error": error}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, **said})


def is_response(text: bytes, message_id: int) -> bool:
    """Whether a message is the response to the request with the id; an error need not have the id.

    JSON-RPC has no id in the error of a request that the server could not read.
    """
    message = _read(text)
    if message is None:
        return False
    has_id = bytes(message.id) == b"%d" % message_id
    if bytes(message.error) not in _NOTHING:
        return has_id or bytes(message.id) in _NOTHING
    return has_id and message.result is not _ABSENT


def is_to_request(text: bytes, message_id: int) -> bool:
    """Whether a message has the id of a request, so that the server has read the request."""
    message = _read(text)
    return message is not None and bytes(message.id) == b"%d" % message_id


def _read(text: bytes) -> _Message | None:
    try:
        return payloads.typed(text, _Message)
    except msgspec.MsgspecError:
        return None


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
