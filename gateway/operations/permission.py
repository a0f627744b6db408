"""Asks the policies whether a client may run an operation; nothing acts for a client without asking here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from gateway.access.policy.model import Decision, PolicyCall, Target, Verdict
from gateway.access.policy.point import PolicyPoint
from gateway.connectors.model import ConnectorRecord
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import DeniedByPolicy
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.upstream.prepared import PreparedCall

#: the principal of work whose client is not known
_NOBODY = UUID(int=0)


class Acting(Protocol):
    """A client that acts for an organization: a caller, or the client that a job was accepted for."""

    @property
    def organization_id(self) -> UUID: ...

    @property
    def client_id(self) -> UUID | None: ...


@dataclass(frozen=True, slots=True)
class Permission:
    """The one place that asks for decisions; every method raises DeniedByPolicy."""

    point: PolicyPoint

    async def is_needed(self, acting: Acting) -> bool:
        """Whether the organization has policies that decide."""
        return (await self.point.sets(acting.organization_id)).enforced is not None

    async def is_possible(self, acting: Acting, record: ConnectorRecord, kind: Kind, entity: str, action: str) -> bool:
        """Whether some call of an operation is allowed: false if it is denied whatever its params are."""
        enforced = (await self.point.sets(acting.organization_id)).enforced
        if enforced is None:
            return True
        operation = None if action == SEARCH_ACTION else kind.operation(entity, action)
        effects = {Effect.READ}
        if operation is not None:
            effects = {operation.action.effect, *([Effect.WRITE] if operation.action.write_if else [])}
        calls = (
            PolicyCall(
                client_id=acting.client_id or _NOBODY,
                target=target_of(record),
                entity=entity,
                action=action,
                effect=effect,
                surface=Surface.HTTP,
                operation=operation,
            )
            for effect in effects
        )
        decisions = [enforced.always(call) for call in calls]
        return any(decision is None or decision.verdict is not Verdict.DENY for decision in decisions)

    async def require_possible(
        self, acting: Acting, record: ConnectorRecord, kind: Kind, entity: str, action: str
    ) -> None:
        """Raise DeniedByPolicy if every call of an operation is denied."""
        if not await self.is_possible(acting, record, kind, entity, action):
            raise DeniedByPolicy(f"the policies of the organization do not allow {entity}.{action}")

    async def require_call(
        self, acting: Acting, record: ConnectorRecord, call: PreparedCall, surface: Surface, *, may_wait: bool = False
    ) -> Decision:
        """The decision of a prepared call: execute, download, upload, a line of a batch, a job that starts.

        `may_wait`: whether the caller can wait until a person approves the call.
        """
        operation = call.operation
        return await self.point.require(
            acting.organization_id,
            PolicyCall(
                client_id=acting.client_id or _NOBODY,
                target=target_of(record),
                entity=operation.entity_id,
                action=operation.action_id,
                effect=call.effect,
                surface=surface,
                params=call.params,
                operation=operation,
            ),
            may_wait=may_wait,
        )

    async def require_search(self, acting: Acting, record: ConnectorRecord, entity: str, surface: Surface) -> Decision:
        """The decision of a search of the copy, or of reading a record of it."""
        return await self.point.require(
            acting.organization_id,
            PolicyCall(
                client_id=acting.client_id or _NOBODY,
                target=target_of(record),
                entity=entity,
                action=SEARCH_ACTION,
                effect=Effect.READ,
                surface=surface,
            ),
        )

    async def require(
        self,
        acting: Acting,
        record: ConnectorRecord,
        kind: Kind,
        entity: str,
        action: str,
        params: Mapping[str, Any],
        surface: Surface,
        may_wait: bool = False,
    ) -> Decision:
        """The decision of an operation or a search by its name, with params that were validated before."""
        if action == SEARCH_ACTION:
            return await self.require_search(acting, record, entity, surface)
        call = PreparedCall.of(kind.operation(entity, action), params)
        return await self.require_call(acting, record, call, surface, may_wait=may_wait)


def target_of(record: ConnectorRecord) -> Target:
    """The connector as policies see it."""
    return Target(connector_id=record.id, name=record.name, workspace_name=record.workspace_name, kind=record.kind)
