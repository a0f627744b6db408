"""The use cases of administrators: store, read and delete policies."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.access.names import require_name, require_possible
from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.language import Schema, checked
from gateway.access.policy.model import Policy
from gateway.access.policy.point import PolicyPoint, decided_by
from gateway.access.policy.store import MAX_CHARACTERS, PolicyStore
from gateway.contract.policies import NewPolicy, PolicyList, PolicyMode, PolicyView
from gateway.errors import InvalidParams
from gateway.foundation.aio.remembered import Remembered
from gateway.foundation.aio.turns import in_thread, mapped


class PolicyService:
    """The policies of the caller's organization."""

    def __init__(self, audit: Audit, store: PolicyStore, point: PolicyPoint, schema: Remembered[Schema]) -> None:
        self._audit = audit
        self._store = store
        self._point = point
        self._schema = schema

    async def all(self, caller: Caller) -> PolicyList:
        """The current policies, by name."""
        _require(caller)
        return PolicyList([each.view for each in await self._store.current(caller.organization_id)])

    async def get(self, caller: Caller, name: str) -> PolicyView:
        """The current version; raises NotFound."""
        _require(caller)
        return (await self._store.get(caller.organization_id, name)).view

    async def versions(self, caller: Caller, name: str) -> PolicyList:
        """The kept versions, the newest first, also of a deleted policy; raises NotFound."""
        _require(caller)
        require_possible(name, "policy")
        return PolicyList([each.view for each in await self._store.versions(caller.organization_id, name)])

    async def put(
        self, caller: Caller, name: str, cedar: str, mode: PolicyMode, description: str | None, if_match: str | None
    ) -> PolicyView:
        """Store a policy after a strict check; it decides from now on.

        Raises InvalidPolicy with all faults and their places, InvalidParams for a name, and PreconditionFailed.
        """
        with self._audit.record("policy.put", caller, target=name, changed=["cedar", "description", "mode"]):
            _require(caller)
            require_name(name)
            schema = await self._schema()
            statements = await in_thread(partial(checked, name, schema=schema), cedar)
            ids = sorted({each.annotations["id"] for each in statements if "id" in each.annotations})
            new = NewPolicy(name=name, mode=mode, cedar=cedar, description=description)
            stored = await self._store.put(caller.organization_id, new, ids, caller.client_id, if_match)
            self._forget(caller.organization_id)
        return stored.view

    async def delete(self, caller: Caller, name: str, if_match: str | None) -> None:
        """Delete a policy; its versions can still be read. Raises NotFound and PreconditionFailed."""
        with self._audit.record("policy.delete", caller, target=name):
            _require(caller)
            require_possible(name, "policy")
            await self._store.delete(caller.organization_id, name, if_match)
            self._forget(caller.organization_id)

    async def trial(self, caller: Caller, policies: Sequence[NewPolicy] | None) -> DecidedSet | None:
        """The enforced ones of these policies, which are checked as if they were stored, else of the stored ones.

        None without any; raises InvalidPolicy.
        """
        _require(caller)
        if policies is None:
            return (await self._point.sets(caller.organization_id)).enforced
        return await self.decided_by(caller.organization_id, policies)

    async def decided_by(self, organization_id: UUID, policies: Sequence[NewPolicy] | None) -> DecidedSet | None:
        """The enforced ones of these policies, else all stored ones as if they were enforced; raises InvalidPolicy."""
        if policies is None:
            current = await self._store.current(organization_id)
            return await in_thread(decided_by, current) if current else None
        return await _trial_set(policies, await self._schema())

    async def groups_of(self, client_id: UUID) -> tuple[str, ...] | None:
        """The groups of a person; None for a client that is no person."""
        return await self._point.groups_of(client_id)

    async def as_enforced(self, caller: Caller, names: Collection[str]) -> Mapping[str, DecidedSet]:
        """For each name the enforced policies, and the named one whatever its mode is."""
        _require(caller)
        current = await self._store.current(caller.organization_id)
        return await in_thread(partial(_as_enforced, current), names)

    async def schema(self, caller: Caller) -> Mapping[str, Any]:
        """The schema in Cedar's JSON format."""
        _require(caller)
        return (await self._schema()).document

    async def schema_text(self, caller: Caller) -> str:
        """The schema as Cedar text."""
        _require(caller)
        return str((await self._schema()).handle)

    def _forget(self, organization_id: UUID) -> None:
        """The caller's next call is decided by the change, even before this process is notified."""
        self._point.on_notify(str(organization_id))


def _as_enforced(current: Sequence[Policy], names: Collection[str]) -> Mapping[str, DecidedSet]:
    """The set of each name; those of enforced policies are the same one."""
    decided: dict[frozenset[str], DecidedSet] = {}
    sets = {}
    for name in names:
        decides = [each for each in current if each.mode is PolicyMode.ENFORCE or each.name == name]
        key = frozenset(each.name for each in decides)
        if key not in decided:
            decided[key] = decided_by(decides)
        sets[name] = decided[key]
    return sets


async def _trial_set(policies: Sequence[NewPolicy], schema: Schema) -> DecidedSet | None:
    enforced = [each for each in policies if each.mode is PolicyMode.ENFORCE]
    if sum(len(each.cedar) for each in enforced) > MAX_CHARACTERS:
        raise InvalidParams(f"the policies have more than {MAX_CHARACTERS:,} characters; try fewer at once")
    found = await mapped(lambda each: checked(each.name, each.cedar, schema), enforced, lambda each: True)
    return DecidedSet([statement for statements in found for statement in statements]) if enforced else None


def _require(caller: Caller) -> None:
    """Raise InsufficientScope unless the caller administers the whole organization."""
    caller.require(Scope.ADMIN)
    caller.require_whole_organization()
