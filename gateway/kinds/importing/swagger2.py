"""Converts Swagger 2.0 documents to OpenAPI 3, as far as an import reads them. References are not changed."""

from collections.abc import Mapping
from typing import Any

from gateway.kinds.importing.model import Node
from gateway.kinds.importing.references import Document, node_of

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
#: members of a parameter that are not part of its schema
_OF_PARAMETER = ("name", "in", "description", "required", "collectionFormat", "allowEmptyValue")
#: collectionFormat → style and explode
_STYLES: Mapping[str, Node] = {
    "csv": {"style": "form", "explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"style": "form", "explode": True},
}
#: names of OAuth flows in Swagger 2 → in OpenAPI 3
_FLOWS = {"accessCode": "authorizationCode", "application": "clientCredentials"}
_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


def from_swagger2(document: Document) -> Document:
    """The document with `servers`, `paths` and `components.securitySchemes` in the form of OpenAPI 3."""
    root = document.root
    paths = {name: _path_item(document, node_of(item)) for name, item in node_of(root.get("paths")).items()}
    schemes = node_of(root.get("securityDefinitions")).items()
    components = {"securitySchemes": {name: _scheme(node_of(scheme)) for name, scheme in schemes}}
    return Document({**root, "servers": _servers(root), "paths": paths, "components": components})


def _servers(root: Node) -> list[Node]:
    base = str(root.get("basePath") or "").rstrip("/")
    host, schemes = root.get("host"), root.get("schemes") or ["https"]
    if not host:
        return [{"url": base or "/"}]
    scheme = "https" if "https" in schemes else schemes[0]
    return [{"url": f"{scheme}://{host}{base}"}]


def _path_item(document: Document, item: Node) -> Node:
    item = document.resolved(item)
    shared = [document.resolved(each) for each in item.get("parameters") or ()]
    operations = {
        method: _operation(document, document.resolved(item[method]), shared)
        for method in _METHODS
        if node_of(item.get(method))
    }
    return {"parameters": [_parameter(each) for each in shared if _is_parameter(each)], **operations}


def _operation(document: Document, operation: Node, shared: list[Node]) -> Node:
    own = [document.resolved(each) for each in operation.get("parameters") or ()]
    named = {(each.get("name"), each.get("in")) for each in own}
    every = own + [each for each in shared if (each.get("name"), each.get("in")) not in named]
    produces = operation.get("produces") or document.root.get("produces") or ["application/json"]
    responses = {
        status: _response(document.resolved(response), produces)
        for status, response in node_of(operation.get("responses")).items()
    }
    changed: dict[str, Any] = {
        **operation,
        "parameters": [_parameter(each) for each in own if _is_parameter(each)],
        "responses": responses,
    }
    body = _body(document, operation, every)
    return {**changed, "requestBody": body} if body else changed


def _is_parameter(parameter: Node) -> bool:
    return parameter.get("in") not in ("body", "formData")


def _parameter(parameter: Node) -> Node:
    schema = {name: value for name, value in parameter.items() if name not in _OF_PARAMETER}
    kept = {name: value for name, value in parameter.items() if name in ("name", "in", "description", "required")}
    style = _STYLES.get(parameter.get("collectionFormat", "csv"), _STYLES["csv"])
    return {**kept, "schema": schema, **(style if parameter.get("type") == "array" else {})}


def _body(document: Document, operation: Node, parameters: list[Node]) -> Node | None:
    consumes = operation.get("consumes") or document.root.get("consumes") or ["application/json"]
    whole = next((each for each in parameters if each.get("in") == "body"), None)
    if whole is not None:
        content = {media_type: {"schema": node_of(whole.get("schema"))} for media_type in consumes}
        return {"required": bool(whole.get("required")), "content": content}
    fields = [each for each in parameters if each.get("in") == "formData"]
    if not fields:
        return None
    has_file = any(each.get("type") == "file" for each in fields)
    media_type = _MULTIPART if has_file or (_MULTIPART in consumes and _FORM not in consumes) else _FORM
    schema = {
        "type": "object",
        "properties": {each["name"]: _form_field(each) for each in fields if "name" in each},
        "required": [each["name"] for each in fields if each.get("required") and "name" in each],
    }
    encoding = {
        each["name"]: _STYLES.get(each.get("collectionFormat", "csv"), _STYLES["csv"])
        for each in fields
        if each.get("type") == "array" and "name" in each
    }
    return {"required": bool(schema["required"]), "content": {media_type: {"schema": schema, "encoding": encoding}}}


def _form_field(field: Node) -> Node:
    schema = dict(node_of(_parameter(field)["schema"]))
    if schema.get("type") == "file":
        schema |= {"type": "string", "format": "binary"}
    return {**schema, **({"description": field["description"]} if "description" in field else {})}


def _response(response: Node, produces: list[str]) -> Node:
    schema = node_of(response.get("schema"))
    if not schema:
        return {"description": "", "headers": node_of(response.get("headers")), "content": {}}
    if schema.get("type") == "file":
        binary = [each for each in produces if "json" not in each] or ["application/octet-stream"]
        schema, produces = {"type": "string", "format": "binary"}, binary
    content = {media_type: {"schema": schema} for media_type in produces}
    return {"description": "", "headers": node_of(response.get("headers")), "content": content}


def _scheme(scheme: Node) -> Node:
    if scheme.get("type") == "basic":
        return {**scheme, "type": "http", "scheme": "basic"}
    if scheme.get("type") != "oauth2":
        return scheme
    flow = str(scheme.get("flow", ""))
    return {**scheme, "flows": {_FLOWS.get(flow, flow): scheme}}
