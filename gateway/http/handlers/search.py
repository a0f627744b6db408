"""`context_store_search`: filters and sorts over the synchronized copy."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.connectors.responses import Answer
from gateway.context_store.search.names import Names, with_known_names
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import SearchPage
from gateway.context_store.sync.schedule import search_fields
from gateway.credentials.store import ConnectorStatus
from gateway.errors import UnknownAction
from gateway.execution import OperationCall
from gateway.field_selection import ensure_known, selected_records
from gateway.http.handlers.outcomes import envelope
from gateway.http.keys import CALLER, SERVICES
from gateway.identity.model import Scope
from gateway.jobs.model import moment
from gateway.kinds.catalog import SEARCH_ACTION


async def search(request: web.Request, call: OperationCall) -> web.Response:
    """Search one entity of a connector; before the first load there is nothing to find, and the meta says so."""
    page = await _page(request, call)
    result = msgspec.json.encode({"data": selected_records(page.data, call.shape), "meta": _meta(page)})
    following = {**call.params, "cursor": page.cursor} if page.has_more else None
    answer = Answer(msgspec.Raw(result), is_page=True, next=following)
    return envelope(request, str(call.connector_id), answer, page.took_ms)


async def _page(request: web.Request, call: OperationCall) -> SearchPage:
    caller, services = request[CALLER], request.app[SERVICES]
    opened = await services.connectors.get(caller.organization_id, call.connector_id)
    kind = opened.connector.kind
    if SEARCH_ACTION not in kind.actions_of(call.entity):
        searchable = ", ".join(sorted(name for name in kind.spec.entities if SEARCH_ACTION in kind.actions_of(name)))
        raise UnknownAction(f"{kind.name} {call.entity} has no {SEARCH_ACTION}; entities that have: {searchable}")
    caller.require(Scope.READ)
    if opened.record.status is ConnectorStatus.DISABLED:
        opened.require_active()
    fields, entity = search_fields(kind, call.entity), kind.entity(call.entity)
    known = {} if entity.has_own_fields or not entity.fields else {**entity.fields, **dict.fromkeys(_tops(fields))}
    ensure_known(call.shape, f"{call.entity}.{SEARCH_ACTION}", known)
    asked: Mapping[str, Any] = with_known_names(call.params, Names(fields, kind.spec.property_names), "/params")
    query = parse(asked, fields, "/params")
    async with services.database.tenant(caller.organization_id) as connection:
        return await services.context_store.search(connection, opened.record.id, call.entity, query)


def _tops(names: Iterable[str]) -> Iterator[str]:
    """The first names of dotted paths."""
    return (name.partition(".")[0] for name in names)


def _meta(page: SearchPage) -> dict[str, Any]:
    return {
        "has_more": page.has_more,
        "cursor": page.cursor,
        "took_ms": page.took_ms,
        "as_of": moment(page.as_of),
        "total_synced": page.total_synced,
        "synchronized": page.as_of is not None,
    }
