"""The span of a request, with the names of OpenTelemetry's conventions for MCP and generative AI.

https://github.com/open-telemetry/semantic-conventions-genai has the conventions.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from gateway.agents.mcp.messages import Message
from gateway.foundation.telemetry import tracing

#: method → the param that names what it is about, and its attribute
_SUBJECTS: Mapping[str, tuple[str, str]] = {
    "tools/call": ("name", "gen_ai.tool.name"),
    "prompts/get": ("name", "gen_ai.prompt.name"),
    "resources/read": ("uri", "mcp.resource.uri"),
}
#: maximum characters of an attribute, because callers choose the text
_LONGEST = 200


def request_span(message: Message, version: str) -> AbstractContextManager[None]:
    """A span around the block that serves a request; the trace context in `_meta` is its parent."""
    if not tracing.has_spans():
        return tracing.span("", "server")
    attributes = {"mcp.method.name": message.method, "mcp.protocol.version": version}
    if message.id is not None:
        attributes["jsonrpc.request.id"] = str(message.id)[:_LONGEST]
    name = message.method
    param, attribute = _SUBJECTS.get(message.method, ("", ""))
    subject = message.params.get(param)
    if isinstance(subject, str):
        attributes[attribute] = subject[:_LONGEST]
        # The address of a resource would make a name of its own for each.
        name = f"{message.method} {attributes[attribute]}" if attribute.startswith("gen_ai.") else name
    if message.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    return tracing.span(name, "server", message.meta, **attributes)
