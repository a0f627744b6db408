"""Finds the records in responses, and their fields: pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.kinds.importing.model import Finding, Node, NotMapped, Response, SourceOperation, guessed
from gateway.kinds.importing.names import own_verb, path_names, singular
from gateway.kinds.importing.references import Document, node_of, reference_of
from gateway.kinds.importing.words import identifier
from gateway.kinds.members import is_json

#: names of members with the records of a list, the most certain first
_LISTS = ("data", "items", "results", "records", "values", "entries", "list", "objects", "resources", "content", "rows")
#: names of members, in snake case, that stand beside the record or the list in a response
_BESIDE = frozenset({
    "meta", "metadata", "links", "jsonapi", "included", "request_id", "ok", "success", "errors", "warnings", "paging",
    "pagination", "list_info", "has_more", "response_status", "error", "messages",
})  # fmt: skip
#: names that a record may have too
_BESIDE_DATA = frozenset({"type", "status", "message", "code", "object", "timestamp", "trace_id", "version"})
_MAX_MERGED, _MAX_FIELDS = 8, 150
#: characters of an example in `fields`
_MAX_EXAMPLE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The content of a response: a list, a record or a file, and the schema of the records."""

    #: `records` or `record` and its path; None for a file
    member: str | None
    path: str
    record: Node
    #: of a list: the whole response, perhaps with members for paging
    root: Node
    headers: frozenset[str]
    findings: tuple[Finding, ...] = ()


def shape_of(operation: SourceOperation, document: Document) -> Shape:
    """The shape of a successful response; raises NotMapped if it is neither JSON nor a file of a GET."""
    response = _main(operation)
    if response is None or (not response.content and response.status.startswith("2")):
        headers = response.headers if response else frozenset()
        return Shape(member="record", path="$", record={}, root={}, headers=headers)
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
    reference = reference_of(value)
    key, held = (reference, reference) if reference is not None else (id(value), value)
    known = document.flat.get(key)
    if known is None or (known[0] is not held and known[0] != reference):
        known = document.flat[key] = held, _flattened(document, document.resolved(value), depth)
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
    reason = "a response that is not JSON is mapped as a download"
    sure = any(re.match(r"application/(octet-stream|pdf|zip)|image/|audio/|video/", name) for name in response.content)
    if not response.content:
        if operation.method != "GET":
            return Shape(member="record", path="$", record={}, root={}, headers=response.headers)
        reason, sure, kinds = "a redirect is mapped as a download", False, f"status {response.status}"
    elif operation.method not in ("GET", "POST"):
        raise NotMapped("a write whose response is not JSON", kinds)
    return Shape(
        member=None,
        path="",
        record={},
        root={},
        headers=response.headers,
        findings=() if sure else (guessed(operation, reason, kinds),),
    )


def _of_json(operation: SourceOperation, document: Document, schema: Node, response: Response) -> Shape:
    headers = response.headers
    if _is_array(schema):
        if _lists(operation, document):
            return Shape(
                member="records", path="$", record=flattened(document, schema.get("items")), root={}, headers=headers
            )
        return Shape(member="record", path="$", record={}, root={}, headers=headers)
    found = _list_in(operation, document, schema)
    if found is not None:
        path, items, is_sure = found
        reason = "the only list in the response is mapped as the records"
        doubts = () if is_sure else (guessed(operation, reason, path, member="records"),)
        return Shape(
            member="records",
            path=path,
            record=flattened(document, items),
            root=schema,
            headers=headers,
            findings=doubts,
        )
    name = _only_record(document, schema)
    if name is not None:
        return Shape(
            member="record",
            path=name,
            record=flattened(document, node_of(schema["properties"])[name]),
            root={},
            headers=headers,
        )
    if operation.method == "GET" and own_verb(operation) == "list":
        doubt = guessed(
            operation, "it is named a list, but its response has none: the whole response is mapped as the record"
        )
        return Shape(member="record", path="$", record=schema, root={}, headers=headers, findings=(doubt,))
    return Shape(member="record", path="$", record=schema, root={}, headers=headers)


def _is_array(schema: Node) -> bool:
    return schema.get("type") == "array" or ("items" in schema and "properties" not in schema)


def _lists(operation: SourceOperation, document: Document) -> bool:
    """Whether an operation may return a list: a GET, or a POST whose path ends with a search or that takes pages."""
    route = path_names(operation.path)
    last = route.groups[-1][-1] if route.groups and not route.ends_with_param else ""
    if operation.method == "POST":
        return (route.verb or last) in ("search", "query", "lookup", "list", "find", "filter") or _is_paged(
            operation, document
        )
    return operation.method == "GET"


def _list_in(operation: SourceOperation, document: Document, schema: Node) -> tuple[str, Any, bool] | None:
    """The path of the list of records, the schema of its items, and whether it is certain."""
    if not _lists(operation, document):
        return None
    route = path_names(operation.path)
    asked = {word for group in route.groups[-1:] for word in (group[-1], singular(group[-1]))}
    is_paged = _is_paged(operation, document)
    is_listing = is_paged or own_verb(operation) in ("list", "search", "query", "find")
    if route.ends_with_param and not is_listing:
        return None
    arrays = list(_arrays(document, schema, is_paged=is_paged))
    others = [name for name in node_of(schema.get("properties")) if not is_beside(str(name))]
    for path, items in arrays:
        last = path.rpartition(".")[2]
        is_named = bool({identifier(last), singular(identifier(last))} & asked)
        if last.lower() in _LISTS or (is_named and (is_listing or len(others) <= _PAGE_MEMBERS)):
            return path, items, True
    objects = [each for each in arrays if _holds_objects(document, each[1])] or arrays
    if len(objects) == 1 and (is_listing or others == [objects[0][0]]):
        return (*objects[0], False)
    return None


#: maximum members of an object that holds only a list and its paging
_PAGE_MEMBERS = 6
_PAGING_PARAMS = frozenset({
    "page", "per_page", "page_size", "pagesize", "limit", "offset", "cursor", "page_token", "page_number", "skip",
    "starting_after", "max_results", "next_token", "continuation_token", "page_limit", "page_after", "page_cursor",
    "page_offset",
})  # fmt: skip


def _is_paged(operation: SourceOperation, document: Document) -> bool:
    """Whether an operation has params of pages, in the query or, of a POST, as members of the body."""
    names = {identifier(str(each["name"])) for each in operation.parameters if each.get("in") == "query"}
    if operation.method == "POST":
        body = operation.body.schema if operation.body else {}
        names = {identifier(str(name)) for name in node_of(flattened(document, body).get("properties"))}
        sizes = {"limit", "count", "page_size", "per_page", "max_results", "size"}
        return bool(names & sizes) and bool(names & (_PAGING_PARAMS - sizes))
    return bool(names & _PAGING_PARAMS)


def _arrays(
    document: Document, schema: Node, prefix: str = "", depth: int = 3, *, is_paged: bool
) -> Iterator[tuple[str, Any]]:
    """Every list in an object and in the objects within it, the outer ones first; of a paged list in any object."""
    properties = node_of(schema.get("properties"))
    members = {
        str(name): flattened(document, each)
        for name, each in properties.items()
        if "." not in str(name) and not is_beside(str(name))
    }
    for name, member in members.items():
        if _is_array(member):
            yield f"{prefix}{name}", member.get("items")
    if depth > 1:
        for name, member in members.items():
            is_holder = name.lower() in (*_LISTS, *_HOLDERS)
            if node_of(member.get("properties")) and (is_holder or (is_paged and not prefix)):
                yield from _arrays(document, member, f"{prefix}{name}.", depth - 1, is_paged=is_paged)


#: objects that hold lists and records
_HOLDERS = ("result", "response", "_embedded", "payload", "body", "page")


def is_beside(name: str) -> bool:
    """Whether a member of a response stands beside the record or the list, by its name."""
    return identifier(name) in _BESIDE


def _holds_objects(document: Document, items: object) -> bool:
    node = flattened(document, items)
    return node.get("type") == "object" or "properties" in node


def _only_record(document: Document, schema: Node) -> str | None:
    """The member that is the record: the only object beside members of `_BESIDE`, if all others are of these."""
    properties = node_of(schema.get("properties"))
    objects = [
        str(name)
        for name, member in properties.items()
        if node_of((read := flattened(document, member)).get("properties")) or read.get("type") == "object"
    ]
    held = [name for name in objects if not is_beside(name) and "." not in name] or (
        objects if len(properties) == 1 and "." not in "".join(objects) else []
    )
    is_alone = all(is_beside(str(name)) or str(name) in held for name in properties)
    return held[0] if len(held) == 1 and (is_alone or _is_data(held[0], properties)) else None


def _is_data(name: str, properties: Node) -> bool:
    """Whether `data` holds the record: beside it are only names of a response, not of a record."""
    rest = {identifier(str(each)) for each in properties if str(each) != name}
    return name == "data" and rest <= _BESIDE | _BESIDE_DATA


def fields_of(document: Document, record: Node) -> dict[str, Any]:
    """The members of a record and their types, as `fields` of a spec has them; texts keep format and example."""
    found: dict[str, Any] = {}
    for name, member in list(node_of(record.get("properties")).items())[:_MAX_FIELDS]:
        schema = flattened(document, member)
        type_ = _field_type(document, schema)
        shown = _shown(schema) if type_.startswith("string") and not is_id(str(name)) else {}
        types = {"type": ["string", "null"] if type_.endswith("?") else "string"}
        found[str(name)] = {**types, **shown} if shown else type_
    return found


def is_id(name: str) -> bool:
    """Whether a member is the id of a record, by its name."""
    return identifier(name).rpartition("_")[2] in ("id", "uuid", "key", "sid")


def _shown(schema: Node) -> dict[str, Any]:
    """The format of a text, or its example, from which the sandbox makes values."""
    example = schema.get("example")
    if schema.get("format") in ("date-time", "date", "email", "uri", "uuid"):
        return {"format": schema["format"]}
    return {"examples": [example]} if isinstance(example, str) and 0 < len(example) <= _MAX_EXAMPLE else {}


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
