"""A long-running operation: the application runs it, the gateway polls until it ends."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import UpstreamError, UpstreamInvalidResponse
from gateway.kinds.spec import JsonPath
from gateway.upstream import responses
from gateway.upstream.bodies import encoded_body
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import OperationResult, value_at
from gateway.upstream.run_context import RunContext
from gateway.upstream.session import UpstreamSession

Params = Mapping[str, Any]

#: seconds between polls of a run: the interval grows by the factor up to the maximum
_FIRST_INTERVAL, _INTERVAL_FACTOR, _MAX_INTERVAL = 0.2, 1.5, 5.0
#: consecutive polls that may fail, about a minute: the application's operation continues meanwhile
_MAX_FAILED_POLLS = 20


@dataclass(frozen=True, slots=True)
class OperationRun:
    """One run of a long-running operation: its connector, its call and its run context."""

    session: UpstreamSession
    call: PreparedCall
    run_context: RunContext

    def portion(self, params: Params) -> PreparedCall:
        """The same call with params for one part of the work."""
        return PreparedCall.of(self.call.operation, params)

    def request(self, method: str, path: str) -> UpstreamRequest:
        """A request beside the operation's own, such as a poll of what it started."""
        session = self.session
        headers = {"Accept": "application/json", **session.spec.headers}
        body = None
        if method != "GET":
            body = encoded_body(session.spec.content_type, {})
            headers["Content-Type"] = session.spec.content_type
        url, operation = URL(session.address + path, encoded=True), str(self.call.operation)
        return UpstreamRequest(method, url, headers, body, Effect.READ, operation)

    async def ask(self, method: str, path: str) -> OperationResult:
        """The whole answer to such a request."""
        timeout = self.call.operation.action.timeout
        exchange = await self.session.exchange(self.request(method, path), timeout=timeout)
        return responses.read(self.call.operation.unpaged, exchange.succeeded())

    async def poll(
        self, path: str, state: JsonPath, going: Collection[str], ended: Collection[str]
    ) -> AsyncIterator[Any]:
        """Poll a run and yield each response; the last one is that of the ended run."""
        interval, failed_polls = _FIRST_INTERVAL, 0
        while True:
            try:
                document = (await self.ask("GET", path)).decoded()
            except UpstreamError as error:
                failed_polls += 1
                if not error.retryable or failed_polls > _MAX_FAILED_POLLS:
                    raise
            else:
                failed_polls = 0
                status = value_at(document, state)
                if status not in going and status not in ended:
                    shown = (await self.session.secrets()).masked(repr(status))[:100]
                    raise UpstreamInvalidResponse(f"{self.call.operation}: the run has the unknown status {shown}")
                yield document
                if status in ended:
                    return
            await asyncio.sleep(interval)
            interval = min(interval * _INTERVAL_FACTOR, _MAX_INTERVAL)
