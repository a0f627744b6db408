"""What there is to call: kinds, their operations and the skill docs, all generated from the specs."""

from typing import Any

from aiohttp import web

from gateway.connectors.catalog import SEARCH_ACTION, Kind
from gateway.connectors.skills import skill_docs
from gateway.http.answers import json_response
from gateway.http.bodies import Query, read_query
from gateway.http.keys import SERVICES


class DocsQuery(Query):
    """Which document, and which part of it."""

    id: str
    section: str | None = None


def kind_summary(kind: Kind) -> dict[str, Any]:
    spec = kind.spec
    return {
        "kind": spec.kind,
        "connector_type": spec.display_name,
        "definition_id": spec.definition_id,
        "title": spec.title,
        "description": spec.description,
        "auth_methods": [_auth_method(name, kind) for name in spec.authentication],
        "environment": {name: variable.model_dump(mode="json") for name, variable in spec.environment.items()},
        "oauth": spec.oauth is not None,
        "docs_skill_id": spec.kind,
        "entities": {entity: kind.actions_of(entity) for entity in spec.entities},
    }


def _auth_method(name: str, kind: Kind) -> dict[str, Any]:
    method = kind.spec.authentication[name]
    return {
        "id": name,
        "title": method.title,
        "oauth": method.oauth,
        "fields": {field: each.model_dump(mode="json") for field, each in method.credentials.items()},
    }


def kind_view(kind: Kind) -> dict[str, Any]:
    """A kind whole: every operation with the JSON Schema of its params, an example and its effect."""
    return {**kind_summary(kind), "entities": {entity: _entity(kind, entity) for entity in kind.spec.entities}}


def _entity(kind: Kind, entity_id: str) -> dict[str, Any]:
    entity = kind.entity(entity_id)
    actions = {action: _action(kind, entity_id, action) for action in entity.actions}
    view: dict[str, Any] = {"description": entity.description, "fields": entity.fields, "actions": actions}
    if entity.search:
        view["search_fields"] = entity.search.fields
        actions[SEARCH_ACTION] = {
            "description": "Filter and sort the synchronized copy of the records.",
            "effect": "read",
            "runs": "inline",
            "params": {"$ref": "#/components/schemas/SearchParams"},
        }
    return view


def _action(kind: Kind, entity_id: str, action_id: str) -> dict[str, Any]:
    operation = kind.operation(entity_id, action_id)
    action = operation.action
    example = {"entity": entity_id, "action": action_id, "params": action.example}
    meta = list(operation.paging.meta) if operation.paging else []
    return {
        "description": action.description,
        "effect": action.effect.value,
        "runs": action.runs,
        "params": operation.schema,
        "meta": meta,
        "paging": None
        if operation.paging is None
        else {"param": operation.paging.param, "size": operation.paging.size},
        "example": example,
    }


async def list_connector_types(request: web.Request) -> web.Response:
    """GET …/connector-types: every kind in brief."""
    catalog = request.app[SERVICES].catalog
    return json_response({"data": [kind_summary(kind) for kind in catalog], "next_cursor": None})


async def get_connector_type(request: web.Request) -> web.Response:
    """GET …/connector-types/{kind}: one kind whole."""
    return json_response(kind_view(request.app[SERVICES].catalog.kind(request.match_info["kind"])))


async def read_skill_docs(request: web.Request) -> web.Response:
    """GET /api/v1/skills/docs: a kind's document for agents, whole or one section of it."""
    query = read_query(request, DocsQuery)
    return json_response(skill_docs(request.app[SERVICES].catalog.kind(query.id), query.section))
