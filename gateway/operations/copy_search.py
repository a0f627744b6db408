"""The use case: search the synchronized copy of a connector's records."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.context_store.search.filters import Query
from gateway.context_store.search.search import ContextStore, SearchPage
from gateway.contract.connectors import ConnectorStatus
from gateway.contract.kinds import Effect
from gateway.contract.members import moment
from gateway.foundation.db.pool import Database
from gateway.kinds.actions import SEARCH_ACTION
from gateway.operations.accounting import recorded
from gateway.operations.call import Done, OperationCall
from gateway.operations.permission import Acting, Permission, require_visible
from gateway.operations.searches import PARAMS, prepared_search
from gateway.operations.spending import Spending
from gateway.upstream.field_selection import selected_records
from gateway.upstream.responses import OperationResult


class CopySearch:
    """Searches the copy; before the first load the result is empty, and its meta says so."""

    def __init__(
        self,
        audit: Audit,
        connectors: ConnectorResolver,
        permission: Permission,
        spending: Spending,
        database: Database,
        context_store: ContextStore,
    ) -> None:
        self._audit = audit
        self._connectors = connectors
        self._permission = permission
        self._spending = spending
        self._database = database
        self._context_store = context_store

    async def search(self, caller: Caller, call: OperationCall) -> Done:
        """The page of the call's params, `{data, meta}`; raises UnknownAction and InvalidQuery."""
        with recorded(self._audit, caller, call) as entry:
            caller.require(Scope.READ)
            resolved = await self._connectors.get_for(caller, call.connector_id)
            _, query = _prepared(resolved, call)
            entry.kind, entry.effect = resolved.record.kind, Effect.READ
            redact = await self._permit(caller, resolved, call, query)
            taken = await self._spending.take_search(caller, resolved.record, call.entity)
            page = await self._found(caller.person_id, resolved, call, query)
            await taken.returned_records(len(page.data))
        records = await selected_records(page.data, call.selection.redacting(redact))
        result = msgspec.json.encode({"data": records, "meta": _meta(page)})
        following = {**call.params, "cursor": page.cursor} if page.has_more else None
        return Done(
            answer=OperationResult(result=msgspec.Raw(result), is_page=True, next=following, redacted=redact),
            took_ms=page.took_ms,
        )

    async def dry_run(self, caller: Caller, call: OperationCall) -> list[dict[str, Any]]:
        """The search that would be run, `[{entity, action, params}]`; raises UnknownAction and InvalidQuery."""
        caller.require(Scope.READ)
        resolved = await self._connectors.get_for(caller, call.connector_id)
        params, query = _prepared(resolved, call)
        await self._permit(caller, resolved, call, query)
        return [{"entity": call.entity, "action": SEARCH_ACTION, "params": {**params, "limit": query.limit}}]

    async def _permit(
        self, caller: Caller, resolved: ResolvedConnector, call: OperationCall, query: Query
    ) -> Sequence[str]:
        """The paths that are redacted; raises DeniedByPolicy, also for a search that uses or selects one of them."""
        decision = await self._permission.require_search(caller, resolved.record, call.entity, call.surface, query.used)
        selected = [".".join(path) for path in query.fields or ()]
        require_visible(decision, (*(call.selection.select_fields or ()), *selected))
        return decision.redact

    async def page(self, acting: Acting, call: OperationCall) -> SearchPage:
        """The page of the call's params; raises UnknownAction and InvalidQuery."""
        resolved = await self._connectors.get(acting.organization_id, call.connector_id)
        _, query = _prepared(resolved, call)
        return await self._found(acting.client_id, resolved, call, query)

    async def _found(
        self, person: UUID | None, resolved: ResolvedConnector, call: OperationCall, query: Query
    ) -> SearchPage:
        page, _ = await self._database.read(
            resolved.record.organization_id,
            lambda connection: self._context_store.search(connection, resolved.record.id, call.entity, query, PARAMS),
            person=person,
        )
        return page


def _prepared(resolved: ResolvedConnector, call: OperationCall) -> tuple[Mapping[str, Any], Query]:
    """The params under declared names, and their query; raises ConnectorNotReady for a disabled connector."""
    prepared = prepared_search(resolved.connector.kind, call.entity, call.params, call.selection)
    if resolved.record.status is ConnectorStatus.DISABLED:
        resolved.require_active()
    return prepared


def _meta(page: SearchPage) -> dict[str, Any]:
    return {
        "has_more": page.has_more,
        "cursor": page.cursor,
        "took_ms": page.took_ms,
        "as_of": moment(page.as_of),
        "total_synced": page.total_synced,
        "synchronized": page.as_of is not None,
        "complete": page.is_complete,
    }
