"""Maps parameters and bodies of a document to params: placement, style, required params. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from gateway.foundation.texts import is_visible
from gateway.kinds.importing.model import Finding, Node, NotMapped, SourceBody, SourceOperation, for_a_person, guessed
from gateway.kinds.importing.references import Document, node_of
from gateway.kinds.importing.responses import flattened
from gateway.kinds.importing.schemas import Schema, Schemas, described, types_in
from gateway.kinds.importing.words import identifier, plain
from gateway.kinds.members import FORM, is_json

_MULTIPART = "multipart/form-data"
#: headers that the gateway sets itself (OpenAPI 3.1, Parameter Object), and those of credentials
_OWN_HEADERS = ("accept", "content-type", "authorization", "content-length", "host", "user-agent")
_LIST_STYLES = ("spaceDelimited", "pipeDelimited", "deepObject")
#: the schema of a file in a multipart body
_FILE = {
    "type": "object",
    "properties": {
        "content": {"type": "string", "contentEncoding": "base64", "description": "the bytes of the file in base64"},
        "filename": {"type": "string", "description": "name of the file"},
        "content_type": {"type": "string", "description": "media type of the file"},
    },
    "required": ["content"],
    "additionalProperties": False,
}


@dataclass(kw_only=True)
class RequestParts:
    """The members of an action that describe its request."""

    path: str
    params: dict[str, Schema] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    constant_query: dict[str, str] = field(default_factory=dict)
    content_type: str | None = None
    request_body: str | None = None
    findings: list[Finding] = field(default_factory=list)
    method: str = "GET"

    def add(self, name: str, schema: Schema, *, where: str, is_required: bool = False, wire: str | None = None) -> str:
        """Add a param and return its name: `name`, or with its place as a prefix if `name` is taken."""
        wire = name if wire is None else wire
        chosen, number = name, 2
        if chosen in self.params:
            chosen = f"{where}_{name}"
        while chosen in self.params:
            chosen, number = f"{where}_{name}_{number}", number + 1
        placed = {"in": where} if where == "header" or self._is_elsewhere(where) else {}
        self.params[chosen] = {**schema, **placed, **({"as": wire} if chosen != wire and where != "path" else {})}
        if is_required:
            self.required.append(chosen)
        return chosen

    def _is_elsewhere(self, where: str) -> bool:
        return where in ("query", "body") and where != ("query" if self.method in ("GET", "DELETE") else "body")


def request_parts(operation: SourceOperation, document: Document, schemas: Schemas) -> RequestParts:
    """The request of an operation; raises NotMapped if the spec language cannot express it."""
    if operation.method not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        raise NotMapped(f"the spec language has no {operation.method}")
    path, _, query = operation.path.partition("#")[0].partition("?")
    parts = RequestParts(path=path, method=operation.method)
    parts.constant_query = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    _add_path(parts, operation, schemas)
    declared = {str(each["name"]) for each in operation.parameters if each.get("in") == "query"}
    for parameter in operation.parameters:
        if parameter.get("in") == "query":
            _add_query(parts, parameter, schemas, declared)
        elif parameter.get("in") == "header":
            _add_header(parts, parameter, schemas)
        elif parameter.get("in") == "cookie":
            reason = "params in cookies are left out"
            if parameter.get("required") is True:
                raise NotMapped("the spec language has no params in cookies", str(parameter["name"]))
            parts.findings.append(guessed(operation, reason, str(parameter["name"])))
    if operation.body is not None:
        _add_body(parts, operation, operation.body, document, schemas)
    return parts


def _read(parameter: Node, schemas: Schemas) -> Schema:
    media = next(iter(node_of(parameter.get("content")).values()), None)
    schema = node_of(media).get("schema") if media is not None else parameter.get("schema", parameter)
    found = schemas.of_param(schema, str(parameter["name"]), parameter.get("description", ""))
    if parameter.get("deprecated") is True:
        found = {**found, "deprecated": True}
    example = parameter.get("example")
    if "examples" not in found and isinstance(example, str | int) and is_visible(str(example)):
        found = {**found, "examples": [example]}
    return found


def _add_path(parts: RequestParts, operation: SourceOperation, schemas: Schemas) -> None:
    """Add the params of the path, in its order; undeclared ones are strings."""
    declared = {str(each["name"]): each for each in operation.parameters if each.get("in") == "path"}
    for written in re.findall(r"{([^}]*)}", parts.path):
        name = re.sub(r"\W", "_", written.strip("+*")) or "value"
        if name in parts.params:
            raise NotMapped("the path has a param twice", name)
        parameter = declared.get(written)
        if parameter is None:
            schema: Schema = described({"type": "string"}, written)
            parts.findings.append(guessed(operation, "an undeclared param of the path is mapped as a string", written))
        else:
            schema = _read(parameter, schemas)
        parts.path = parts.path.replace(f"{{{written}}}", f"{{{name}}}", 1)
        parts.add(name, _without_default(schema), is_required=True, where="path")
    if any("{" in value for value in parts.constant_query.values()):
        raise NotMapped("the path has a param in its query; declare it as a parameter in the query")
    if not re.fullmatch(r"/\S*", parts.path):
        raise NotMapped("the path contains spaces or does not begin with a slash")


def _add_query(parts: RequestParts, parameter: Node, schemas: Schemas, declared: Collection[str]) -> None:
    wire = str(parameter["name"])
    schema = _read(parameter, schemas)
    is_required = parameter.get("required") is True
    types = types_in(schema)
    style, explode = parameter.get("style", "form"), parameter.get("explode", parameter.get("style", "form") == "form")
    if "object" in types and style == "form" and "content" not in parameter and explode and "properties" in schema:
        own = {name: member for name, member in schema["properties"].items() if name == wire or name not in declared}
        for name, member in own.items():
            _add(
                parts,
                name,
                member,
                name in schema.get("required", ()) and is_required,
                "query",
            )
        return
    if "object" in types and style == "deepObject" and _holds_paging(wire, schema):
        for name, member in schema["properties"].items():
            _add(parts, f"{wire}[{name}]", member, False, "query")
        return
    styled: Schema = {}
    if {"array", "object"} & set(types):
        if style in _LIST_STYLES:
            styled["style"] = style
        elif explode is False and "array" in types:
            styled["explode"] = False
    _add(parts, wire, {**schema, **styled}, is_required, "query")


def _holds_paging(wire: str, schema: Schema) -> bool:
    """Whether an object holds only the params of pages: each of its members is then a param, so that pages turn."""
    is_named = identifier(wire) in ("page", "paging", "pagination", "pager")
    return is_named and bool(schema.get("properties")) and not any("." in name for name in schema["properties"])


def _add_header(parts: RequestParts, parameter: Node, schemas: Schemas) -> None:
    wire = str(parameter["name"])
    schema = _read(parameter, schemas)
    only = schema.get("enum", ())
    constant = schema.get("default", only[0] if len(only) == 1 else None)
    if wire.lower() == "content-type":
        return
    is_version = wire.lower() == "accept" or wire.lower().endswith("version")
    if constant is not None and (is_version or (len(only) == 1 and parameter.get("required") is True)):
        if not (wire.lower() == "accept" and str(constant) == "application/json"):
            parts.headers[wire] = str(constant)
    elif wire.lower() not in _OWN_HEADERS:
        _add(parts, wire, schema, parameter.get("required") is True, "header")


def _add(parts: RequestParts, wire: str, schema: Schema, is_required: bool, where: str) -> str:
    """Add a param by its name in the request, converted if it is no identifier; returns the param's name.

    The default of a required param is sent, and that of any other is described.
    """
    is_sent = is_required and where != "header" and "default" in schema
    schema, is_required = (schema, False) if is_sent else (_with_described_default(schema), is_required)
    name = wire if re.fullmatch(r"[A-Za-z_]\w*", wire) else identifier(wire) or "value"
    return parts.add(name, schema, is_required=is_required, where=where, wire=wire)


def _with_described_default(schema: Schema) -> Schema:
    """A schema with its defaults moved to the descriptions, because the application applies them itself."""
    if "default" in schema:
        default = schema["default"]
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        text = str(schema.get("description", "")).rstrip(".")
        is_described = shown in text and "efault" in text
        schema = {**_without_default(schema), "description": text if is_described else f"{text}; default: {shown}"}
    if any(_has_default(each) for each in schema.get("properties", {}).values()):
        schema = {
            **schema,
            "properties": {name: _with_described_default(each) for name, each in schema["properties"].items()},
        }
    items = schema.get("items")
    if isinstance(items, dict) and _has_default(items):
        schema = {**schema, "items": _with_described_default(items)}
    return schema


def _has_default(schema: Schema) -> bool:
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if schema.get("items") else [])]
    return "default" in schema or any(_has_default(each) for each in inner)


def _without_default(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name != "default"}


def _add_body(
    parts: RequestParts, operation: SourceOperation, body: SourceBody, document: Document, schemas: Schemas
) -> None:
    if operation.method == "GET":
        if body.is_required:
            raise NotMapped("a GET with a required body")
        parts.findings.append(guessed(operation, "the optional body of a GET is left out"))
        return
    parts.content_type = body.content_type
    if is_json(body.content_type) or body.content_type in (FORM, _MULTIPART):
        schema = schemas.of_param(body.schema, "body")
        if _is_flat(schema, body):
            _add_members(parts, operation, body, schema, document)
        elif is_json(body.content_type):
            parts.request_body = _add(parts, "body", schema, body.is_required, "body")
        else:
            raise NotMapped("the document does not name the members of a form", body.content_type)
        return
    schema = described({"type": "string"}, "body", plain(body.schema.get("description")) or "the whole body")
    if not body.content_type.startswith("text/") and not body.content_type.endswith(("xml", "yaml")):
        schema = {**schema, "contentEncoding": "base64", "description": "the bytes of the body in base64"}
    parts.request_body = _add(parts, "content", schema, body.is_required, "body")


def _is_flat(schema: Schema, body: SourceBody) -> bool:
    """Whether each member of a body can be a param; a dot in the name of a JSON member would mean nesting."""
    if types_in(schema) not in (["object"], ["object", "null"]) or not schema.get("properties"):
        return False
    return not is_json(body.content_type) or not any("." in name for name in schema["properties"])


def _add_members(
    parts: RequestParts, operation: SourceOperation, body: SourceBody, schema: Schema, document: Document
) -> None:
    required = schema.get("required", ())
    sources = node_of(flattened(document, body.schema).get("properties"))
    for name, member in schema["properties"].items():
        if body.content_type == _MULTIPART and _is_file(document, sources.get(name)):
            if "array" in types_in(member):
                parts.findings.append(for_a_person(operation, "a list of files is sent as one file", name))
            member = {**_FILE, "description": member["description"]}
        elif body.content_type == FORM and {"array", "object"} & set(types_in(member)):
            member = {**member, **_form_style(node_of(body.encoding.get(name)), types_in(member))}
        if is_json(body.content_type) and "object" in types_in(member) and _holds_paging(name, member):
            for inner, schema_of_inner in member["properties"].items():
                _add(parts, f"{name}.{inner}", schema_of_inner, False, "body")
            continue
        _add(parts, name, member, name in required, "body")


def _is_file(document: Document, schema: object) -> bool:
    node = document.resolved(schema)
    if node.get("type") == "array":
        node = document.resolved(node.get("items"))
    return (
        node.get("format") in ("binary", "base64")
        or node.get("type") == "file"
        or node.get("contentEncoding") == "binary"
        or "contentMediaType" in node
    )


def _form_style(encoding: Mapping[str, Any], types: list[str]) -> Schema:
    style, explode = encoding.get("style", "form"), encoding.get("explode", True)
    if style in _LIST_STYLES:
        return {"style": style}
    if "array" not in types:
        return {}
    return {"style": "form"} if explode else {"style": "form", "explode": False}
