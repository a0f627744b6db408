"""The decision point: asks the policies of an organization, which every process caches until they are changed.

An organization without policies costs one look-up in a dictionary for each call.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from msgspec.structs import replace

from gateway.access.policy.decision import DecidedSet, Residual, reads_history, summed_paths
from gateway.access.policy.history import HistoryStore, without
from gateway.access.policy.language import statements_of
from gateway.access.policy.model import ALLOWED, Decision, History, MadeCall, PersonRights, Policy, PolicyCall, Verdict
from gateway.access.policy.schema import action_id
from gateway.access.policy.store import PolicyStore
from gateway.contract.policies import PolicyMode
from gateway.errors import DeniedByPolicy
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.notified_cache import NotifiedCache
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.telemetry.metrics import POLICY_DECISIONS

log = logging.getLogger(__name__)

#: maximum clients of which a process caches the groups
_MAX_CLIENTS = 20_000


@dataclass(frozen=True, slots=True)
class PolicySets:
    """The policies of an organization."""

    #: None without an enforced policy: scopes alone decide
    enforced: DecidedSet | None
    #: all policies as if they were enforced; None without one in shadow mode
    shadow: DecidedSet | None
    #: whether a policy reads what a client has called before, and the params whose sums it reads
    reads_history: bool = False
    summed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, policies: Sequence[Policy]) -> "PolicySets":
        """Parse the policies; this takes longer than a request may, so it runs in a thread."""
        enforced = [each for each in policies if each.mode is PolicyMode.ENFORCE]
        has_shadow = len(enforced) < len(policies)
        every = [each for policy in policies for each in statements_of(policy.name, policy.cedar)]
        return cls(
            decided_by(enforced) if enforced else None,
            DecidedSet(every) if has_shadow else None,
            any(reads_history(each) for each in every),
            frozenset(path for each in every for path in summed_paths(each)),
        )


_NONE = PolicySets(None, None)


class PolicyPoint:
    """Decides the calls of all organizations."""

    def __init__(self, store: PolicyStore, history: HistoryStore, is_current: Callable[[], bool]) -> None:
        self._store = store
        self._history = history
        self._cache = NotifiedCache(self._read, is_current)
        self.on_notify, self.invalidate_all = self._cache.on_notify, self._cache.invalidate_all
        self._people = NotifiedCache(store.person, is_current, max_cached=_MAX_CLIENTS)
        self.on_client, self.invalidate_clients = self._people.on_notify, self._people.invalidate_all

    async def sets(self, organization_id: UUID) -> PolicySets:
        """The policies of an organization; raises Unavailable."""
        return await self._cache.get(organization_id)

    async def require(self, organization_id: UUID, call: PolicyCall, *, may_wait: bool = False) -> Decision:
        """The decision of a call; raises DeniedByPolicy.

        Also for a call that a person must approve, unless it may wait for that.
        """
        decision = await self.decide(organization_id, call)
        if decision.verdict is Verdict.ALLOW or (may_wait and decision.verdict is Verdict.APPROVE):
            return decision
        name = next(iter(decision.policies), None)
        if decision.verdict is Verdict.APPROVE:
            reasons = "; ".join(approval.reason for approval in decision.approvals)
            message = f"the policy {name} demands an approval ({reasons}), for which this way to call cannot wait"
        elif name is None:
            message = "no policy of the organization permits this call"
        else:
            message = f"the policy {name} does not allow this call"
        members = {"policy": name, "advice": decision.advice}
        advice = f": {decision.advice}" if decision.advice else ""
        raise DeniedByPolicy(
            f"{message}{advice}", extra={key: value for key, value in members.items() if value is not None}
        )

    async def decide(self, organization_id: UUID, call: PolicyCall) -> Decision:
        """The decision of a call; what policies in shadow mode would decide is counted and logged."""
        sets = await self.sets(organization_id)
        if sets is _NONE:
            return ALLOWED
        call = replace(call, groups=await self.groups_of(call.client_id))
        if sets.reads_history:
            call = replace(call, history=await self._history_of(organization_id, call, sets))
        now = CLOCK.now()
        decision = ALLOWED if sets.enforced is None else (await about(sets.enforced, call)).decide(call, now)
        POLICY_DECISIONS.add(PolicyMode.ENFORCE, decision.verdict)
        if sets.shadow is not None:
            _report(call, decision, (await about(sets.shadow, call)).decide(call, now))
        return decision

    async def groups_of(self, client_id: UUID) -> tuple[str, ...] | None:
        """The groups of a person, by the id of the person's client; None for a client that is no person."""
        person = await self._people.get(client_id)
        return None if person is None else person.groups

    async def rights_of(self, client_id: UUID) -> PersonRights | None:
        """What a person may do now; None for a client that is no person."""
        return await self._people.get(client_id)

    async def count(self, organization_id: UUID, call: MadeCall) -> bool:
        """Count a call of a client, and return whether a policy reads what the client has called."""
        sets = await self.sets(organization_id)
        if not sets.reads_history or call.client_id is None:
            return False
        await self._history.add(organization_id, call, sets.summed)
        return True

    async def _history_of(self, organization_id: UUID, call: PolicyCall, sets: PolicySets) -> History:
        """What the client has called before, as far as statements about this call read it."""
        found = [await about(each, call) for each in (sets.enforced, sets.shadow) if each is not None]
        if not any(each.reads_history for each in found):
            return call.history
        operation = action_id(call.target.kind, call.entity, call.action)
        summed = {path for each in found for path in each.summed}
        history = await self._history.of(organization_id, call.client_id, operation, summed)
        return without(history, call) if call.is_counted else history

    async def _read(self, organization_id: UUID) -> PolicySets:
        policies = await self._store.current(organization_id)
        return await in_thread(PolicySets.of, policies) if policies else _NONE


async def about(decided: DecidedSet, call: PolicyCall) -> Residual:
    """The statements about a call; those of many or long ones are found in a thread."""
    kept = decided.kept(call)
    if kept is not None:
        return kept
    return decided.about(call) if decided.is_small else await in_thread(decided.about, call)


def decided_by(policies: Iterable[Policy]) -> DecidedSet:
    """The statements of stored policies."""
    return DecidedSet([each for policy in policies for each in statements_of(policy.name, policy.cedar)])


def _report(call: PolicyCall, decision: Decision, shadow: Decision) -> None:
    """Count and log what the policies in shadow mode would change."""
    POLICY_DECISIONS.add(PolicyMode.SHADOW, shadow.verdict)
    if shadow.verdict is not decision.verdict:
        log.info(
            "policies in shadow mode would decide otherwise",
            extra={
                "verdict": shadow.verdict.value,
                "policies": list(shadow.policies),
                "client_id": str(call.client_id),
                "connector_id": str(call.target.connector_id),
                "operation": f"{call.target.kind}.{call.entity}.{call.action}",
            },
        )
