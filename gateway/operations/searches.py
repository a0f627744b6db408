"""A search of the synchronized copy as the caller sent it: checked, and parsed into a query. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.context_store.search.filters import Query
from gateway.context_store.search.names import Names, with_declared_names
from gateway.context_store.search.parse import parse
from gateway.context_store.sync.schedule import search_fields
from gateway.errors import InvalidQuery, UnknownAction
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.kinds.search_schema import search_call
from gateway.kinds.spec import Entity
from gateway.upstream.field_selection import EVERYTHING, FieldSelection, ensure_declared

#: the JSON pointer of the params in a call
PARAMS = "/params"


def prepared_search(
    kind: Kind, entity: str, params: Mapping[str, Any], selection: FieldSelection = EVERYTHING
) -> tuple[Mapping[str, Any], Query]:
    """The params of a search of the copy under declared names, and their query.

    Raises UnknownAction for an entity that is not searched, InvalidQuery with an example, and InvalidParams for a
    selected field that no record has.
    """
    if SEARCH_ACTION not in kind.actions_of(entity):
        searchable = ", ".join(sorted(name for name in kind.spec.entities if SEARCH_ACTION in kind.actions_of(name)))
        raise UnknownAction(f"{kind.name} {entity} has no {SEARCH_ACTION}; entities that have: {searchable}")
    fields = search_fields(kind, entity)
    search = kind.entity(entity).search
    assert search is not None
    example = search_call(entity, search)
    selectable = _selectable(kind.entity(entity), fields)
    ensure_declared(selection, f"{entity}.{SEARCH_ACTION}", selectable, example)
    try:
        params = with_declared_names(params, Names(fields, kind.spec.property_names), PARAMS)
        return params, parse(params, fields, PARAMS)
    except InvalidQuery as error:
        error.extra["example"] = example
        raise


def _selectable(entity: Entity, searched: Iterable[str]) -> set[str]:
    """The fields that records are known to have; empty if an account may define its own fields."""
    if entity.additional_fields or not entity.fields:
        return set()
    return {*entity.fields, *(name.partition(".")[0] for name in searched)}
