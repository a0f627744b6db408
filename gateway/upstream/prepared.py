"""A prepared call: the operation, its params, its effect, and the exact request that they make. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import InternalError
from gateway.kinds import params as checks
from gateway.kinds.catalog import Operation
from gateway.kinds.long_running import RUN_ID, TaskMethod
from gateway.upstream import encoding, mcp_messages, mcp_results, pagination, responses
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import OperationResult, UpstreamResponse
from gateway.upstream.rules import NO_RULE, Rule, rule_named


class PreparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """An operation with its params, ready to be sent."""

    #: as the caller named it
    operation: Operation
    #: the operation that is sent: the named one, or the alternative that its params choose
    variant: Operation
    params: Mapping[str, Any]
    effect: Effect
    rule: Rule
    #: the records that a caller asked for of a list that the application does not page
    limit: int | None = None
    #: paths of members that policies redact in the answer
    redact: Sequence[str] = ()

    @classmethod
    def of(cls, operation: Operation, params: Mapping[str, Any], *, limit: int | None = None) -> "PreparedCall":
        """A call with params that were validated before, or that the gateway itself made."""
        action = operation.action
        rule = rule_named(action.rule)
        effect = effect_of(operation, params) if action.write_if else action.effect
        variant = operation.instead(params) if action.alternatives else operation
        return cls(operation=operation, variant=variant, params=params, effect=effect, rule=rule, limit=limit)

    def request(self, address: str) -> UpstreamRequest:
        """The exact request to the application at an address, credentials not yet on it."""
        if self.rule is NO_RULE:
            return _built(self.variant, self.params, address, self.effect)
        placed = self.rule.params(self.variant, dict(self.params))
        request = _built(self.variant, placed, address, self.effect)
        return self.rule.request(self.variant, placed, request)

    def answer(self, response: UpstreamResponse) -> OperationResult:
        """The records, or the record, of a successful response; raises UpstreamInvalidResponse.

        A search whose result is an object (SOSL) has `next` as lists have it.
        """
        answer = responses.read(self.variant, response, self.params)
        if self.rule is not NO_RULE:
            answer = self.rule.answer(self.variant, answer)
        if self.variant.action.tool is not None:
            mcp_messages.require_complete(self.variant, answer.result)
            answer = mcp_results.checked(self.variant, self.effect, answer)
        return self.page(answer) if self.variant.is_list or self.variant.action_id == "api_search" else answer

    def page(self, answer: OperationResult) -> OperationResult:
        """The answer as a page of a list, with the params of the next page."""
        return pagination.page_of(self.variant, self.params, answer, self.operation.defaults)


def prepare(operation: Operation, params: Mapping[str, Any]) -> PreparedCall:
    """The call of an operation with a caller's params; raises InvalidParams with every fault."""
    validated = checks.validated(operation, params)
    limit = checks.unpaged_limit(operation, params) if "limit" in params else None
    return PreparedCall.of(operation, validated, limit=limit)


def effect_of(operation: Operation, params: Mapping[str, Any]) -> Effect:
    """The effect class of this very call: a ticket update with a comment is a write."""
    value: Any = params if operation.action.write_if else None
    for member in operation.action.write_if or ():
        value = value.get(member) if isinstance(value, Mapping) else None
    return Effect.WRITE if value is not None else operation.action.effect


def _built(operation: Operation, params: Mapping[str, Any], address: str, effect: Effect) -> UpstreamRequest:
    """Place each (validated) param where the spec says: path, query, body or header."""
    if operation.action.tool is not None:
        return _tool_call(operation, operation.action.tool, params, address, effect)
    if operation.action.task is not None:
        return _task_request(operation, operation.action.task, params, address)
    path, in_query, header_lines = operation.path, [], {}
    if operation.texts:
        params = encoding.with_texts(operation, params)
    for placement in operation.placements:
        if placement.name not in params:
            continue
        value = params[placement.name]
        if placement.where == "query":
            in_query.append(placement)
        elif placement.where == "path":
            path = path.replace(f"{{{placement.wire}}}", encoding.segment_of(operation, placement.wire, value))
        elif placement.where == "header":
            header_lines[placement.wire] = value
    headers = dict(operation.constant_headers)
    if header_lines:
        headers |= encoding.header_lines(operation, header_lines)
    body, whole = None, operation.action.request_body
    if operation.has_body and (whole is None or whole in params):
        body, headers["Content-Type"] = encoding.body_of(operation, params)
    query = encoding.query_of(operation.action.constant_query, in_query, params)
    url = encoding.url_of(address + path, query)
    return UpstreamRequest(
        method=operation.method,
        url=url,
        headers=headers,
        body=body,
        effect=effect,
        operation=operation.name,
        is_mutation=operation.action.graphql is not None and operation.action.effect is not Effect.READ,
    )


def tool_url(operation: Operation, address: str) -> URL:
    """The URL of the MCP server, whose tools all have the same."""
    return encoding.url_of(address + operation.path, encoding.query_of(operation.action.constant_query, (), {}))


def _tool_call(
    operation: Operation, tool: str, params: Mapping[str, Any], address: str, effect: Effect
) -> UpstreamRequest:
    """The request that calls a tool of an MCP server."""
    protocol = operation.spec.mcp
    if protocol is None:
        raise InternalError
    sent = {"name": tool, "arguments": encoding.arguments_of(operation, params)}
    takes_task = operation.action.long_running is not None
    url = tool_url(operation, address)
    request = mcp_messages.message(url, mcp_messages.TOOLS_CALL, sent, protocol, takes_task=takes_task)
    headers = {**operation.constant_headers, **request.headers}
    return replace(request, headers=headers, effect=effect, operation=operation.name)


def _task_request(operation: Operation, method: TaskMethod, params: Mapping[str, Any], address: str) -> UpstreamRequest:
    """The request that asks an MCP server for a task of a tool, or to cancel it."""
    protocol = operation.spec.mcp
    if protocol is None:
        raise InternalError
    request = mcp_messages.task_message(tool_url(operation, address), method, params[RUN_ID], protocol)
    return replace(request, headers={**operation.constant_headers, **request.headers}, operation=operation.name)
