"""Tries policies: what they decide of given cases, and what they would have decided of earlier calls."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any
from uuid import UUID, uuid4

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from gateway.access.audit.log import Audit
from gateway.access.audit.recent_calls import RecentCalls
from gateway.access.identity.model import Caller
from gateway.access.identity.store import IdentityStore
from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.model import ALLOWED, PolicyCall, Target, Verdict
from gateway.access.policy.schema import Unreadable
from gateway.access.policy.service import PolicyService
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.store import ConnectorStore
from gateway.contract.connectors import ConnectorSelection
from gateway.contract.kinds import Effect
from gateway.contract.members import moment
from gateway.contract.policies import (
    CheckedCaseView,
    ClientEffectView,
    NewPolicy,
    PolicyCase,
    PolicyEffectView,
    Surface,
)
from gateway.errors import MAX_FAULTS, FieldError, GatewayError, InvalidParams, JobCanceled, Unavailable
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import mapped
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.model import JobSummary, NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.tasks import REPLAY
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind
from gateway.operations.permission import target_of
from gateway.upstream.prepared import prepare
from gateway.upstream.responses import OperationResult

#: maximum decisions that a replay keeps
_MAX_KEPT = 100_000
#: the connector of a case that names none
_NO_CONNECTOR = UUID(int=0)


class _Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The params of a replay's job."""

    since: datetime
    policies: Sequence[NewPolicy] | None


@dataclass(frozen=True, kw_only=True)
class PolicyTrials:
    """Trials for administrators."""

    audit: Audit
    catalog: Catalog
    connectors: ConnectorAccess
    records: ConnectorStore
    policies: PolicyService
    identity: IdentityStore
    acceptance: JobAcceptance

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
        is_large = decided is not None and not decided.is_small
        each_case = zip(cases, calls, strict=True)
        return await mapped(lambda each: _checked(decided, *each), each_case, lambda each: is_large)

    async def effect_of(self, caller: Caller, name: str) -> PolicyEffectView:
        """What the enforced policies and the named one would have decided of the calls of the last day."""
        return (await self.effects_of(caller, [name]))[name]

    async def effects_of(self, caller: Caller, names: Collection[str]) -> Mapping[str, PolicyEffectView]:
        """`effect_of` each of these policies, by their names."""
        if not names:
            return {}
        sets = await self.policies.as_enforced(caller, names)
        recent = await self.audit.recent_calls(caller.organization_id)
        records = {record.id: record for record in await self.connectors.find(caller)}
        # Names that share a set share its effect.
        effects = {
            id(decided): await _Effect(self.catalog, records, decided).of(recent)
            for decided in {id(each): each for each in sets.values()}.values()
        }
        return {name: effects[id(decided)].view for name, decided in sets.items()}

    async def replay(
        self, caller: Caller, since: datetime, policies: Sequence[NewPolicy] | None, request_id: str | None
    ) -> JobSummary:
        """The job that counts what these policies, else all stored ones, would have decided of the calls since then.

        Raises InvalidPolicy.
        """
        with self.audit.record("policy.replay", caller) as entry:
            await self.policies.trial(caller, policies)  # an invalid policy is refused now, not by the job
            new = NewJob(
                id=uuid4(),
                organization_id=caller.organization_id,
                client_id=caller.client_id,
                task=REPLAY.name,
                params=msgspec.to_builtins(_Replay(since=since, policies=policies)),
                request_id=request_id,
            )
            job: JobSummary = (await self.acceptance.accept(new)).job
            entry.outcome = "accepted"
        return job

    async def run_replay(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """The worker's side of `replay`: reads the audit log in periods, and reports each."""
        replay = msgspec.convert(job.params, _Replay)
        found = await self.records.find(job.organization_id, ConnectorSelection(with_personal=True))
        decided = await self.policies.decided_by(job.organization_id, replay.policies)
        effect = _Effect(self.catalog, {record.id: record for record in found}, decided)
        bounds = _periods(replay.since, job.created_at)
        for done, (begin, end) in enumerate(pairwise(bounds), 1):
            if run_context.stopping.is_set():
                raise (
                    JobCanceled("canceled while it ran") if run_context.is_canceled else Unavailable("it begins again")
                )
            calls = await self.audit.calls_between(job.organization_id, begin, end)
            await effect.of(calls)
            await run_context.progress(done, len(bounds) - 1, f"calls until {moment(end)} are decided")
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(effect.view)))

    async def _call(self, caller: Caller, case: PolicyCase) -> PolicyCall:
        kind_name, _, name = case.operation.partition(".")
        entity, _, action = name.partition(".")
        kind = self.catalog.kind(kind_name)
        named = case.client if case.person is UNSET else case.person
        client_id = caller.client_id if named is UNSET else named
        # The groups of another organization's people are unknown here.
        is_own = client_id in await self.identity.names(caller.organization_id, [client_id])
        groups = await self.policies.groups_of(client_id) if is_own else None
        if case.person is not UNSET and groups is None:
            raise InvalidParams("there is no person with this id")
        target = Target(connector_id=_NO_CONNECTOR, name="", workspace_name="", kind=kind.name)
        if case.connector_id is not UNSET:
            target = target_of(await self.connectors.get(caller, case.connector_id))
            if target.kind != kind.name:
                raise InvalidParams(f"the connector is one of {target.kind}, and the operation one of {kind.name}")
        call = _call_of(kind, entity, action, case.params, client_id=client_id, target=target, surface=case.surface)
        return replace(call, groups=groups)


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


class _Effect:
    """Counts what policies would have decided; the audit log has no params, so some decisions stay open."""

    def __init__(self, catalog: Catalog, records: Mapping[UUID, ConnectorRecord], decided: DecidedSet | None) -> None:
        self._catalog = catalog
        self._records = records
        self._decided = decided
        self._totals: dict[str, int] = defaultdict(int)
        self._by_client: dict[UUID, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._names: dict[UUID, str | None] = {}
        #: decisions of calls that were counted before: each period has most of them again
        self._kept: dict[Hashable, str | None] = {}

    async def of(self, calls: Sequence[RecentCalls]) -> "_Effect":
        """Count the decisions of these calls too."""
        is_large = self._decided is not None and not self._decided.is_small
        verdicts = await mapped(self._verdict, calls, lambda each: is_large and _key(each) not in self._kept)
        for each, verdict in zip(calls, verdicts, strict=True):
            if verdict is None:
                continue
            self._totals[verdict] += each.calls
            if verdict != "allowed":
                self._by_client[each.actor][verdict] += each.calls
                self._names[each.actor] = each.actor_name
        return self

    def _verdict(self, each: RecentCalls) -> str | None:
        if self._decided is None:
            return "allowed"
        key = _key(each)
        if key not in self._kept:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[key] = _verdict(self._catalog, self._records, self._decided, each)
        return self._kept[key]

    @property
    def view(self) -> PolicyEffectView:
        clients = [
            ClientEffectView(
                id=str(client_id),
                name=self._names[client_id],
                refused=counts["refused"],
                asked=counts["asked"],
                undecided=counts["undecided"],
            )
            for client_id, counts in self._by_client.items()
        ]
        return PolicyEffectView(
            refused=self._totals["refused"],
            asked=self._totals["asked"],
            redacted=self._totals["redacted"],
            undecided=self._totals["undecided"],
            by_client=clients,
        )


def _key(each: RecentCalls) -> Hashable:
    groups = None if each.groups is None else tuple(each.groups)
    return each.actor, each.connector_id, each.kind, each.what, groups


def _periods(since: datetime, until: datetime) -> list[datetime]:
    """The bounds of the periods in which a replay reads the log, each an hour or a hundredth of the whole."""
    span = max(until - since, timedelta())
    number = min(100, max(1, ceil(span / timedelta(hours=1))))
    return [since + span * index / number for index in range(number + 1)]


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
            groups=None if each.groups is None else tuple(each.groups),
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
