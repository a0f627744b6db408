"""Names of the Model Context Protocol that the gateway's server and its calls to other servers have in common."""

import base64
import re

#: supported protocol versions, the newest first
VERSIONS = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
#: those whose connections begin with `initialize`
HANDSHAKE_VERSIONS = VERSIONS[1:]
#: one that only other servers speak: it has another transport, and yet many answer it over Streamable HTTP
OLDEST_VERSION = "2024-11-05"

VERSION = "MCP-Protocol-Version"
METHOD = "Mcp-Method"
NAME = "Mcp-Name"
SESSION = "Mcp-Session-Id"
#: the media types that a client takes: one message, or a stream of events
ACCEPT = "application/json, text/event-stream"

#: members of `_meta` in each request since 2026-07-28
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

#: the extension by which a tool may answer with a task
TASKS = "io.modelcontextprotocol/tasks"


def has_handshake(version: str) -> bool:
    """Whether connections of a protocol version begin with `initialize`."""
    return version != VERSIONS[0]


ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)


def encoded(value: str) -> str:
    """A value as a header: plain if it is visible ASCII, else in base64."""
    is_plain = all(" " <= character <= "~" for character in value) and value == value.strip()
    if is_plain and not ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
