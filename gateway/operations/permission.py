"""Asks the policies whether a client may run an operation; nothing acts for a client without asking here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from gateway.access.audit.entry import note_policies
from gateway.access.identity.model import Caller, PersonSession, Scope
from gateway.access.policy.model import Decision, PolicyCall, Target, Verdict
from gateway.access.policy.paths import covers, first_redacted, first_telling
from gateway.access.policy.point import PolicyPoint, about
from gateway.connectors.model import ConnectorRecord
from gateway.context_store.fields import Field
from gateway.contract.kinds import Effect, PagingStyle
from gateway.contract.policies import Surface
from gateway.errors import DeniedByPolicy, InsufficientScope
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.operations.searches import prepared_search
from gateway.upstream.prepared import PreparedCall

#: the principal of work whose client is not known
_NOBODY = UUID(int=0)
#: the scope that an operation of this effect needs
SCOPE_OF = {effect: Scope.READ if effect is Effect.READ else Scope.WRITE for effect in Effect}


class Acting(Protocol):
    """A client that acts for an organization: a caller, or the client that a job was accepted for."""

    @property
    def organization_id(self) -> UUID: ...

    @property
    def client_id(self) -> UUID | None: ...

    @property
    def session(self) -> PersonSession | None: ...


@dataclass(frozen=True, slots=True)
class Permission:
    """The one place that asks for decisions; every method raises DeniedByPolicy, and InsufficientScope for what the
    session of the caller does not allow.
    """

    point: PolicyPoint

    async def is_needed(self, acting: Acting) -> bool:
        """Whether the organization has policies that decide, or a session does."""
        return acting.session is not None or (await self.point.sets(acting.organization_id)).enforced is not None

    async def is_possible(self, acting: Acting, record: ConnectorRecord, kind: Kind, entity: str, action: str) -> bool:
        """Whether some call of an operation is allowed: false if it is denied whatever its params are."""
        calls = [
            call
            for call in _calls_of(acting, await self._groups_of(acting), record, kind, entity, action)
            if _is_in_session(acting, record, entity, action, call.effect)
        ]
        enforced = (await self.point.sets(acting.organization_id)).enforced
        if enforced is None:
            return bool(calls)
        decisions = [(await about(enforced, call)).always for call in calls]
        return any(decision is None or decision.verdict is not Verdict.DENY for decision in decisions)

    async def _groups_of(self, acting: Acting) -> tuple[str, ...] | None:
        return await self.point.groups_of(acting.client_id or _NOBODY)

    async def require_possible(
        self, acting: Acting, record: ConnectorRecord, kind: Kind, entity: str, action: str
    ) -> Sequence[str]:
        """The paths that some call of an operation redacts; raises DeniedByPolicy if every call is denied."""
        if not await self.is_possible(acting, record, kind, entity, action):
            raise DeniedByPolicy(f"the policies of the organization do not allow {entity}.{action}")
        return await self.redacted_paths(acting, record, kind, entity, action)

    async def redacted_paths(
        self, acting: Acting, record: ConnectorRecord, kind: Kind, entity: str, action: str
    ) -> Sequence[str]:
        """The paths that some call of an operation redacts, whether or not it is allowed."""
        enforced = (await self.point.sets(acting.organization_id)).enforced
        if enforced is None:
            return []
        calls = _calls_of(acting, await self._groups_of(acting), record, kind, entity, action)
        return sorted({path for call in calls for path in (await about(enforced, call)).redacts})

    async def require_call(
        self,
        acting: Acting,
        record: ConnectorRecord,
        call: PreparedCall,
        surface: Surface,
        *,
        may_wait: bool = False,
        is_counted: bool = False,
        is_approved: bool = False,
    ) -> Decision:
        """The decision of a prepared call: execute, download, upload, a line of a batch, a job that starts.

        `may_wait`: whether the caller can wait until a person approves the call; `is_counted`: whether what the client
        has called includes the call already; `is_approved`: whether people have approved it. A read is denied whose
        params name a member that is redacted, because its answer could tell the value; if all members are redacted, a
        read with any param that could be a filter.
        """
        operation = call.operation
        _require_in_session(acting, record, operation.entity_id, operation.action_id, call.effect)
        await self._require_rights(acting, record, call.effect)
        decision = await self.point.require(
            acting.organization_id,
            PolicyCall(
                client_id=acting.client_id or _NOBODY,
                acting_client_id=_acting_client(acting),
                target=target_of(record),
                entity=operation.entity_id,
                action=operation.action_id,
                effect=call.effect,
                surface=surface,
                params=call.params,
                operation=operation,
                is_counted=is_counted,
                is_approved=is_approved,
            ),
            may_wait=may_wait,
        )
        note_policies(decision.policies)
        if decision.redact and call.effect is Effect.READ:
            telling = first_telling(decision.redact, call.params, _placing(call))
            if telling is not None:
                raise _tells_of_redacted(f"the param {telling} names a member", decision)
        return decision

    async def require_search(
        self,
        acting: Acting,
        record: ConnectorRecord,
        entity: str,
        surface: Surface,
        used: Iterable[Field] = (),
        *,
        is_counted: bool = False,
    ) -> Decision:
        """The decision of a search of the copy, or of reading a record of it.

        `used` are the fields by which the search filters and sorts. It is denied if one of them is redacted, or may
        have a redacted member; a scalar field has none, because a value of another type counts as missing.
        """
        _require_in_session(acting, record, entity, SEARCH_ACTION, Effect.READ)
        await self._require_rights(acting, record, Effect.READ)
        decision = await self.point.require(
            acting.organization_id,
            PolicyCall(
                client_id=acting.client_id or _NOBODY,
                acting_client_id=_acting_client(acting),
                target=target_of(record),
                entity=entity,
                action=SEARCH_ACTION,
                effect=Effect.READ,
                surface=surface,
                is_counted=is_counted,
            ),
        )
        note_policies(decision.policies)
        if decision.redact:
            telling = next(
                (each.name for each in used if covers(decision.redact, each.path, is_scalar=each.is_scalar)), None
            )
            if telling is not None:
                raise _tells_of_redacted(f"the search uses {telling}", decision)
        return decision

    async def _require_rights(self, acting: Acting, record: ConnectorRecord, effect: Effect) -> None:
        """Raise InsufficientScope for work of a person who has lost the right since the work was accepted.

        The rights of a caller are those of its token.
        """
        if isinstance(acting, Caller) or acting.client_id is None:
            return
        rights, scope = await self.point.rights_of(acting.client_id), SCOPE_OF[effect]
        if rights is not None and not rights.allows(scope, record.workspace_name):
            where = f"the workspace {record.workspace_name!r}"
            raise InsufficientScope(f"the person for whom this runs no longer has the scope {scope} in {where}")

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
        is_counted: bool = False,
        is_approved: bool = False,
    ) -> Decision:
        """The decision of an operation or a search by its name, with params that were validated before."""
        if action == SEARCH_ACTION:
            _, query = prepared_search(kind, entity, params)
            return await self.require_search(acting, record, entity, surface, query.used, is_counted=is_counted)
        call = PreparedCall.of(kind.operation(entity, action), params)
        return await self.require_call(
            acting, record, call, surface, may_wait=may_wait, is_counted=is_counted, is_approved=is_approved
        )


def _calls_of(
    acting: Acting, groups: tuple[str, ...] | None, record: ConnectorRecord, kind: Kind, entity: str, action: str
) -> Iterator[PolicyCall]:
    """The calls of an operation without params, one for each effect that it may have."""
    operation = None if action == SEARCH_ACTION else kind.operation(entity, action)
    effects = {Effect.READ}
    if operation is not None:
        effects = {operation.action.effect, *([Effect.WRITE] if operation.action.write_if else [])}
    for effect in effects:
        yield PolicyCall(
            client_id=acting.client_id or _NOBODY,
            groups=groups,
            acting_client_id=_acting_client(acting),
            target=target_of(record),
            entity=entity,
            action=action,
            effect=effect,
            surface=Surface.HTTP,
            operation=operation,
        )


def _is_in_session(acting: Acting, record: ConnectorRecord, entity: str, action: str, effect: Effect) -> bool:
    """Whether the session allows an operation; true without a session."""
    session = acting.session
    return session is None or (
        session.reaches(record.id) and session.allows(f"{record.kind}.{entity}.{action}", effect)
    )


def _require_in_session(acting: Acting, record: ConnectorRecord, entity: str, action: str, effect: Effect) -> None:
    if not _is_in_session(acting, record, entity, action, effect):
        raise InsufficientScope(f"the session does not allow {entity}.{action}, whose effect is {effect}")


def _acting_client(acting: Acting) -> UUID | None:
    return None if acting.session is None else acting.session.client_id


def _placing(call: PreparedCall) -> set[str]:
    """The params that choose the record or the page, or were not chosen: those of the path, of paging, and defaults."""
    operation, paging = call.operation, call.variant.paging
    defaults = {name for name, value in operation.defaults.items() if call.params.get(name) == value}
    if paging is None:
        return {*operation.path_params, *defaults}
    # `last_id` compares a member of the records, as a filter does.
    page = None if paging.style is PagingStyle.LAST_ID else paging.param
    return {*operation.path_params, *defaults, *filter(None, (page, paging.size))}


def require_visible(decision: Decision, paths: Iterable[str]) -> None:
    """Raise DeniedByPolicy if one of the selected fields is redacted."""
    redacted = first_redacted(decision.redact, paths) if decision.redact else None
    if redacted is not None:
        raise _tells_of_redacted(f"the field {redacted} is selected", decision)


def _tells_of_redacted(what: str, decision: Decision) -> DeniedByPolicy:
    members = {"policy": next(iter(decision.policies), None), "advice": decision.advice}
    return DeniedByPolicy(
        f"{what}, which the policies redact; leave it out",
        extra={name: value for name, value in members.items() if value is not None},
    )


def target_of(record: ConnectorRecord) -> Target:
    """The connector as policies see it."""
    return Target(connector_id=record.id, name=record.name, workspace_name=record.workspace_name, kind=record.kind)
