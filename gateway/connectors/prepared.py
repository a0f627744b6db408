"""One call, fixed once: what to run, with which params, to which effect and under which rule. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from yarl import URL

from gateway.connectors import pagination, requests, responses
from gateway.connectors.requests import UpstreamRequest
from gateway.connectors.responses import OperationResult, UpstreamResponse
from gateway.connectors.rules import NO_RULE, RULES, Rule
from gateway.kinds import params as checks
from gateway.kinds.catalog import Operation
from gateway.kinds.spec import Effect


@dataclass(frozen=True, slots=True)
class PreparedCall:
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
        rule = RULES.get(operation.action.rule or "", NO_RULE)
        effect = requests.effect_of(operation, params)
        return cls(operation, operation.instead(params), params, effect, rule, limit)

    def request(self, environment: Mapping[str, str], override: URL | None = None) -> UpstreamRequest:
        """The exact request, credentials not yet on it."""
        if self.rule is NO_RULE:
            return requests.build(self.variant, self.params, environment, override, effect=self.effect)
        placed = self.rule.params(self.variant, dict(self.params))
        request = requests.build(self.variant, placed, environment, override, effect=self.effect)
        return self.rule.request(self.variant, placed, request)

    def answer(self, response: UpstreamResponse) -> OperationResult:
        """The records, or the record, of a successful response; raises UpstreamInvalidResponse."""
        answer = responses.read(self.variant, response)
        if self.rule is not NO_RULE:
            answer = self.rule.answer(self.variant, answer)
        if not self.variant.is_list:
            return answer
        return replace(answer, is_page=True, next=self._next(answer.meta))

    def _next(self, meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """The params of the next page, without those that are there by default."""
        following = pagination.named_page(self.variant, self.params, meta)
        if following is None:
            return None
        defaults = self.operation.defaults
        return {name: value for name, value in following.items() if name not in defaults or value != defaults[name]}


def prepare(operation: Operation, params: Mapping[str, Any]) -> PreparedCall:
    """The call of an operation with a caller's params; raises InvalidParams with every fault."""
    validated = checks.validated(operation, params)
    return PreparedCall.of(operation, validated, limit=checks.unpaged_limit(operation, params))
