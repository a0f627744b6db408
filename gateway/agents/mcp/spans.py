"""The span and the duration of a request, with the names of OpenTelemetry's conventions for MCP and generative AI.

https://github.com/open-telemetry/semantic-conventions-genai has the conventions.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import monotonic

from gateway.agents.mcp.messages import Message, RpcError
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import MCP_SERVER_SECONDS

#: method → the param that names what it is about, and its attribute
_SUBJECTS: Mapping[str, tuple[str, str]] = {
    "tools/call": ("name", "gen_ai.tool.name"),
    "prompts/get": ("name", "gen_ai.prompt.name"),
    "resources/read": ("uri", "mcp.resource.uri"),
}
#: maximum characters of an attribute, because callers choose the text
_LONGEST = 200
#: stands for a method that the server does not have, and for an error without a code
OTHER = "_OTHER"


@dataclass(slots=True)
class Outcome:
    """How a request ended."""

    #: a JSON-RPC error code or `tool_error`; empty for a success
    error_type: str = OTHER


@contextmanager
def measured(message: Message, version: str, method: str) -> Iterator[Outcome]:
    """A span and a duration of the block that serves a request, which sets the outcome unless it raises."""
    outcome, began = Outcome(), monotonic()
    with _request_span(message, version):
        try:
            yield outcome
        except RpcError as error:
            outcome.error_type = str(error.code)
            raise
        finally:
            MCP_SERVER_SECONDS.observe(monotonic() - began, method, outcome.error_type)
            if outcome.error_type:
                tracing.mark_failed(outcome.error_type)


def _request_span(message: Message, version: str) -> AbstractContextManager[None]:
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
