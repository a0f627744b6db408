"""The request, job and trace of an asyncio task: fields of its log events, and W3C Trace Context.

The trace context (https://www.w3.org/TR/trace-context/) is passed through jobs to the applications. Without
OpenTelemetry (the extra `otel`) the caller's headers are passed on unchanged; with it the gateway adds its spans.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import time_ns
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from multidict import istr

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
#: a tracestate that is passed on. The standard asks for at least 512 characters; a JSON message of an agent's host can
#: have characters that a header must not have.
_TRACESTATE = re.compile(r"[\t\x20-\x7e]{1,512}")

#: an `istr`, because multidict lowercases a plain text at each look-up
_PARENT = istr("traceparent")
_NOTHING: Mapping[str, str] = {}
#: the trace headers of the caller
_CARRIED: ContextVar[Mapping[str, str]] = ContextVar("trace_context", default=_NOTHING)
#: the fields of every log event of this request or job
_LOG_FIELDS: ContextVar[Mapping[str, str]] = ContextVar("log_fields", default=MappingProxyType({}))
_NO_SPAN = nullcontext()
_tracer: "Tracer | None" = None


class TracingError(Exception):
    """Tracing is on, but spans cannot be sent; the text says how to fix it."""


def configure_tracing(service: str) -> None:
    """Send spans to OTEL_EXPORTER_OTLP_ENDPOINT; raises TracingError without the extra `otel`."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracingError(
            "GATEWAY_TRACING is on, but OpenTelemetry is not installed: pip install 'agent-connector-gateway[otel]'"
        ) from error
    send_spans_to(BatchSpanProcessor(OTLPSpanExporter()), service)


def send_spans_to(processor: Any | None, service: str = "gateway") -> None:
    """Pass spans to the processor, sampled as OTEL_TRACES_SAMPLER says; with None create no spans."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    global _tracer
    if processor is None:
        _tracer = None
        return
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(processor)
    _tracer = provider.get_tracer("gateway")


def begin_request(request_id: str, method: str, headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Add the request id to the log events of this task and of tasks that it starts, and continue the caller's trace.

    Returns the span around the block that handles the request.
    """
    trace_id = continue_trace(headers)
    _LOG_FIELDS.set(
        {"request_id": request_id} if trace_id is None else {"request_id": request_id, "trace_id": trace_id}
    )
    return span(method, "server", request_id=request_id)


def add_log_fields(**fields: str) -> None:
    """Add fields to the log events of this task, and of tasks that it starts."""
    _LOG_FIELDS.set({**_LOG_FIELDS.get(), **fields})


def log_fields() -> Mapping[str, str]:
    """The fields of every log event of this task: `request_id`, `trace_id`, and `job_id` within a job."""
    return _LOG_FIELDS.get()


def continue_trace(headers: Mapping[str, str]) -> str | None:
    """Continue the trace of these headers in this task; returns its id for the logs, or None if there is none."""
    parent = headers.get(_PARENT)
    if parent is None or not _TRACEPARENT.fullmatch(parent):
        # The standard requires that a malformed header is ignored.
        _CARRIED.set(_NOTHING)
        return None
    state = headers.get("tracestate", "")
    is_valid = _TRACESTATE.fullmatch(state) is not None
    _CARRIED.set({"traceparent": parent, "tracestate": state} if is_valid else {"traceparent": parent})
    return parent[3:35]


def outgoing() -> Mapping[str, str]:
    """The trace headers for a request that this task sends; empty without a trace."""
    if _tracer is None:
        return _CARRIED.get()
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return headers


def traceparent() -> str | None:
    """The traceparent that a job's row stores; None without a trace."""
    return outgoing().get("traceparent")


def has_spans() -> bool:
    """Whether OpenTelemetry is on; without it the attributes of a span need not be computed."""
    return _tracer is not None


def span(
    name: str, kind: str, parent: Mapping[str, Any] = _NOTHING, /, **attributes: str | int
) -> AbstractContextManager[None]:
    """A span around the block; without OpenTelemetry none. `kind` is server, client, consumer or internal.

    `parent`: the trace context of the caller, if it is another than that of the current span, which is then a link.
    """
    return _NO_SPAN if _tracer is None else _span(_tracer, name, kind, parent, attributes)


@contextmanager
def _span(
    tracer: "Tracer", name: str, kind: str, parent: Mapping[str, Any], attributes: Mapping[str, str | int]
) -> Iterator[None]:
    from opentelemetry.propagate import extract
    from opentelemetry.trace import Link, SpanKind, get_current_span

    current, links = get_current_span().get_span_context(), []
    context = None if current.is_valid else extract(_CARRIED.get())
    if _TRACEPARENT.fullmatch(str(parent.get("traceparent"))):
        context = extract({"traceparent": parent["traceparent"]})
        links = [Link(current)] if current.is_valid else []
    with tracer.start_as_current_span(
        name, context=context, kind=SpanKind[kind.upper()], attributes=attributes, links=links
    ):
        yield


def record_wait(name: str, seconds: float) -> None:
    """A span of a wait of this task that ends now; without OpenTelemetry none."""
    if _tracer is None:
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import get_current_span

    context = None if get_current_span().get_span_context().is_valid else extract(_CARRIED.get())
    end = time_ns()
    _tracer.start_span(name, context=context, start_time=end - int(seconds * 1e9)).end(end)


def mark_failed(error_type: str) -> None:
    """Mark the current span as that of a failure; without OpenTelemetry nothing."""
    if _tracer is None:
        return
    from opentelemetry.trace import StatusCode, get_current_span

    get_current_span().set_attribute("error.type", error_type)
    get_current_span().set_status(StatusCode.ERROR)
