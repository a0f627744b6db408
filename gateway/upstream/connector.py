"""Runs the operations of one connector: params in, requests to the application, records out.

The same class serves the HTTP front end, the workers and a caller's own process.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from gateway.errors import GatewayError
from gateway.foundation.aio.paging import PageWalk
from gateway.foundation.numbered_pages import Place
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.members import is_json
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream import download, pagination, retries, upload_session
from gateway.upstream.auth import QUERY_PREFIX
from gateway.upstream.field_selection import FieldSelection
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.http_ranges.ranges import RangeRequest
from gateway.upstream.long_running.operation_run import OperationRun
from gateway.upstream.long_running.rules import LongRule, long_rule
from gateway.upstream.pagination import ListPart
from gateway.upstream.prepared import PreparedCall, prepare, tool_url
from gateway.upstream.redaction import MASK
from gateway.upstream.requests import UpstreamRequest, with_query_credentials
from gateway.upstream.responses import ROOT, OperationResult
from gateway.upstream.run_context import Effects, InMemoryRunContext, RunContext
from gateway.upstream.session import UpstreamSession
from gateway.upstream.upload import SourceFile


@dataclass(frozen=True)
class UpstreamConnector:
    """A kind and the session with one account."""

    kind: Kind
    session: UpstreamSession

    def in_background(self) -> "UpstreamConnector":
        """The same connector for background calls: under a rate limit, calls with a waiting caller go first."""
        return replace(self, session=self.session.in_background())

    async def execute(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> OperationResult:
        """Run one operation and return its result; polls bulk updates and reports until done. Raises GatewayError."""
        return await self.run_to_end(prepare(self.kind.operation(entity, action), params or {}))

    async def run_to_end(self, call: PreparedCall, run_context: InMemoryRunContext | None = None) -> OperationResult:
        """Run a call and return the whole result, including the records that the run context saved."""
        rule = _long_rule(call)
        if rule is None:
            return await self.session.call(call, run_context)
        run_context = run_context or InMemoryRunContext()
        try:
            answer = await rule.run(OperationRun(self.session, call, run_context, FieldSelection(redact=call.redact)))
        except GatewayError as error:
            raise retries.of_run(call.effect, error, Effects.of(run_context.state)) from error
        if answer.collected is None:
            return answer
        records = run_context.records
        complete = records if answer.collected == ROOT else {**answer.decoded(), answer.collected: records}
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(complete)), meta=answer.meta)

    async def run(
        self, call: PreparedCall, run_context: RunContext, selection: FieldSelection | None = None
    ) -> OperationResult:
        """Run a call; its run context may hold part of the result, to whose records the selection is applied."""
        rule = _long_rule(call)
        if rule is not None:
            return await rule.run(OperationRun(self.session, call, run_context, selection or FieldSelection()))
        return await self.session.call(call, run_context)

    async def call(self, operation: Operation, params: Mapping[str, Any]) -> OperationResult:
        """Send one request with params of the gateway's own, which are not validated, and return its result."""
        return await self.session.call(PreparedCall.of(operation, params))

    async def pages(
        self, entity: str, action: str, params: Mapping[str, Any] | None = None
    ) -> AsyncIterator[OperationResult]:
        """Iterate over the pages of a list; each step sends one request.

        Raises UpstreamRejected after the last page if records are or may be missing.
        """
        operation, walk = self.kind.operation(entity, action), PageWalk()
        following: Mapping[str, Any] | None = prepare(operation, params or {}).params
        place: Place | None = None
        while following is not None:
            page, following, place = await self.part(operation, following, place)
            yield page
            walk.add(following, page.records, page.incomplete, may_repeat=place is not None)
        walk.require_complete()

    async def part(self, operation: Operation, params: Mapping[str, Any], place: Place | None) -> ListPart:
        """The next part of a whole list, by params that were validated; `place` is None for the first one."""
        call = PreparedCall.of(operation, params)
        return pagination.part(operation, call.params, await self.session.call(call), place)

    @asynccontextmanager
    async def download(
        self, entity: str, params: Mapping[str, Any] | None = None, *, range_header: str | None = None
    ) -> AsyncIterator[File]:
        """Open a file, or the part of it that a Range header names. Opening and reading raise GatewayError.

        `async with connector.download("attachments", {"attachment_id": 64}) as file: async for chunk in file: ...`
        """
        call = prepare(self.kind.operation(entity, download.ACTION), params or {})
        stated = {} if range_header is None else {"Range": range_header}
        range_request = RangeRequest.of(stated, range_header=call.params.get("range_header"))
        async with self.open_file(call, range_request) as file:
            yield file

    def open_file(self, call: PreparedCall, range_request: RangeRequest) -> AbstractAsyncContextManager[File]:
        """Open the file of a prepared download and check its status and headers; it is closed when the block ends."""
        return download.open_file(self.session, call, range_request)

    async def upload(self, call: PreparedCall, file: SourceFile) -> OperationResult:
        """Send a file with a prepared call of `upload.with_file`; the file is never in memory whole."""
        if call.operation.action.upload_session is not None:
            return await upload_session.send_whole(self.session, call, file)
        return await self.session.upload(call, file)

    async def check(self) -> None:
        """Call the kind's health check, if it has one; raises what is wrong."""
        if self.kind.spec.mcp is not None:
            await self.session.greet(tool_url(next(iter(self.kind.operations.values())), self.session.address))
        operation = self.kind.health_check
        if operation is None:
            return
        smallest = {"limit": 1} if operation.paging and operation.paging.size else {}
        await self.run_to_end(prepare(operation, {**smallest, **self.kind.spec.health_check_params}))

    def dry_run(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The exact request or requests that would be sent, the secret headers' values as `***`."""
        return self.preview(prepare(self.kind.operation(entity, action), params or {}))

    def preview(self, call: PreparedCall) -> list[dict[str, Any]]:
        """The exact request or requests of a prepared call, the secret headers' values as `***`."""
        rule = _long_rule(call)
        if rule is not None:
            requests = rule.preview(OperationRun(self.session, call, InMemoryRunContext()))
        else:
            requests = [self.session.request(call)]
        return [_rendered(request, self.kind.spec) for request in requests]


def _long_rule(call: PreparedCall) -> LongRule | None:
    action = call.operation.action
    return long_rule(action.rule, is_described=action.long_running is not None)


def _rendered(request: UpstreamRequest, spec: ConnectorSpec) -> dict[str, Any]:
    """A request as a dry run shows it, masked where any of the kind's authentication methods puts credentials."""
    methods = spec.authentication.values()
    masked = {name: MASK for method in methods for name in method.header_names}
    in_query = {f"{QUERY_PREFIX}{name}": MASK for method in methods for name in method.query}
    if in_query:
        request, _ = with_query_credentials(request, in_query)
    return {
        "method": request.method,
        "url": str(request.url),
        "headers": {**request.headers, **masked},
        "body": _shown_body(request),
    }


def _shown_body(request: UpstreamRequest) -> Any:
    if request.body is None:
        return None
    if is_json(request.headers.get("Content-Type", "")):
        return msgspec.json.decode(request.body)
    return request.body.decode(errors="replace")
