"""JSON Schema of the params of `context_store_search`: the query language, with the fields of one entity."""

from typing import Any

from gateway.kinds.spec import Search

_OPERATORS = {
    "eq": "the field equals the value; null asks for missing ones",
    "neq": "the field does not equal the value",
    "gt": "greater than",
    "gte": "greater than or equal",
    "lt": "less than",
    "lte": "less than or equal",
    "in": "the field equals one of an array of values",
    "like": "text with % for any run and _ for one character; without either, contains; case is ignored",
    "startswith": "text begins with the value; case is ignored",
    "endswith": "text ends with the value; case is ignored",
    "contains": "text contains the value; case is ignored",
    "keyword": "any of the words occurs",
    "fuzzy": "all of the words occur, in any order, beginnings enough",
    "array_contains": "the array holds the value",
}
_FILTERS = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/filter"}}


def search_params_schema(search: Search) -> dict[str, Any]:
    """JSON Schema 2020-12 of a search's params; its fields are told in the description of `query.filter`."""
    fields = ", ".join(f"{name} ({type_})" for name, type_ in search.fields.items())
    return {
        "type": "object",
        "properties": {
            "query": {
                "type": "object",
                "properties": {
                    "filter": {"$ref": "#/$defs/filter", "description": f"which records; fields: {fields}"},
                    "sort": {
                        "type": "array",
                        "maxItems": 5,
                        "items": {"type": "object", "minProperties": 1, "maxProperties": 2},
                        "description": 'such as [{"updated_at": "desc"}]; nulls come last',
                    },
                },
                "additionalProperties": False,
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000},
            "cursor": {"type": "string", "description": "meta.cursor of the page before"},
            "fields": {
                "type": "array",
                "minItems": 1,
                "maxItems": 200,
                "items": {"type": ["string", "array"], "items": {"type": "string"}},
                "description": 'the fields to answer with, such as ["id", "user.name"]; left out, whole records',
            },
        },
        "required": ["query"],
        "additionalProperties": False,
        "$defs": {"filter": _FILTER},
    }


def _conditions(meaning: str) -> dict[str, Any]:
    return {
        "type": "object",
        "minProperties": 1,
        "description": f"by field (dotted paths reach into objects): {meaning}",
    }


_FILTER: dict[str, Any] = {
    "type": "object",
    "description": 'operators over fields, all of them required, such as {"eq": {"status": "open"}}',
    "properties": {
        **{name: _conditions(meaning) for name, meaning in _OPERATORS.items()},
        "and": _FILTERS,
        "or": _FILTERS,
        "not": {"$ref": "#/$defs/filter"},
    },
    "additionalProperties": False,
}
