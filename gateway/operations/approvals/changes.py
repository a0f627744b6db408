"""Decides which changes of records a reader of an approval sees: their old values come from the application."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.errors import GatewayError
from gateway.operations.approvals.model import RecordChange, shows
from gateway.operations.approvals.store import ApprovalRow
from gateway.operations.permission import Acting, Permission

#: the action that reads what a write changes
_GET = "get"
#: redacts every member
_EVERYTHING = ("*",)


@dataclass(frozen=True, slots=True)
class ChangeReading:
    """Reads the changes of approvals as far as policies allow.

    Approvers see all changes that policies do not redact for them. Who asks sees only what a read would tell too.
    """

    permission: Permission
    connectors: ConnectorResolver

    async def shown(self, caller: Caller, approval: ApprovalRow) -> tuple[Sequence[RecordChange], Sequence[str]]:
        """The changes that the caller sees, and the paths of members whose changes are left out."""
        if not approval.changes or not await self._is_limited(caller, approval):
            return approval.changes, ()
        hidden = {
            operation: await self._hidden(caller, approval, operation)
            for operation in {each.operation for each in approval.changes}
        }
        changes = [each for each in approval.changes if shows(each, hidden[each.operation])]
        return changes, sorted({path for paths in hidden.values() for path in paths})

    async def _is_limited(self, caller: Caller, approval: ApprovalRow) -> bool:
        is_own = approval.is_asked_by(caller.client_id)
        return await self.permission.is_needed(caller) or (is_own and Scope.READ not in caller.client.scopes)

    async def _hidden(self, caller: Caller, approval: ApprovalRow, operation: str) -> Sequence[str]:
        """The paths of members that the caller does not see in records that an operation changes."""
        if approval.connector_id is None:
            return _EVERYTHING
        entity, _, action = operation.rpartition(".")
        try:
            resolved = await self.connectors.get(approval.organization_id, approval.connector_id)
            if not approval.is_asked_by(caller.client_id):
                return await self._redacted(caller, resolved, entity, action)
            if Scope.READ not in caller.client.scopes:
                return _EVERYTHING
            return sorted(
                {
                    path
                    for acting in (caller, approval)
                    for path in await self._readable(acting, resolved, entity, action)
                }
            )
        except GatewayError:  # its kind, its operation or the connector is gone: nothing can be decided
            return _EVERYTHING

    async def _readable(self, acting: Acting, resolved: ResolvedConnector, entity: str, action: str) -> Sequence[str]:
        """The paths that a client does not see who asks; all of them if it may not read such records."""
        record, kind = resolved.record, resolved.connector.kind
        if not await self.permission.is_possible(acting, record, kind, entity, _GET):
            return _EVERYTHING
        return await self._redacted(acting, resolved, entity, action)

    async def _redacted(self, acting: Acting, resolved: ResolvedConnector, entity: str, action: str) -> Sequence[str]:
        record, kind = resolved.record, resolved.connector.kind
        return [
            path
            for each in (_GET, action)
            for path in await self.permission.redacted_paths(acting, record, kind, entity, each)
        ]
