"""One trace of a call of an agent's host: from its span, over the queue, the rate limit and a renewal, to the
application."""

import asyncio
from uuid import UUID

import aiohttp
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.foundation.mcp import TASKS
from gateway.foundation.telemetry import tracing
from gateway.upstream.rate_limits import RateScope
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import ConnectorApi
from workers.main import Worker

TRACE, HOST = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
READ, WRITE = "tools/call read", "tools/call write"
QUEUE, JOB = "wait in the queue", "job operation"
RATE, RENEWAL = "wait for the rate limit", "renew the access token"


class Spans:
    """The spans of the trace of the host, by name in their order."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> list[ReadableSpan]:
        found = [each for each in self._exporter.get_finished_spans() if f"{each.context.trace_id:032x}" == TRACE]
        return sorted(found, key=lambda each: each.start_time or 0)

    @property
    def parents(self) -> set[tuple[str, str]]:
        """Each span with its parent."""
        names = {each.context.span_id: each.name for each in self.all} | {int(HOST, 16): HOST}
        return {(each.name, names[each.parent.span_id]) for each in self.all}

    @property
    def names(self) -> set[str]:
        return {each.name for each in self.all}


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    tracing.send_spans_to(SimpleSpanProcessor(exporter))
    yield Spans(exporter)
    tracing.send_spans_to(None)


async def called(front, connector: ConnectorApi, tool: str, operation: str, params: dict, **extensions: dict) -> dict:
    """The result of a tool, which is called within the host's trace by a host with these extensions."""
    async with aiohttp.ClientSession(headers=connector.api.headers) as session:
        arguments = {"operation": operation, "params": params, "connector": connector.record["id"]}
        sent = {"name": tool, "arguments": arguments, "_meta": {"traceparent": f"00-{TRACE}-{HOST}-01"}}
        reply = await Raw(session, f"{front.base_url}/mcp")("tools/call", sent, capabilities=extensions)
    assert not reply.result.get("isError"), reply.result
    return reply.result


async def test_an_inline_call_is_below_the_span_of_the_host(front, support_desk, spans):
    await called(front, support_desk, "read", "support-desk.tickets.get", {"ticket_id": 1})

    assert {(READ, HOST), ("GET", READ)} <= spans.parents
    assert {name for name, _ in spans.parents} <= {READ, "GET", RATE}
    [call] = [each for each in spans.all if each.name == READ]
    assert (call.attributes["mcp.method.name"], call.attributes["gen_ai.tool.name"]) == ("tools/call", "read")


async def test_a_call_that_waits_for_the_rate_limit_has_a_span_of_the_wait(front, api, spans):
    credentials = {"access_token": "token", "refresh_token": "refresh", "client_id": "app", "client_secret": "s"}
    drive = await api.connector("google-drive", credentials)
    spec = front.services.catalog.kinds["google-drive"].spec
    scope = RateScope.of_connector(spec, UUID(drive.record["id"]))
    front.services.connectors.upstreams.transport.limiter.pause(scope, 0.2)

    await called(front, drive, "read", "google-drive.files.list", {})

    assert {(READ, HOST), (RATE, READ), ("GET", READ)} <= spans.parents
    waited = next(each for each in spans.all if each.name == RATE)
    assert (waited.end_time - waited.start_time) / 1e9 > 0.1


async def test_a_call_that_renews_its_token_has_a_span_of_the_renewal(front, api, spans):
    paypal = await api.connector("paypal-transaction", {"client_id": "app", "client_secret": "s"}, validate=False)

    await called(front, paypal, "read", "paypal-transaction.balances.list", {})

    assert {(READ, HOST), (RENEWAL, READ), ("POST", RENEWAL), ("GET", READ)} <= spans.parents


async def test_a_job_on_a_worker_is_in_the_trace_with_its_wait_in_the_queue(front, api, support_desk, spans):
    params = {"ids": "1,2", "ticket": {"status": "pending"}}
    task = await called(
        front, support_desk, "write", "support-desk.ticket_bulk_updates.create", params, extensions={TASKS: {}}
    )
    stopping = asyncio.Event()
    worker = asyncio.create_task(Worker(front.services).until(stopping))
    job = await api.ended_job({"id": task["taskId"]})
    stopping.set()
    await worker

    assert job["status"] == "succeeded"
    assert {(WRITE, HOST), (QUEUE, WRITE), (JOB, WRITE), ("PUT", JOB), ("GET", JOB)} <= spans.parents
    assert {name for name, _ in spans.parents} == {WRITE, QUEUE, JOB, "PUT", "GET", *({RATE} & spans.names)}
    waited, run = (next(each for each in spans.all if each.name == name) for name in (QUEUE, JOB))
    assert waited.start_time < waited.end_time <= run.start_time
