"""One call, fixed once: what to run, with which params, to which effect and under which rule. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.contract.kinds import Effect
from gateway.kinds import params as checks
from gateway.kinds.catalog import Operation
from gateway.upstream import pagination, requests, responses
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import OperationResult, UpstreamResponse
from gateway.upstream.rules import NO_RULE, Rule, rule_named


class PreparedCall(msgspec.Struct, frozen=True):
    """An operation with its params, ready to be sent."""

    #: as the caller named it
    operation: Operation
    #: what is sent: the operation, or the alternative that its params choose
    variant: Operation
    params: Mapping[str, Any]
    effect: Effect
    rule: Rule
    #: the records that a caller asked for of a list that the application does not page
    limit: int | None = None

    @classmethod
    def of(cls, operation: Operation, params: Mapping[str, Any], *, limit: int | None = None) -> "PreparedCall":
        """A call of params that were validated before, or are ours."""
        action = operation.action
        rule = rule_named(action.rule)
        effect = requests.effect_of(operation, params) if action.write_if else action.effect
        return cls(operation, operation.instead(params), params, effect, rule, limit)

    def request(self, address: str) -> UpstreamRequest:
        """The exact request to the application at an address, credentials not yet on it."""
        if self.rule is NO_RULE:
            return requests.build(self.variant, self.params, address, self.effect)
        placed = self.rule.params(self.variant, dict(self.params))
        request = requests.build(self.variant, placed, address, self.effect)
        return self.rule.request(self.variant, placed, request)

    def answer(self, response: UpstreamResponse) -> OperationResult:
        """The records, or the record, of a successful response; raises UpstreamInvalidResponse."""
        answer = responses.read(self.variant, response)
        if self.rule is not NO_RULE:
            answer = self.rule.answer(self.variant, answer)
        if not self.variant.is_list:
            return answer
        paging = self.variant.paging
        if paging is not None and paging.is_counted:
            meta = answer.meta or {}
            counted = pagination.counted_next(paging, self.params, meta, answer.records)
            answer = replace(answer, meta={**meta, paging.next[0]: counted})
        following = pagination.named_page(paging, self.params, answer.meta)
        incomplete = pagination.missing_rest(self.variant, self.params, answer.meta, following)
        if following is not None:
            # The params of the next page, without those that are there by default.
            defaults = self.operation.defaults
            following = {name: each for name, each in following.items() if (name, each) not in defaults.items()}
        return replace(answer, is_page=True, next=following, incomplete=incomplete)


def prepare(operation: Operation, params: Mapping[str, Any]) -> PreparedCall:
    """The call of an operation with a caller's params; raises InvalidParams with every fault."""
    validated = checks.validated(operation, params)
    limit = checks.unpaged_limit(operation, params) if "limit" in params else None
    return PreparedCall.of(operation, validated, limit=limit)
