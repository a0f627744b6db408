"""One connector at work: params in, the application called, records out.

The same class serves the HTTP front end, the workers and a caller's own process.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from yarl import URL

from gateway.connectors import download, pagination, requests, responses
from gateway.connectors.auth import Authorizer
from gateway.connectors.long_running import LONG_RULES, OperationRun
from gateway.connectors.requests import UpstreamRequest
from gateway.connectors.responses import Answer, UpstreamResponse
from gateway.connectors.rules import RULES, Rule
from gateway.connectors.run_context import Journal, MemoryJournal
from gateway.connectors.transport import Account, Transport
from gateway.errors import ReauthorizationRequired
from gateway.http_ranges.integrity import File
from gateway.http_ranges.responses import RangeRequest
from gateway.kinds import params as checks
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.spec import Effect

_NO_RULE = Rule()


@dataclass(frozen=True)
class Connector:
    """A kind bound to one account: its variables, who proves that we may call, and the way out."""

    kind: Kind
    environment: Mapping[str, str]
    authorizer: Authorizer
    transport: Transport
    #: the operator's replacement of scheme, host and port of every URL of the kind
    override: URL | None = None
    #: what limits and fairness are counted by: one value for each connector record
    account: str = field(default="")
    #: whether nobody waits: where the application limits, callers go first
    is_background: bool = False

    @cached_property
    def quota(self) -> Account:
        """What its requests count against."""
        return Account(self.account, self.kind.spec.rate_limit, self.is_background, self.kind.name)

    async def execute(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> Answer:
        """Run one operation to its end, bulk updates and reports included; raises GatewayError."""
        operation = self.kind.operation(entity, action)
        return await self.execute_checked(operation, checks.validated(operation, params or {}))

    async def execute_checked(self, operation: Operation, params: Mapping[str, Any]) -> Answer:
        """`execute` for params that were validated before."""
        journal = MemoryJournal()
        answer = await self.run(operation, params, journal)
        if answer.collected is None:
            return answer
        whole = {**answer.decoded(), answer.collected: journal.records}
        return Answer(msgspec.Raw(msgspec.json.encode(whole)), answer.meta)

    async def run(self, operation: Operation, params: Mapping[str, Any], journal: Journal) -> Answer:
        """Run an operation with params that were validated before; its journal may hold part of the result."""
        rule = LONG_RULES.get(operation.action.rule or "")
        if rule is not None:
            return await rule.run(OperationRun(self, operation, params, journal))
        return await self.call(operation, params, journal)

    async def call(self, operation: Operation, params: Mapping[str, Any], journal: Journal) -> Answer:
        """One request and its answer."""
        operation = operation.instead(params)
        request = self.request(operation, params)
        response = await self.send(operation, request, journal)
        return rule_of(operation).answer(operation, responses.read(operation, response))

    def request(self, operation: Operation, params: Mapping[str, Any]) -> UpstreamRequest:
        """The exact request for validated params, credentials not yet on it."""
        operation = operation.instead(params)
        rule = rule_of(operation)
        placed = rule.params(operation, dict(params))
        return rule.request(operation, placed, requests.build(operation, placed, self.environment, self.override))

    async def send(self, operation: Operation, request: UpstreamRequest, journal: Journal) -> UpstreamResponse:
        """Send with credentials; refused ones are renewed once."""
        headers = await self.authorizer.headers()
        response = await self._sent(operation, request, headers, journal)
        if not self._is_refusal(response):
            return response
        renewed = await self.authorizer.renewed(headers)
        if renewed is None:
            return response
        return await self._sent(operation, request, renewed, journal)

    async def _sent(
        self, operation: Operation, request: UpstreamRequest, credentials: Mapping[str, str], journal: Journal
    ) -> UpstreamResponse:
        return await self.transport.send(
            request,
            failure=self.kind.spec.failure,
            credentials=credentials,
            account=self.quota,
            timeout=operation.action.timeout,
            journal=None if request.effect is Effect.READ else journal,
        )

    def _is_refusal(self, response: UpstreamResponse) -> bool:
        """Whether the application refused the credentials, which some say in a 200."""
        if response.status != 401 and self.kind.spec.failure.ok is None:
            return False
        return isinstance(responses.failure(self.kind.spec.failure, response), ReauthorizationRequired)

    async def pages(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> AsyncIterator[Answer]:
        """Every page of a list, one request each, for as long as the caller goes on asking."""
        operation = self.kind.operation(entity, action)
        following: Mapping[str, Any] | None = checks.validated(operation, params or {})
        while following is not None:
            page = await self.call(operation, following, MemoryJournal())
            yield page
            following = pagination.next_params(operation, following, page.meta)

    @asynccontextmanager
    async def download(
        self, entity: str, params: Mapping[str, Any] | None = None, *, range_header: str | None = None
    ) -> AsyncIterator[File]:
        """A file, or the part of it that a Range header names; raises GatewayError, and so may reading it.

        `async with connector.download("attachments", {"attachment_id": 64}) as file: async for piece in file: ...`
        """
        operation = self.kind.operation(entity, download.ACTION)
        checked = checks.validated(operation, params or {})
        stated = {} if range_header is None else {"Range": range_header}
        wanted = RangeRequest.of(stated, range_header=checked.get("range_header"))
        async with download.opened(self, operation, checked, wanted) as file:
            yield file

    async def check(self) -> None:
        """Call the kind's health check; raises what is wrong."""
        operation = self.kind.health_check
        smallest = {"limit": 1} if operation.paging and operation.paging.size else {}
        await self.execute(operation.entity_id, operation.action_id, smallest)

    def dry_run(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The exact request or requests that would be sent, the secret headers' values as `***`."""
        operation = self.kind.operation(entity, action)
        checked = checks.validated(operation, params or {})
        rule = LONG_RULES.get(operation.action.rule or "")
        if rule is not None:
            shown = rule.preview(OperationRun(self, operation, checked, MemoryJournal()))
        else:
            shown = [self.request(operation, checked)]
        return [_shown(request) for request in shown]


def _shown(request: UpstreamRequest) -> dict[str, Any]:
    """A request as a dry run tells it."""
    return {
        "method": request.method,
        "url": str(request.url),
        "headers": {**request.headers, "Authorization": "***"},
        "body": None if request.body is None else msgspec.json.decode(request.body),
    }


def rule_of(operation: Operation) -> Rule:
    return RULES.get(operation.action.rule or "", _NO_RULE)
