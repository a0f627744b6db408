"""An operation whole, as plain data: what an agent reads before it calls."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.search_operators import CONDITIONS
from gateway.operation_search.entries import CACHED, OperationEntry
from gateway.operation_search.parts import part_of, size_of, within
from gateway.operation_search.schemas import constraint_sentences, tool_schema
from gateway.operation_search.signatures import signature_of

#: the name by which the query language is described instead of an operation
QUERY_LANGUAGE = "query-language"
#: characters of the fields of a search, and of a longer list of fields
_FIELDS_CHARACTERS = 900
#: bytes of a description, of about 4 for a token
_MAX_BYTES = 4_000
#: the params of every search of a copy
_SEARCH_PARAMS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "object", "description": f'{{filter, sort}}; see describe_operation("{QUERY_LANGUAGE}")'},
        "limit": {"type": "integer", "maximum": 10_000},
        "cursor": {"type": "string", "description": "meta.cursor of the page before"},
        "fields": {"type": "array", "description": "the fields to answer with"},
    },
    "required": ["query"],
}


@lru_cache(CACHED)
def summary(entry: OperationEntry) -> Mapping[str, Any]:
    """The operation in a few lines: names, effect and signature; the same mapping each time."""
    return {
        "operation": entry.name,
        "application": entry.kind.spec.application,
        "kind": entry.kind.name,
        "entity": entry.entity_id,
        "action": entry.action_id,
        "effect": entry.effect.value,
        "title": entry.title,
        "signature": signature_of(entry),
        "description": entry.description,
    }


def describe(entry: OperationEntry) -> dict[str, Any]:
    """The description of an operation for an agent: params as JSON Schema, an example, the record's members, paging.

    A search of the copy refers to `query_language`, which is the same for all of them; `fields`, by type, are what its
    filters may name. Many fields of another action are listed in the same way, and the largest definitions of a long
    schema are parts, see `described_part`.
    """
    is_search = entry.action is None
    description: dict[str, Any] = {
        "operation": entry.name,
        "application": entry.kind.spec.application,
        "effect": entry.effect.value,
        "signature": signature_of(entry),
        "description": entry.description,
        "params": _SEARCH_PARAMS if is_search else tool_schema(entry),
        "constraints": constraint_sentences(entry),
        "example": entry.example,
        "fields": _by_type(entry) if is_search else entry.fields,
        "paging": _paging(entry),
        "runs": entry.action.runs if entry.action else "inline",
    }
    if size_of(description) > _MAX_BYTES and size_of(description["fields"]) > _FIELDS_CHARACTERS:
        description["fields"] = _by_type(entry)
    left = _MAX_BYTES - size_of({**description, "params": None})
    return {**description, "params": within(description["params"], entry, left)}


def described_part(entry: OperationEntry, name: str) -> dict[str, Any]:
    """A definition of the params that the description of the operation refers to."""
    return part_of(entry, name, _MAX_BYTES)


def query_language() -> dict[str, Any]:
    """The query language of every `context_store_search`."""
    return {
        "query": {"filter": {"OPERATOR": {"FIELD": "VALUE"}}, "sort": [{"FIELD": "asc or desc"}]},
        "filter": "all operators and fields must hold; dotted paths reach into objects; {} is every record",
        "operators": {operator.value: operator.meaning for operator in CONDITIONS},
        "combine": {"and": ["FILTER"], "or": ["FILTER"], "not": "FILTER"},
        "sort": "at most 5; ties are broken by id, nulls come last",
        "times": "compare created_at and the like with gte and lt as text: 2026-01-31T00:00:00Z",
        "example": {
            "filter": {"eq": {"status": "open"}, "or": [{"lt": {"updated_at": "2026-01-31"}}, {"eq": {"tags": None}}]},
            "sort": [{"updated_at": "desc"}],
        },
    }


def _by_type(entry: OperationEntry) -> dict[str, Any]:
    """The names of fields by their types, which are few; of many fields those that fit, and where the others are."""
    names: dict[str, Any] = {}
    left, characters = list(entry.fields.items()), _FIELDS_CHARACTERS
    while left and (characters := characters - len(left[0][0]) - 3) > 0:
        name, type_ = left.pop(0)
        names.setdefault(str(type_), []).append(name)
    whole = next((each for each in ("get", "list", "api_search") if each in entry.entity.actions), None)
    return {**names, "more": f"{len(left)}: describe {entry.entity_id}.{whole}"} if left else names


def _paging(entry: OperationEntry) -> dict[str, Any] | None:
    """The param that turns the page, the one that sets its size, and the members of Meta."""
    if entry.action_id == SEARCH_ACTION:
        return {"param": "cursor", "size": "limit", "meta": ["has_more", "cursor"]}
    paging = entry.kind.operation(entry.entity_id, entry.action_id).paging
    return {"param": paging.param, "size": paging.size, "meta": list(paging.meta)} if paging else None
