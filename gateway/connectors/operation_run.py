"""A long operation under way: what the application works off itself, followed to its end by looks at how it stands."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from yarl import URL

from gateway.connectors import responses
from gateway.connectors.prepared import PreparedCall
from gateway.connectors.requests import UpstreamRequest, encoded_body
from gateway.connectors.responses import OperationResult, value_at
from gateway.connectors.run_context import RunContext
from gateway.connectors.session import UpstreamSession
from gateway.errors import UpstreamError, UpstreamInvalidResponse
from gateway.kinds.spec import Effect, JsonPath

Params = Mapping[str, Any]

#: seconds between looks at a run: soon at first, then rarer
_FIRST_LOOK, _LOOK_FACTOR, _RAREST_LOOK = 0.2, 1.5, 5.0
#: looks in a row that may fail, about a minute of them: what was started goes on without us
_MISSED_LOOKS = 20


@dataclass(frozen=True, slots=True)
class OperationRun:
    """One long operation under way: who calls, what was asked and where its progress is kept."""

    session: UpstreamSession
    call: PreparedCall
    run_context: RunContext

    def portion(self, params: Params) -> PreparedCall:
        """The same call for a part of what was asked."""
        return PreparedCall.of(self.call.operation, params)

    def request(self, method: str, path: str) -> UpstreamRequest:
        """A request beside the operation's own, such as a look at what it started."""
        session = self.session
        headers = {"Accept": "application/json", **session.spec.headers}
        body = None
        if method != "GET":
            body = encoded_body(session.spec.content_type, {})
            headers["Content-Type"] = session.spec.content_type
        return UpstreamRequest(method, URL(session.address + path, encoded=True), headers, body, Effect.READ)

    async def ask(self, method: str, path: str) -> OperationResult:
        """The whole answer to such a request."""
        timeout = self.call.operation.action.timeout
        exchange = await self.session.exchange(self.request(method, path), timeout=timeout)
        return responses.read(self.call.operation.unpaged, exchange.succeeded())

    async def followed(
        self, path: str, state: JsonPath, going: Collection[str], ended: Collection[str]
    ) -> AsyncIterator[Any]:
        """What the application says of a run, again and again, the last time when it has ended."""
        wait, missed = _FIRST_LOOK, 0
        while True:
            try:
                document = (await self.ask("GET", path)).decoded()
            except UpstreamError as error:
                missed += 1
                if not error.retryable or missed > _MISSED_LOOKS:
                    raise
            else:
                missed = 0
                status = value_at(document, state)
                if status not in going and status not in ended:
                    shown = (await self.session.secrets()).masked(repr(status))[:100]
                    raise UpstreamInvalidResponse(f"{self.call.operation}: the run has the unknown status {shown}")
                yield document
                if status in ended:
                    return
            await asyncio.sleep(wait)
            wait = min(wait * _LOOK_FACTOR, _RAREST_LOOK)
