"""W3C Trace Context: passed on unchanged, or with spans of the gateway."""

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.foundation.telemetry import tracing

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture(autouse=True)
def no_context():
    tracing.continue_trace({})
    yield
    tracing.continue_trace({})
    tracing.send_spans_to(None)


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    tracing.send_spans_to(SimpleSpanProcessor(exporter))
    return exporter.get_finished_spans


@pytest.mark.parametrize("state", ["", "vendor=1", "a=1,b=2"])
def test_without_spans_a_context_is_passed_on_unchanged(state: str):
    trace_id = tracing.continue_trace({"traceparent": HEADER, "tracestate": state})

    assert tracing.outgoing() == {"traceparent": HEADER, **({"tracestate": state} if state else {})}
    assert tracing.traceparent() == HEADER
    assert trace_id == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        HEADER.upper(),
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}-01\r\nX-Injected: 1",
        f"00-{TRACE}-{PARENT}",
    ],
)
def test_a_malformed_context_is_ignored(header: str):
    trace_id = tracing.continue_trace({"traceparent": header, "tracestate": "vendor=1"})

    assert tracing.outgoing() == {}
    assert trace_id is None


@pytest.mark.parametrize("state", ["x" * 513, "a=1\r\nX-Injected: 1", "a=\x7f", "a=\udcff"])
def test_an_invalid_tracestate_is_dropped_and_the_trace_continues(state: str):
    tracing.continue_trace({"traceparent": HEADER, "tracestate": state})

    assert tracing.outgoing() == {"traceparent": HEADER}


def test_a_request_without_a_context_does_not_have_that_of_the_request_before():
    tracing.continue_trace({"traceparent": HEADER})

    tracing.continue_trace({})

    assert tracing.outgoing() == {}


def test_spans_of_the_gateway_continue_the_callers_trace(spans):
    tracing.continue_trace({"traceparent": HEADER})

    with tracing.span("POST", "server"), tracing.span("GET", "client"):
        sent = tracing.outgoing()["traceparent"]

    client, server = spans()
    assert f"{server.parent.span_id:016x}" == PARENT
    assert client.parent.span_id == server.context.span_id
    assert sent == f"00-{TRACE}-{client.context.span_id:016x}-01"


def test_a_job_continues_the_trace_that_its_row_stores(spans):
    tracing.continue_trace({"traceparent": HEADER})
    with tracing.span("POST", "server"):
        kept = tracing.traceparent()
    tracing.continue_trace({})

    tracing.continue_trace({"traceparent": kept or ""})
    with tracing.span("job operation", "consumer"):
        pass

    server, job = spans()
    assert job.context.trace_id == server.context.trace_id == int(TRACE, 16)
    assert job.parent.span_id == server.context.span_id
