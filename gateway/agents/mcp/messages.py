"""Parses, checks and builds the protocol's JSON-RPC messages. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import mcp_types as types

from gateway.errors import GatewayError, RequestError, Unavailable
from gateway.foundation.mcp import TASKS, VERSIONS

#: the extension for events (SEP-3415), and its error codes
EVENTS = "io.modelcontextprotocol/events"
#: the extension for Agent Skills (SEP-2640)
SKILLS = "io.modelcontextprotocol/skills"
NOT_FOUND, FORBIDDEN, RESOURCE_EXHAUSTED, UNSUPPORTED, CALLBACK_ENDPOINT = -32023, -32024, -32025, -32026, -32027
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

#: maximum characters of what every notification of a stream repeats
_MAX_ID = 1000
#: JSON-RPC error code → HTTP status; all others are sent with 200
_STATUS = {
    types.PARSE_ERROR: 400,
    types.INVALID_REQUEST: 400,
    types.INVALID_PARAMS: 400,
    types.HEADER_MISMATCH: 400,
    types.MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
    types.UNSUPPORTED_PROTOCOL_VERSION: 400,
    types.METHOD_NOT_FOUND: 404,
}


class RpcError(Exception):
    """A JSON-RPC error: the request itself is invalid or failed. An error of a tool is a result instead."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(message)

    @property
    def status(self) -> int:
        """The HTTP status of the error."""
        return _STATUS.get(self.code, 200)

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers of the error."""
        return {}

    def as_document(self) -> dict[str, Any]:
        """The `error` member of the response."""
        members: dict[str, Any] = {"code": self.code, "message": self.message}
        return members if self.data is None else {**members, "data": dict(self.data)}


class RefusedRequest(RpcError):
    """A GatewayError as a JSON-RPC error. `data` has its code and whether the same request may be sent again."""

    def __init__(self, error: GatewayError) -> None:
        is_client_error = isinstance(error, RequestError) and not error.retryable
        data: dict[str, Any] = {"code": error.code, "retryable": error.retryable}
        self._retry_after = error.retry_after
        if error.retry_after is not None:
            data["retry_after"] = error.retry_after
        self._is_unavailable = isinstance(error, Unavailable)
        super().__init__(types.INVALID_PARAMS if is_client_error else types.INTERNAL_ERROR, error.detail, data)

    @property
    def status(self) -> int:
        return 503 if self._is_unavailable else super().status

    @property
    def headers(self) -> Mapping[str, str]:
        return {} if self._retry_after is None else {"Retry-After": str(self._retry_after)}


def invalid_params(message: str) -> RpcError:
    return RpcError(types.INVALID_PARAMS, message)


def missing_capability(required: Mapping[str, Any]) -> RpcError:
    """The error for a request that needs these capabilities of the client."""
    return RpcError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "the request needs a capability that the client did not declare",
        {"requiredCapabilities": dict(required)},
    )


def unsupported_version(requested: str) -> RpcError:
    return RpcError(
        types.UNSUPPORTED_PROTOCOL_VERSION,
        f"protocol version {requested} is not supported",
        {"supported": list(VERSIONS), "requested": requested},
    )


@dataclass(frozen=True)
class Message:
    """A request, or a notification if it has no id."""

    id: str | int | None
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_notification(self) -> bool:
        return self.id is None

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def version(self) -> str | None:
        """The protocol version in the request, which only versions since 2026-07-28 have."""
        version = self.meta.get(types.PROTOCOL_VERSION_META_KEY)
        return version if isinstance(version, str) else None

    @cached_property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client declared in this request."""
        declared = self.meta.get(types.CLIENT_CAPABILITIES_META_KEY)
        return declared if isinstance(declared, dict) else {}

    @property
    def has_tasks(self) -> bool:
        """Whether the client declared the extension for tasks."""
        return TASKS in (self.capabilities.get("extensions") or {})


def message_of(document: Any) -> Message:
    """The message in a parsed body; raises RpcError if it is not one message."""
    if isinstance(document, list):
        raise RpcError(types.INVALID_REQUEST, "batches are not supported; send one message per request")
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        raise RpcError(types.INVALID_REQUEST, 'a message is a JSON object with "jsonrpc": "2.0"')
    if not isinstance(document.get("method"), str):
        raise RpcError(types.INVALID_REQUEST, "method is missing; responses are not accepted")
    message_id = document.get("id")
    if "id" in document and (isinstance(message_id, bool) or not isinstance(message_id, str | int)):
        raise RpcError(types.INVALID_REQUEST, "id must be a string or an integer")
    if _is_long(message_id):
        raise RpcError(types.INVALID_REQUEST, f"id must have at most {_MAX_ID} characters")
    params = document.get("params", {})
    if not isinstance(params, dict):
        raise invalid_params("params must be an object")
    message = Message(message_id, document["method"], params)
    if _is_long(message.meta.get("progressToken")):
        raise invalid_params(f"progressToken must be a string or an integer of at most {_MAX_ID} characters")
    return message


def _is_long(name: object) -> bool:
    """Whether what every notification of a stream repeats is longer than a name needs to be."""
    if isinstance(name, int):
        return name.bit_length() > 64
    return isinstance(name, list | dict) or len(str(name)) > _MAX_ID


def id_of(document: Any) -> str | int | None:
    """The id for the error response to an invalid message; None if the message has no valid id."""
    message_id = document.get("id") if isinstance(document, dict) else None
    is_valid = isinstance(message_id, str | int) and not isinstance(message_id, bool) and not _is_long(message_id)
    return message_id if is_valid else None


def response(message_id: str | int | None, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "result": result}


def error_response(message_id: str | int | None, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "error": error.as_document()}


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": dict(params)}
