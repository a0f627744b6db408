"""Kinds and their operations as plain data, the same for the HTTP API, the command line and the documents."""

from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.authentication import Deprecation
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.paging import Order, Paging
from gateway.kinds.search_schema import SEARCH_META, search_call, search_params_schema


def kind_summary(kind: Kind) -> dict[str, Any]:
    """A kind in brief: how to authenticate, its entities and the names of their actions."""
    spec = kind.spec
    return {
        "kind": spec.kind,
        "application": spec.application,
        "connector_type": spec.display_name,
        "definition_id": spec.definition_id,
        "title": spec.title,
        "description": spec.description,
        "auth_methods": [_auth_method(name, kind) for name in spec.authentication],
        "environment": {name: variable.model_dump(mode="json") for name, variable in spec.environment.items()},
        "oauth": spec.oauth is not None,
        "deprecations": [
            {"path": each.path or None, "operations": list(each.operations), **_sunset(each)}
            for each in spec.deprecations
        ],
        "docs_skill_id": spec.kind,
        "entities": {entity: kind.actions_of(entity) for entity in spec.entities},
    }


def kind_view(kind: Kind) -> dict[str, Any]:
    """A kind whole: every operation with the JSON Schema of its params, an example and its effect."""
    return {**kind_summary(kind), "entities": {entity: _entity(kind, entity) for entity in kind.spec.entities}}


def _auth_method(name: str, kind: Kind) -> dict[str, Any]:
    method = kind.spec.authentication[name]
    return {
        "id": name,
        "title": method.title,
        "description": method.description,
        "oauth": method.oauth and method.grant_type is None,
        "grant_type": method.grant_type,
        **_sunset(method),
        "fields": {
            field: {**each.model_dump(mode="json"), "format": method.format_of(field)}
            for field, each in method.credentials.items()
        },
    }


def _sunset(sunset: Deprecation) -> dict[str, Any]:
    """The members of a deprecation; each is null if the spec does not have it."""
    return sunset.model_dump(mode="json", include=set(Deprecation.model_fields))


def _entity(kind: Kind, entity_id: str) -> dict[str, Any]:
    entity = kind.entity(entity_id)
    actions = {action: _action(kind.operation(entity_id, action)) for action in entity.actions}
    view: dict[str, Any] = {"description": entity.description, "fields": entity.fields, "actions": actions}
    if entity.search:
        view["search_fields"] = entity.search.fields
        actions[SEARCH_ACTION] = {
            "description": "Filter and sort the synchronized copy of the records.",
            "effect": "read",
            "runs": "inline",
            "params": search_params_schema(entity.search),
            "meta": list(SEARCH_META),
            "paging": None,
            "alternatives": [],
            "example": search_call(entity_id, entity.search),
        }
    return view


def _action(operation: Operation) -> dict[str, Any]:
    action, paging = operation.action, operation.paging
    return {
        "description": action.description,
        "effect": action.effect.value,
        "runs": action.runs,
        "params": operation.schema,
        "meta": list(paging.members) if paging else [],
        "paging": _paging(paging, operation.order),
        "alternatives": _alternatives(operation),
        "example": operation.example,
    }


def _paging(paging: Paging | None, order: Order) -> dict[str, Any] | None:
    """How to request the next page: the value of the Meta member `next` goes into `param`."""
    if paging is None:
        return None
    return {
        "style": paging.style.value,
        "param": paging.param or None,
        "size": paging.size,
        "next": ".".join(paging.next) or None,
        "has_more": paging.has_more,
        "max_pages": paging.max_pages,
        "order": order if isinstance(order, str) else "by_time",
        "incomplete": None if paging.incomplete is None else paging.incomplete.meta,
    }


def _alternatives(operation: Operation) -> list[dict[str, Any]]:
    """The paging that applies if a param is left out."""
    return [
        {"without": without, "paging": _paging(other.paging, other.order)} for without, other in operation.alternatives
    ]
