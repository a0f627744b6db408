"""The use case: search the synchronized copy of a connector's records."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.context_store.search.filters import Query
from gateway.context_store.search.names import Names, with_declared_names
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore, SearchPage
from gateway.context_store.sync.schedule import search_fields
from gateway.contract.connectors import ConnectorStatus
from gateway.contract.members import moment
from gateway.errors import InvalidQuery, UnknownAction
from gateway.foundation.db.pool import Database
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.kinds.search_schema import search_call
from gateway.kinds.spec import Entity
from gateway.operations.accounting import recorded
from gateway.operations.call import Done, OperationCall
from gateway.operations.permission import Permission
from gateway.operations.spending import Spending
from gateway.upstream.field_selection import ensure_declared, selected_records
from gateway.upstream.responses import OperationResult

#: the JSON pointer of the params in a call
_PARAMS = "/params"


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
            entry.kind = resolved.record.kind
            await self._permission.require_search(caller, resolved.record, call.entity, call.surface)
            taken = await self._spending.take_search(caller, resolved.record, call.entity)
            page = await self._found(resolved, call, query)
            await taken.returned_records(len(page.data))
        records = await selected_records(page.data, call.selection)
        result = msgspec.json.encode({"data": records, "meta": _meta(page)})
        following = {**call.params, "cursor": page.cursor} if page.has_more else None
        return Done(
            answer=OperationResult(result=msgspec.Raw(result), is_page=True, next=following), took_ms=page.took_ms
        )

    async def dry_run(self, caller: Caller, call: OperationCall) -> list[dict[str, Any]]:
        """The search that would be run, `[{entity, action, params}]`; raises UnknownAction and InvalidQuery."""
        caller.require(Scope.READ)
        resolved = await self._connectors.get_for(caller, call.connector_id)
        params, query = _prepared(resolved, call)
        await self._permission.require_search(caller, resolved.record, call.entity, call.surface)
        return [{"entity": call.entity, "action": SEARCH_ACTION, "params": {**params, "limit": query.limit}}]

    async def page(self, organization_id: UUID, call: OperationCall) -> SearchPage:
        """The page of the call's params; raises UnknownAction and InvalidQuery."""
        resolved = await self._connectors.get(organization_id, call.connector_id)
        _, query = _prepared(resolved, call)
        return await self._found(resolved, call, query)

    async def _found(self, resolved: ResolvedConnector, call: OperationCall, query: Query) -> SearchPage:
        async with self._database.tenant(resolved.record.organization_id) as connection:
            return await self._context_store.search(connection, resolved.record.id, call.entity, query, _PARAMS)


def _prepared(resolved: ResolvedConnector, call: OperationCall) -> tuple[Mapping[str, Any], Query]:
    """The params under declared names, and their query; raises ConnectorNotReady for a disabled connector."""
    prepared = prepared_search(resolved.connector.kind, call)
    if resolved.record.status is ConnectorStatus.DISABLED:
        resolved.require_active()
    return prepared


def prepared_search(kind: Kind, call: OperationCall) -> tuple[Mapping[str, Any], Query]:
    """The params of a search under declared names, and their query.

    Raises UnknownAction for an entity that is not searched, and InvalidQuery with an example. Pure.
    """
    if SEARCH_ACTION not in kind.actions_of(call.entity):
        searchable = ", ".join(sorted(name for name in kind.spec.entities if SEARCH_ACTION in kind.actions_of(name)))
        raise UnknownAction(f"{kind.name} {call.entity} has no {SEARCH_ACTION}; entities that have: {searchable}")
    fields = search_fields(kind, call.entity)
    search = kind.entity(call.entity).search
    assert search is not None
    example = search_call(call.entity, search)
    selectable = _selectable(kind.entity(call.entity), fields)
    ensure_declared(call.selection, f"{call.entity}.{SEARCH_ACTION}", selectable, example)
    try:
        params = with_declared_names(call.params, Names(fields, kind.spec.property_names), _PARAMS)
        return params, parse(params, fields, _PARAMS)
    except InvalidQuery as error:
        error.extra["example"] = example
        raise


def _selectable(entity: Entity, searched: Iterable[str]) -> set[str]:
    """The fields that records are known to have; empty if an account may define its own fields."""
    if entity.additional_fields or not entity.fields:
        return set()
    return {*entity.fields, *(name.partition(".")[0] for name in searched)}


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
