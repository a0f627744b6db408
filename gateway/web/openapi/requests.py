"""Requests in the OpenAPI document: parameters of paths and queries, bodies, and their examples."""

import re
from typing import Any

from msgspec import Struct

from gateway.contract.members import ID
from gateway.contract.scim import MEDIA_TYPE
from gateway.kinds.actions import SEARCH_ACTION
from gateway.web.openapi.schemas import REF, Schema, component_name, normalized, ref
from gateway.web.route import Route

#: path variable → its description, unless it is the id of the resource in its name
_PATH_MEANINGS = {
    "flow_id": "The consent's id.",
    "session_id": "The link's id.",
    "entity": "The entity of the file, such as attachments.",
    "kind": "The kind, such as support-desk.",
    "connector_type": "The kind, such as support-desk.",
    "schema": "The schema's URN.",
}
_PATH_EXAMPLES = {"entity": "attachments", "kind": "support-desk", "connector_type": "support-desk"}
_FORM = "application/x-www-form-urlencoded"


def path_parameters(path: str) -> list[dict[str, Any]]:
    """The variables of a path."""
    return [_path_parameter(name) for name in re.findall(r"{(\w+)}", path)]


def _path_parameter(name: str) -> dict[str, Any]:
    description = _PATH_MEANINGS.get(name) or f"The {name.removesuffix('_id')}'s id."
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", **({"format": "uuid"} if name.endswith("_id") else {})},
        "example": path_example(name),
    }


def path_example(name: str) -> str:
    return _PATH_EXAMPLES.get(name, ID)


def query_parameters(route: Route) -> list[dict[str, Any]]:
    """The parameters of the route's query string."""
    if route.query is None:
        return []
    schema = normalized(route.query.model_json_schema(ref_template=f"{REF}{{model}}"))
    examples = query_example(route)
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": member.get("description", ""),
            "schema": member,
            **({"style": "form", "explode": False} if is_list(member) else {}),
            **({"example": examples[name]} if name in examples else {}),
        }
        for name, member in schema["properties"].items()
    ]
    if schema.get("additionalProperties") is True:
        params = {"type": "object", "description": schema["description"], "additionalProperties": True}
        parameters.append({"name": "params", "in": "query", "description": schema["description"], "schema": params})
    return parameters


def is_list(schema: Schema) -> bool:
    """Whether the member is a list of values separated by commas."""
    return any(each.get("type") == "array" for each in schema.get("anyOf", ()))


def query_example(route: Route) -> dict[str, Any]:
    """The example of the query string: `EXAMPLE` of the model."""
    return dict(getattr(route.query, "EXAMPLE", {}))


def body_example(route: Route, schemas: dict[str, Schema]) -> dict[str, Any] | None:
    """The first example of the body; None without one."""
    return next((each["value"] for each in _body_examples(route, schemas).values()), None)


def _body_examples(route: Route, schemas: dict[str, Schema]) -> dict[str, Any]:
    """The examples of the body: `EXAMPLES` of the model, or the example of the Struct."""
    if route.body is not None and issubclass(route.body, Struct):
        return {"example": {"value": schemas[component_name(route.body)]["examples"][0]}}
    examples = getattr(route.form or route.body, "EXAMPLES", {})
    return {name: {"value": value} for name, value in examples.items()}


def is_form(route: Route) -> bool:
    return route.form is not None or (route.is_browser_step and route.method == "POST")


def request_body(route: Route, schemas: dict[str, Schema]) -> dict[str, Any] | None:
    """The request body of an operation; None if it has none."""
    examples = _body_examples(route, schemas)
    shown = {"examples": examples} if examples else {}
    if route.form is not None:
        return {"required": True, "content": {_FORM: {"schema": ref(route.form.__name__), **shown}}}
    if is_form(route):
        fields: Schema = {"type": "object", "description": "The fields of the page.", "additionalProperties": True}
        return {"required": True, "content": {_FORM: {"schema": fields}}}
    if route.file_media is not None:
        return {"required": True, "content": {route.file_media: {"schema": {"type": "string", "format": "binary"}}}}
    if route.body is None:
        return None
    name = component_name(route.body) if issubclass(route.body, Struct) else route.body.__name__
    media_types = ("application/json", *((MEDIA_TYPE,) if route.is_scim else ()))
    content = {media: {"schema": ref(name), **shown} for media in media_types} | {
        media: {"schema": {"type": "string"}, "example": route.line_example} for media in route.line_media
    }
    return {"required": not route.has_optional_body, "content": content}


def has_body(route: Route) -> bool:
    return route.body is not None or route.file_media is not None or is_form(route)


def search_condition() -> Schema:
    """The condition that `params` are SearchParams if the action is the search of the copy."""
    is_search = {"properties": {"action": {"const": SEARCH_ACTION}}, "required": ["action"]}
    return {"if": is_search, "then": {"properties": {"params": ref("SearchParams")}, "required": ["params"]}}
