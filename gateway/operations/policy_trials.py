"""Tries policies: what they decide of given cases, and what they would have decided of the last day's calls."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec import UNSET

from gateway.access.audit.log import Audit
from gateway.access.audit.recent_calls import RecentCalls
from gateway.access.identity.model import Caller
from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.model import ALLOWED, PolicyCall, Target, Verdict
from gateway.access.policy.schema import Unreadable
from gateway.access.policy.service import PolicyService
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.model import ConnectorRecord
from gateway.contract.kinds import Effect
from gateway.contract.policies import (
    CheckedCaseView,
    ClientEffectView,
    NewPolicy,
    PolicyCase,
    PolicyEffectView,
    Surface,
)
from gateway.errors import MAX_FAULTS, FieldError, GatewayError, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind
from gateway.operations.permission import target_of
from gateway.upstream.prepared import prepare

#: the connector of a case that names none
_NO_CONNECTOR = UUID(int=0)


@dataclass(frozen=True, kw_only=True)
class PolicyTrials:
    """Trials for administrators."""

    audit: Audit
    catalog: Catalog
    connectors: ConnectorAccess
    policies: PolicyService

    async def check(
        self, caller: Caller, cases: Sequence[PolicyCase], policies: Sequence[NewPolicy] | None
    ) -> list[CheckedCaseView]:
        """The decision of each case by these policies, else by the stored ones.

        Raises InvalidPolicy, and InvalidParams with the faults of all cases.
        """
        decided = await self.policies.trial(caller, policies)
        calls, faults = [], []
        for index, case in enumerate(cases):
            try:
                calls.append(await self._call(caller, case))
            except GatewayError as error:
                found = error.faults or (FieldError("/operation", "operation", error.code, error.detail),)
                faults += [_of_case(index, fault) for fault in found]
        if faults:
            raise InvalidParams(faults=faults[:MAX_FAULTS])
        return [_checked(decided, case, call) for case, call in zip(cases, calls, strict=True)]

    async def effect_of(self, caller: Caller, name: str) -> PolicyEffectView:
        """What the enforced policies and the named one would have decided of the calls of the last day."""
        decided = await self.policies.as_enforced(caller, name)
        recent = await self.audit.recent_calls(caller.organization_id)
        records = {record.id: record for record in await self.connectors.find(caller)}
        return await asyncio.to_thread(_effect, self.catalog, records, decided, recent)

    async def _call(self, caller: Caller, case: PolicyCase) -> PolicyCall:
        kind_name, _, name = case.operation.partition(".")
        entity, _, action = name.partition(".")
        kind = self.catalog.kind(kind_name)
        client_id = caller.client_id if case.client is UNSET else case.client
        target = Target(connector_id=_NO_CONNECTOR, name="", workspace_name="", kind=kind.name)
        if case.connector_id is not UNSET:
            target = target_of(await self.connectors.get(caller, case.connector_id))
            if target.kind != kind.name:
                raise InvalidParams(f"the connector is one of {target.kind}, and the operation one of {kind.name}")
        return _call_of(kind, entity, action, case.params, client_id=client_id, target=target, surface=case.surface)


def _call_of(
    kind: Kind,
    entity: str,
    action: str,
    params: Mapping[str, Any],
    *,
    client_id: UUID,
    target: Target,
    surface: Surface,
) -> PolicyCall:
    """The call of a case; raises UnknownEntity, UnknownAction and InvalidParams."""
    if action == SEARCH_ACTION and SEARCH_ACTION in kind.actions_of(entity):
        return PolicyCall(
            client_id=client_id, target=target, entity=entity, action=action, effect=Effect.READ, surface=surface
        )
    prepared = prepare(kind.operation(entity, action), params)
    operation = prepared.operation
    return PolicyCall(
        client_id=client_id,
        target=target,
        entity=operation.entity_id,
        action=operation.action_id,
        effect=prepared.effect,
        surface=surface,
        params=prepared.params,
        operation=operation,
    )


def _checked(decided: DecidedSet | None, case: PolicyCase, call: PolicyCall) -> CheckedCaseView:
    now = CLOCK.now()
    decision = ALLOWED if decided is None else decided.decide(call, now)
    request: dict[str, Any] | None = None
    entities: list[dict[str, Any]] | None = None
    if case.explain and decided is not None:
        about = decided.about(call)
        entities = about.entities
        try:
            request = {**about.request, "context": about.context(call, now)}
        except Unreadable:
            request = about.request
    return CheckedCaseView(
        decision=decision.verdict.value,
        policies=list(decision.policies),
        advice=decision.advice,
        redact=list(decision.redact),
        request=request,
        entities=entities,
    )


def _of_case(index: int, fault: FieldError) -> FieldError:
    return FieldError(
        f"/cases/{index}{fault.pointer}", f"cases[{index}].{fault.field}", fault.code, f"case {index}: {fault.message}"
    )


def _effect(
    catalog: Catalog, records: Mapping[UUID, ConnectorRecord], decided: DecidedSet, recent: Sequence[RecentCalls]
) -> PolicyEffectView:
    """Count what would have been refused; the audit log has no params, so some decisions stay open."""
    totals: dict[str, int] = defaultdict(int)
    by_client: dict[UUID, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    names: dict[UUID, str | None] = {}
    for each in recent:
        verdict = _verdict(catalog, records, decided, each)
        if verdict is None:
            continue
        totals[verdict] += each.calls
        if verdict != "allowed":
            by_client[each.actor][verdict] += each.calls
            names[each.actor] = each.actor_name
    clients = [
        ClientEffectView(
            id=str(client_id),
            name=names[client_id],
            refused=counts["refused"],
            asked=counts["asked"],
            undecided=counts["undecided"],
        )
        for client_id, counts in by_client.items()
    ]
    return PolicyEffectView(
        refused=totals["refused"],
        asked=totals["asked"],
        redacted=totals["redacted"],
        undecided=totals["undecided"],
        by_client=clients,
    )


def _verdict(
    catalog: Catalog, records: Mapping[UUID, ConnectorRecord], decided: DecidedSet, each: RecentCalls
) -> str | None:
    """The word of `PolicyEffectView` for these calls; None if they are of no operation or connector of now."""
    record, kind = records.get(each.connector_id), catalog.kinds.get(each.kind)
    entity, _, action = each.what.partition(".")
    if record is None or kind is None or entity not in kind.spec.entities:
        return None
    if action not in kind.actions_of(entity):
        return None
    operation = None if action == SEARCH_ACTION else kind.operation(entity, action)
    decision = decided.always(
        PolicyCall(
            client_id=each.actor,
            target=target_of(record),
            entity=entity,
            action=action,
            effect=Effect.READ if operation is None else operation.action.effect,
            surface=Surface.HTTP,
            operation=operation,
        )
    )
    if decision is None:
        return "undecided"
    words = {Verdict.DENY: "refused", Verdict.APPROVE: "asked", Verdict.ALLOW: "allowed"}
    return "redacted" if decision.redact and decision.verdict is Verdict.ALLOW else words[decision.verdict]
