"""Describes operations for agents, in full or as a summary, as plain data."""

from collections.abc import Mapping
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.entries import OperationEntry, kept_with_kind
from gateway.kinds.find.parts import part_of, size_of, within
from gateway.kinds.find.schemas import constraint_sentences, tool_schema
from gateway.kinds.find.signatures import signature_of
from gateway.kinds.search_operators import CONDITIONS

#: the name that selects the description of the query language, in place of an operation's
QUERY_LANGUAGE = "query-language"
#: maximum characters of the names of fields, for a search, and for another action with many fields
_FIELDS_CHARACTERS = 900
#: maximum bytes of a description; about 4 bytes are one token
_MAX_BYTES = 4_000
#: the schema of the params of every search of a copy
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


@kept_with_kind
def summary(entry: OperationEntry) -> Mapping[str, Any]:
    """A summary of an operation: names, effect, signature and description. The mapping is kept."""
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

    A search of the copy refers to `query_language`, which all searches share; its `fields` are those that filters may
    use, by type. Many fields of another action are listed in the same way. The largest definitions of a long schema are
    replaced by references, see `described_part`.
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
    """The definition that an operation's description refers to as a part; raises InvalidParams."""
    return part_of(entry, name, _MAX_BYTES)


def query_language() -> dict[str, Any]:
    """The description of the query language of every `context_store_search`."""
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
    """The names of fields by type; of many fields those that fit, and the operation that lists the others."""
    names: dict[str, Any] = {}
    left, characters = list(entry.fields.items()), _FIELDS_CHARACTERS
    while left and (characters := characters - len(left[0][0]) - 3) > 0:
        name, type_ = left.pop(0)
        names.setdefault(str(type_), []).append(name)
    whole = next((each for each in ("get", "list", "api_search") if each in entry.entity.actions), None)
    return {**names, "more": f"{len(left)}: describe {entry.entity_id}.{whole}"} if left else names


def _paging(entry: OperationEntry) -> dict[str, Any] | None:
    """The param for the next page, the param for the page size, and the members of Meta."""
    if entry.action_id == SEARCH_ACTION:
        return {"param": "cursor", "size": "limit", "meta": ["has_more", "cursor"]}
    paging = entry.kind.operation(entry.entity_id, entry.action_id).paging
    return {"param": paging.param, "size": paging.size, "meta": list(paging.meta)} if paging else None
