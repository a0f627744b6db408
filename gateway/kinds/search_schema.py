"""JSON Schema of the params of `context_store_search`: the query language, for one entity's fields or for any."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.search_operators import CONDITIONS, Family, Operator
from gateway.kinds.sync import Search

#: the members of a search's `meta`
SEARCH_META = ("has_more", "cursor", "took_ms", "as_of", "total_synced", "synchronized", "complete")
_SCALAR = ["string", "number", "boolean"]
_FILTER = "filter"
#: definition → the JSON Schema of the values that its conditions compare fields with
_CONDITIONS: Mapping[str, dict[str, Any]] = {
    "values": {"type": [*_SCALAR, "null", "array", "object"]},
    "scalars": {"type": _SCALAR},
    "lists": {"type": "array", "maxItems": 1000},
    "texts": {"type": "string"},
}
#: the definition of the conditions that the operators of a family take
_DEFINITION_OF: Mapping[Family, str] = {
    Family.EQUALITY: "values",
    Family.ORDER: "scalars",
    Family.MEMBERSHIP: "lists",
    Family.TEXT: "texts",
    Family.WORDS: "texts",
    Family.ARRAY: "values",
}
#: types of fields that a search sorts by
_ORDERED = ("string", "integer", "number", "boolean")
_DIRECTION = {"enum": ["asc", "desc"]}
_SORT: dict[str, Any] = {
    "type": "array",
    "maxItems": 5,
    "items": {
        "anyOf": [
            {
                "type": "object",
                "properties": {"field": {"type": "string"}, "direction": _DIRECTION},
                "required": ["field"],
                "additionalProperties": False,
            },
            {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _DIRECTION},
        ]
    },
    "description": 'such as [{"updated_at": "desc"}]; ties are broken by id, nulls come last',
}
_FIELDS: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 200,
    "items": {"type": ["string", "array"], "items": {"type": "string"}},
    "description": 'the fields to return, such as ["id", "user.name"]; by default whole records',
}


def search_params_schema(search: Search | None) -> dict[str, Any]:
    """JSON Schema 2020-12 of a search's params; the description of `query.filter` lists the fields of `search`."""
    definitions = _definitions("#/$defs/{}".format)
    fields = (
        "" if search is None else f"; fields: {', '.join(f'{name} ({type_})' for name, type_ in search.fields.items())}"
    )
    filter_ = {"$ref": f"#/$defs/{_FILTER}", "description": f"which records{fields}"}
    return {**_params(filter_, _SORT, _FIELDS), "$defs": definitions}


def search_example(search: Search) -> dict[str, Any]:
    """The params of a typical search."""
    first = next((name for name, type_ in search.fields.items() if type_ in _ORDERED), search.primary_key)
    return {"query": {"filter": {"neq": {first: None}}, "sort": [{first: "desc"}]}, "limit": 10}


def search_call(entity_id: str, search: Search) -> dict[str, Any]:
    """The body of an execute call with a typical search."""
    return {"entity": entity_id, "action": SEARCH_ACTION, "params": search_example(search)}


def search_components(prefix: str) -> dict[str, dict[str, Any]]:
    """The query language for any entity, as named schemas whose references begin with the prefix."""
    params = _params(*({"$ref": f"{prefix}{name}"} for name in ("SearchFilter", "SearchSort", "SearchFields")))
    limit = params["properties"]["limit"] | {"type": ["integer", "string"], "pattern": "^[0-9]+$"}
    return {
        "SearchParams": {
            **params,
            "description": "The params of `context_store_search`.",
            "properties": {**params["properties"], "limit": limit},
        },
        **{_component(name): schema for name, schema in _definitions(lambda name: prefix + _component(name)).items()},
        "SearchSort": _SORT,
        "SearchFields": _FIELDS,
    }


def _component(definition: str) -> str:
    return f"Search{definition.capitalize()}"


def _params(filter_: Mapping[str, Any], sort: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "query": {
                "type": "object",
                "description": "which records, in which order; {} returns all of them",
                "properties": {"filter": filter_, "sort": sort},
                "additionalProperties": False,
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10_000,
                "default": 1_000,
                "description": "records of a page",
            },
            "cursor": {"type": "string", "description": "meta.cursor of the page before"},
            "fields": fields,
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def _definitions(reference_to: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """The schema of a filter and the schemas that it refers to; operators of one family share one."""
    filter_ = {"$ref": reference_to(_FILTER)}
    filters = {"type": "array", "minItems": 1, "items": filter_}
    operators = {
        each.value: {"$ref": reference_to(_DEFINITION_OF[each.family]), "description": each.meaning}
        for each in CONDITIONS
    }
    filter_schema = {
        "type": "object",
        "description": 'conditions that a record must all meet, such as {"eq": {"status": "open"}}; dotted paths name '
        "members of objects",
        "properties": {
            **operators,
            "and": {**filters, "description": Operator.AND.meaning},
            "or": {**filters, "description": Operator.OR.meaning},
            "not": {**filter_, "description": Operator.NOT.meaning},
        },
        "additionalProperties": False,
    }
    conditions = {
        name: {"type": "object", "description": "values by field", "minProperties": 1, "additionalProperties": value}
        for name, value in _CONDITIONS.items()
    }
    return {_FILTER: filter_schema, **conditions}
