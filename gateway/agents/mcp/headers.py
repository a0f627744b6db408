"""Checks the HTTP headers that repeat members of the body for intermediaries: they must agree with the body."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

import mcp_types as types

from gateway.agents.mcp.messages import Message, RpcError, unsupported_version
from gateway.foundation.mcp import ENCODED, HANDSHAKE_VERSIONS, METHOD, NAME, VERSION, VERSIONS

#: the protocol version of requests that name none, because it has no such header
_WITHOUT_HEADER = "2025-03-26"
PARAM_PREFIX = "Mcp-Param-"
#: method → the member of params whose value is in `Mcp-Name`
NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
#: the keyword of an input schema with the name of an argument's header
_KEYWORD = "x-mcp-header"


def version_of(message: Message, headers: Mapping[str, str]) -> str:
    """The protocol version of a request; raises RpcError if header and body do not agree, or if it is not supported."""
    header = headers.get(VERSION)
    if message.version is not None or header not in (None, *HANDSHAKE_VERSIONS):
        return _repeated_version(message, header)
    if header is None and message.method != "initialize":
        return _WITHOUT_HEADER
    return header or HANDSHAKE_VERSIONS[0]


def _repeated_version(message: Message, header: str | None) -> str:
    """The version of a request that names it in header and body."""
    if message.version is None:
        if header not in VERSIONS:
            raise unsupported_version(str(header))
        raise RpcError(types.INVALID_PARAMS, f"_meta lacks {types.PROTOCOL_VERSION_META_KEY}")
    if header != message.version:
        raise _mismatch(f"{VERSION} is {header!r}, but the body has {message.version!r}")
    if message.version not in VERSIONS:
        raise unsupported_version(message.version)
    return message.version


def check_names(message: Message, headers: Mapping[str, str]) -> None:
    """Raise RpcError unless `Mcp-Method` and `Mcp-Name` agree with the body."""
    if headers.get(METHOD) != message.method:
        raise _mismatch(f"{METHOD} is {headers.get(METHOD)!r}, but the body has {message.method!r}")
    member = NAMED_BY.get(message.method)
    if member is None:
        return
    header, expected = headers.get(NAME), message.params.get(member)
    if header is None or decoded(header) != expected:
        raise _mismatch(f"{NAME} is {header!r}, but the body has {expected!r}")


def check_params(schema: Mapping[str, Any], arguments: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Raise RpcError unless each `Mcp-Param-…` header of a tool agrees with its argument."""
    for name, path, kind in annotated(schema):
        header, value = headers.get(PARAM_PREFIX + name), _at(arguments, path)
        if value is None and header is None:
            continue
        if value is None or header is None or not _agree(decoded(header), value, kind):
            raise _mismatch(f"{PARAM_PREFIX}{name} is {header!r}, but the argument {'.'.join(path)} is {value!r}")


def annotated(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The arguments of a tool that have a header: the header's name, the argument's path, and its type."""
    for member, inner in (schema.get("properties") or {}).items():
        if not isinstance(inner, dict):
            continue
        if _KEYWORD in inner:
            yield inner[_KEYWORD], (*path, member), str(inner.get("type"))
        yield from annotated(inner, (*path, member))


def decoded(value: str) -> str:
    """A header's value, decoded if it is in base64; raises RpcError if it cannot be decoded."""
    match = ENCODED.fullmatch(value)
    if match is None:
        if not all(character == "\t" or " " <= character <= "~" for character in value):
            raise _mismatch(f"a header contains characters that are not visible ASCII: {value!r}")
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _mismatch(f"{value!r} is not base64 of UTF-8") from error


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for member in path:
        value = value.get(member) if isinstance(value, Mapping) else None
    return value


def _agree(text: str, value: Any, kind: str) -> bool:
    if kind == "boolean":
        return text == ("true" if value else "false")
    if kind == "integer":
        try:
            return float(text) == float(value)
        except (TypeError, ValueError):
            return False
    return bool(text == value)


def _mismatch(message: str) -> RpcError:
    return RpcError(types.HEADER_MISMATCH, f"header mismatch: {message}")
