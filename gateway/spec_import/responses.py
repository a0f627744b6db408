"""Finds the records in responses, and their fields: pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.kinds.members import is_json
from gateway.kinds.suggestions import singular
from gateway.spec_import.model import Finding, Node, NotMapped, Response, SourceOperation, guessed
from gateway.spec_import.names import own_verb, path_names
from gateway.spec_import.references import Document, node_of
from gateway.spec_import.words import identifier

#: names of members with the records of a list, the most certain first
_LISTS = ("data", "items", "results", "records", "values", "entries", "list", "objects", "resources", "content", "rows")
#: names of members that may stand beside one record
_BESIDE = frozenset(
    {"meta", "metadata", "links", "_links", "jsonapi", "included", "request_id", "type", "ok", "success"}
)
_MAX_MERGED, _MAX_FIELDS = 8, 150


@dataclass(frozen=True, slots=True)
class Shape:
    """The content of a response: a list, a record or a file, and the schema of the records."""

    #: `records` or `record` and its path; None for a file
    member: str | None
    path: str
    record: Node
    #: the object that holds the list, and perhaps members for paging
    around: Node
    headers: frozenset[str]
    findings: tuple[Finding, ...] = ()


def shape_of(operation: SourceOperation, document: Document) -> Shape:
    """The shape of a successful response; raises NotMapped if it is neither JSON nor a file of a GET."""
    response = _main(operation)
    if response is None or (not response.content and response.status.startswith("2")):
        headers = response.headers if response else frozenset()
        return Shape("record", "$", {}, {}, headers)
    json_types = [name for name in response.content if is_json(name) or name == "*/*"]
    if not json_types:
        return _file(operation, response)
    media = response.content[json_types[0]]
    schema = schema_of(document, media)
    return _of_json(operation, document, schema, response)


def _main(operation: SourceOperation) -> Response | None:
    """The response with content and the lowest status, else the first response."""
    with_content = [each for each in operation.responses if each.content]
    return next(iter(with_content or operation.responses), None)


def schema_of(document: Document, media: Node) -> Node:
    """The schema of a media type; without one, that of its example."""
    schema = flattened(document, media.get("schema"))
    if schema.get("properties") or schema.get("items") or (schema.get("type") not in (None, "object")):
        return schema
    examples = [document.resolved(each).get("value") for each in node_of(media.get("examples")).values()]
    shown = next((each for each in (media.get("example"), *examples, schema.get("example")) if each is not None), None)
    return schema if shown is None else implied_schema(shown)


def implied_schema(value: Any, depth: int = 4) -> Node:
    """The types and members that an example implies, to a depth of `depth`."""
    match value:
        case dict():
            members = list(value.items())[:_MAX_FIELDS] if depth else []
            return {
                "type": "object",
                "properties": {str(name): implied_schema(each, depth - 1) for name, each in members},
            }
        case list():
            return {"type": "array", "items": implied_schema(value[0], depth - 1) if value and depth else {}}
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "integer" if isinstance(value, int) else "number"}
        case None:
            return {}
    return {"type": "string"}


def flattened(document: Document, value: object, depth: int = 0) -> Node:
    """A schema with the properties of its `allOf` and of the first of its `oneOf` or `anyOf` that is not null.

    Null is taken out of its types; the schema is then `nullable`.
    """
    if depth > _MAX_MERGED:
        return document.resolved(value)
    known = document.flat.get(id(value))
    if known is None or known[0] is not value:
        known = document.flat[id(value)] = value, _flattened(document, document.resolved(value), depth)
    return known[1]


def _flattened(document: Document, node: Node, depth: int) -> Node:
    if isinstance(node.get("type"), list) and "null" in node["type"]:
        types = [each for each in node["type"] if each != "null"]
        node = {**node, "type": types[0] if len(types) == 1 else types, "nullable": True}
    if isinstance(node_of(node.get("properties")).get("$ref"), str):
        node = {**node, "properties": document.members(node, "properties")}
    choices = [each for name in ("oneOf", "anyOf") for each in document.listed(node.get(name))]
    valued = [each for each in choices if document.resolved(each).get("type") != "null"]
    parts = [*document.listed(node.get("allOf")), *valued[:1]]
    if not parts:
        return node
    inner = [flattened(document, each, depth + 1) for each in parts]
    properties: dict[str, Any] = {}
    for each in [*inner, node]:
        properties |= node_of(each.get("properties"))
    found = {name: member for each in inner for name, member in each.items()} | dict(node)
    if len(valued) < len(choices):
        found["nullable"] = True
    return {**found, "properties": properties} if properties else found


def _file(operation: SourceOperation, response: Response) -> Shape:
    kinds = ", ".join(response.content)
    if operation.method == "GET":
        reason = "a response that is not JSON is mapped as a download"
        sure = any(
            re.match(r"application/(octet-stream|pdf|zip)|image/|audio/|video/", name) for name in response.content
        )
        if not response.content:
            reason, sure, kinds = "a redirect is mapped as a download", False, f"status {response.status}"
        return Shape(None, "", {}, {}, response.headers, () if sure else (guessed(operation, reason, kinds),))
    if response.content:
        raise NotMapped("a write whose response is not JSON", kinds)
    return Shape("record", "$", {}, {}, response.headers)


def _of_json(operation: SourceOperation, document: Document, schema: Node, response: Response) -> Shape:
    headers = response.headers
    if _is_array(schema):
        if operation.method == "GET" or _lists(operation):
            return Shape("records", "$", flattened(document, schema.get("items")), {}, headers)
        return Shape("record", "$", {}, {}, headers)
    found = _list_in(operation, document, schema)
    if found is not None:
        path, items, around, is_sure = found
        reason = "the only list of objects in the response is mapped as the records"
        doubts = () if is_sure else (guessed(operation, reason, path, member="records"),)
        return Shape("records", path, flattened(document, items), around, headers, doubts)
    name = _only_record(document, schema)
    if name is not None:
        return Shape("record", name, flattened(document, node_of(schema["properties"])[name]), {}, headers)
    if operation.method == "GET" and own_verb(operation) == "list":
        doubt = guessed(
            operation, "it is named a list, but its response has none: the whole response is mapped as the record"
        )
        return Shape("record", "$", schema, {}, headers, (doubt,))
    return Shape("record", "$", schema, {}, headers)


def _is_array(schema: Node) -> bool:
    return schema.get("type") == "array" or ("items" in schema and "properties" not in schema)


def _lists(operation: SourceOperation) -> bool:
    """Whether an operation may return a list: a GET, or a POST whose path ends with a search."""
    route = path_names(operation.path)
    last = route.groups[-1][-1] if route.groups and not route.ends_with_param else ""
    return operation.method == "GET" or (operation.method == "POST" and last in ("search", "query", "lookup"))


def _list_in(operation: SourceOperation, document: Document, schema: Node) -> tuple[str, Any, Node, bool] | None:
    """The path of the list of records, the schema of its items, the object that holds it, and whether it is certain."""
    if not _lists(operation):
        return None
    route = path_names(operation.path)
    asked = {word for group in route.groups[-1:] for word in (group[-1], singular(group[-1]))}
    is_listing = own_verb(operation) in ("list", "search", "query", "find") or _is_paged(operation)
    if route.ends_with_param and not is_listing:
        return None
    arrays = list(_arrays(document, schema))
    for path, items, around in arrays:
        last = path.rpartition(".")[2]
        if last.lower() in _LISTS or {identifier(last), singular(identifier(last))} & asked:
            is_page = is_listing or last.lower() in _LISTS or len(node_of(schema.get("properties"))) <= _PAGE_MEMBERS
            if is_page:
                return path, items, around, True
    objects = [each for each in arrays if _holds_objects(document, each[1])]
    if is_listing and len(objects) == 1:
        return (*objects[0], False)
    return None


#: maximum members of an object that holds only a list and its paging
_PAGE_MEMBERS = 6


def _is_paged(operation: SourceOperation) -> bool:
    names = {identifier(str(each["name"])) for each in operation.parameters if each.get("in") == "query"}
    return bool(names & {"page", "per_page", "page_size", "pagesize", "limit", "offset", "cursor", "page_token"})


def _arrays(document: Document, schema: Node, prefix: str = "", depth: int = 2) -> Iterator[tuple[str, Any, Node]]:
    """Every list in an object and in the objects within it, the outer ones first."""
    properties = node_of(schema.get("properties"))
    members = {str(name): flattened(document, each) for name, each in properties.items() if "." not in str(name)}
    for name, member in members.items():
        if _is_array(member):
            yield f"{prefix}{name}", member.get("items"), schema
    if depth > 1:
        for name, member in members.items():
            if node_of(member.get("properties")) and name.lower() in (
                *_LISTS,
                "result",
                "response",
                "_embedded",
                "payload",
            ):
                yield from _arrays(document, member, f"{prefix}{name}.", depth - 1)


def _holds_objects(document: Document, items: object) -> bool:
    node = flattened(document, items)
    return node.get("type") == "object" or "properties" in node


def _only_record(document: Document, schema: Node) -> str | None:
    """The member that is the record, if the response has only members of `_BESIDE` besides it."""
    properties = node_of(schema.get("properties"))
    objects = [
        str(name)
        for name, member in properties.items()
        if node_of((read := flattened(document, member)).get("properties")) or read.get("type") == "object"
    ]
    if len(properties) == 1 and len(objects) == 1 and "." not in objects[0]:
        return objects[0]
    rest = {str(name).lower() for name in properties if name != "data"}
    return "data" if "data" in objects and rest <= _BESIDE else None


def fields_of(document: Document, record: Node) -> dict[str, str]:
    """The members of a record and their types, as `fields` of a spec has them."""
    found: dict[str, str] = {}
    for name, member in list(node_of(record.get("properties")).items())[:_MAX_FIELDS]:
        found[str(name)] = _field_type(document, flattened(document, member))
    return found


def _field_type(document: Document, schema: Node) -> str:
    named = schema.get("type")
    types = [named] if isinstance(named, str) else [each for each in named or () if isinstance(each, str)]
    is_nullable = schema.get("nullable") is True
    if len(types) != 1 or types[0] not in ("string", "integer", "number", "boolean", "object", "array"):
        text = "object" if "properties" in schema else "any"
    elif types[0] == "array":
        inner = flattened(document, schema.get("items")).get("type")
        text = f"array<{inner}>" if inner in ("string", "integer", "number", "boolean", "object") else "array"
    else:
        text = types[0]
    return f"{text}?" if is_nullable else text
