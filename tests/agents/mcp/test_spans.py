"""Spans of requests, with OpenTelemetry's names."""

from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.metrics.mcp_metrics import MCP_SERVER_OPERATION_DURATION
from opentelemetry.trace import SpanKind, StatusCode

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import ServerTool, StaticTools
from gateway.agents.mcp.messages import RpcError, message_of
from gateway.agents.mcp.results import Result, text, tool_result
from gateway.agents.mcp.server import Server
from gateway.foundation.mcp import HANDSHAKE_VERSIONS
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import REGISTRY

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VERSION = HANDSHAKE_VERSIONS[0]


async def refuse(context: Context, arguments: Mapping[str, Any]) -> Result:
    return tool_result(text("no"), is_error=True)


async def carry(context: Context, arguments: Mapping[str, Any]) -> Result:
    return tool_result(text(tracing.outgoing().get("traceparent", "")))


SERVER = Server(
    "s",
    "1",
    tools=StaticTools([ServerTool(name=each.__name__, description="", call=each) for each in (refuse, carry)]),
)


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    tracing.continue_trace({})
    tracing.send_spans_to(SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    tracing.send_spans_to(None)


async def served(method: str, **params: Any) -> Result:
    message = message_of({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})

    async def send(document: Mapping[str, Any]) -> None:
        """Drops notifications."""

    return await SERVER.serve(Context(message=message, version=VERSION, send=send, caller=None))


async def test_a_call_of_a_tool_continues_the_trace_of_its_message_and_links_that_of_its_request(spans):
    meta = {"traceparent": f"00-{TRACE}-{PARENT}-01"}

    with tracing.span("POST", "server"):
        answered = await served("tools/call", name="carry", _meta=meta)

    call, request = spans()
    assert (call.name, call.kind) == ("tools/call carry", SpanKind.SERVER)
    assert dict(call.attributes) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": VERSION,
        "jsonrpc.request.id": "7",
        "gen_ai.tool.name": "carry",
        "gen_ai.operation.name": "execute_tool",
    }
    assert (f"{call.context.trace_id:032x}", f"{call.parent.span_id:016x}") == (TRACE, PARENT)
    assert [link.context.span_id for link in call.links] == [request.context.span_id]
    assert answered["content"][0]["text"] == f"00-{TRACE}-{call.context.span_id:016x}-01"


async def test_the_duration_of_a_request_has_opentelemetrys_name_its_method_and_its_error():
    def counted(method: str, error_type: str = "") -> float:
        name = MCP_SERVER_OPERATION_DURATION.replace(".", "_")
        labels = {"mcp_method_name": method, "error_type": error_type}
        return REGISTRY.get_sample_value(f"{name}_seconds_count", labels) or 0

    cases = [("tools/call", ""), ("tools/call", "tool_error"), ("tools/call", "-32602"), ("_OTHER", "-32601")]
    before = [counted(*case) for case in cases]
    await served("tools/call", name="carry")
    await served("tools/call", name="refuse")
    for method in ("tools/call", "x" * 1_000):
        with pytest.raises(RpcError):
            await served(method, name="unknown")

    assert [counted(*case) - earlier for case, earlier in zip(cases, before, strict=True)] == [1, 1, 1, 1]


async def test_without_a_trace_in_the_message_the_span_is_below_that_of_its_request(spans):
    with tracing.span("POST", "server"):
        await served("tools/list", _meta={"traceparent": "nonsense"})

    listed, request = spans()
    assert (listed.name, listed.parent.span_id) == ("tools/list", request.context.span_id)
    assert "gen_ai.operation.name" not in listed.attributes


@pytest.mark.parametrize(
    ("name", "error_type"), [("refuse", "tool_error"), ("missing", "-32602")], ids=["tool", "protocol"]
)
async def test_a_failure_is_marked(spans, name: str, error_type: str):
    try:
        await served("tools/call", name=name)
    except RpcError:
        assert name == "missing"

    (call,) = spans()
    assert (call.attributes["error.type"], call.status.status_code) == (error_type, StatusCode.ERROR)


async def test_without_opentelemetry_the_callers_trace_is_passed_on():
    tracing.continue_trace({"traceparent": f"00-{TRACE}-{PARENT}-01"})

    answered = await served("tools/call", name="carry")

    assert answered["content"][0]["text"] == f"00-{TRACE}-{PARENT}-01"
    tracing.continue_trace({})
